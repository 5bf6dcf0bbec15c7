//! The list of differences: which refusals of Gateward the reference does not share, and why. docs/warrants.md has the
//! rows.
//!
//! Some reasons belong to this verifier alone. Others are also the reasons of calls that both refuse, so such a reason
//! does not prove that a refusal is right. For those, a predicate looks in the stack for what makes the difference.

use std::net::IpAddr;

use gateward_core::json::Json;
use gateward_core::warrant::bounds::DEFAULT_MAX_LINKS;
use gateward_core::warrant::constraint::fit::{self, Fit, Misfit, Undecidable, value_fits};
use gateward_core::warrant::constraint::narrow::is_narrower;
use gateward_core::warrant::constraint::{
    Arguments, Constraint, Pattern, Range, Subpath, UrlPattern, Work,
};
use gateward_core::warrant::gate::{Condition, Gate, Gates};
use gateward_core::warrant::payload::{Payload, Powers};
use gateward_core::warrant::{self, Presented, Refusal};

use super::reference;

/// The server of the calls.
pub const SERVER: &str = "pay";

/// A tool's own name, of a name that may have the server.
pub fn own_name(tool: &str) -> &str {
    let with_server = tool.strip_prefix(SERVER).and_then(|rest| rest.strip_prefix('/'));
    with_server.unwrap_or(tool)
}

/// A call that the reference lets pass and Gateward refuses.
pub struct Refused<'a> {
    presented: &'a Presented,
    /// As the last warrant names it.
    tool: &'a str,
    input: &'a Json,
    reason: String,
    /// Empty if they cannot be read.
    links: Vec<Payload>,
}

type Predicate = fn(&Refused<'_>) -> bool;

/// The beginnings of rows of the page.
type Rows = &'static [&'static str];

/// The reason that Gateward gives, what must be true of the call, and the rows of the page about it.
static LIST: [(&str, Predicate, Rows); 23] = [
    ("its clearance is higher than its parent's", always, &["a child with a clearance"]),
    ("the first link is not a root", always, &["a first link that is not a root"]),
    ("it lives for too long", always, &["a life of more than 90 days"]),
    ("its depth is out of range", always, &["a life of more than 90 days"]),
    ("it drops an approver", always, &["a child that drops an approver"]),
    ("it is deeper than its parent may issue", always, &["a warrant that calls, deeper"]),
    (
        "it needs more approvals than it has approvers, or none",
        always,
        &["a number of needed approvals"],
    ),
    ("it needs fewer approvals than its parent", always, &["a child that drops an approver"]),
    ("an approver occurs twice", always, &["an approver that occurs twice"]),
    ("a reserved extension is unknown", always, &["reserved extensions"]),
    ("a tool's name is empty or reserved", always, &["reserved extensions"]),
    ("it lacks the bounds of its parent", always, &["an issuer without the bounds"]),
    ("is longer than the", is_too_long, &["a chain with more links"]),
    ("with its server", is_named_without_server, &["a tool whose own name has a `/`"]),
    ("its parent is narrower about a tool's arguments", is_narrowed_otherwise, NARROWER),
    ("its constraints are not within its issuer's bounds", is_narrowed_otherwise, NARROWER),
    ("its bounds are wider than its parent's", is_narrowed_otherwise, NARROWER),
    (
        "it drops or weakens an approval gate",
        has_other_condition,
        &["a gate of a tool's own name", "a condition of a gate that is another one"],
    ),
    (
        "it names approvers for what nobody can approve",
        has_gate_under_another_name,
        &["a gate of a tool's own name"],
    ),
    ("its constraint on", has_unevaluated_constraint, UNEVALUATED),
    ("a condition of its approval gates cannot be evaluated", has_unevaluated_gate, UNEVALUATED),
    (
        "it does not allow this value of",
        refuses_value,
        &[
            "constraints of every link",
            "a value of another kind",
            "paths with `\\`",
            "the folder `/`",
            "another port under",
            "a URL of `ws`",
            "hosts that are not public",
            "IPv4 addresses in the form",
        ],
    ),
    (
        "The warrant asks for approvals",
        has_gate_that_is_open_there,
        &["a gate for `*`", "a condition of a gate that does not apply"],
    ),
];

const NARROWER: Rows = &[
    "regular expressions",
    "`?` or a character class",
    "the folder `/`",
    "a URL pattern with the path",
    "another port under",
];

const UNEVALUATED: Rows = &[
    "regular expressions",
    "`not`, `any` and `all`",
    "character classes",
    "URLs with a user",
    "URLs with another scheme",
    "a URL whose path has an escape",
    "a URL whose path has a `;`",
];

/// Rows about what no random chain has. Other tests are about them.
const ELSEWHERE: Rows = &[
    "lengths and whole numbers",
    "null for a field",
    "more tools to issue",
    "an issuer that may issue deeper",
    "more than 16 approvers",
    "a gate that exempts",
    "URLs and URL patterns of more than",
    "a URL pattern with a user",
    "IPv6 addresses and international names",
    "more than 1,000,000 steps",
    "an approval after another one of the same approver",
    "a warrant that an earlier list",
    "an empty `all`",
    "a number with more digits than a double holds",
    "arguments whose names differ in case only",
];

/// Each reason of the list has a row on the page, and each row of the page is on a list here.
#[test]
fn the_page_has_a_row_for_each_difference() {
    let page = include_str!("../../../../docs/warrants.md");
    let (_, section) = page.split_once("\n## Stricter than the reference\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows: Vec<&str> = section.lines().filter_map(|line| line.strip_prefix("| ")).collect();
    let [header, rows @ ..] = rows.as_slice() else { panic!("there is no table") };
    assert_eq!(*header, "what | why |");
    let named: Vec<&str> =
        LIST.iter().flat_map(|(.., rows)| *rows).chain(ELSEWHERE).copied().collect();
    for name in &named {
        let found = rows.iter().filter(|row| row.starts_with(name)).count();
        assert_eq!(found, 1, "rows that begin with {name}");
    }
    for row in rows {
        assert!(named.iter().any(|name| row.starts_with(name)), "no list names {row}");
    }
}

impl<'a> Refused<'a> {
    pub fn new(
        presented: &'a Presented,
        tool: &'a str,
        input: &'a Json,
        refusal: &'a Refusal,
    ) -> Self {
        // The leaf is judged before the other links are read. If one of them is malformed, that must be the difference.
        let (links, reason) = match warrant::links(presented) {
            Ok(links) => (links, refusal.reason.clone()),
            Err(unreadable) => (Vec::new(), unreadable.reason),
        };
        Self { presented, tool, input, reason, links }
    }

    /// The reason on the list, if this is one of the differences that it is about.
    pub fn listed(&self) -> Option<&'static str> {
        let listed = LIST.iter().find(|(reason, ..)| self.reason.contains(reason));
        listed.filter(|(_, is_difference, _)| is_difference(self)).map(|(reason, ..)| *reason)
    }

    fn own(&self) -> &'a str {
        own_name(self.tool)
    }

    /// Whether a gate of this name is about the tool.
    fn is_named(&self, gate: &str) -> bool {
        gate == "*" || own_name(gate) == self.own()
    }

    /// The link that is refused: the reason begins with `Link 2 of …`.
    fn at(&self) -> Option<usize> {
        self.reason.strip_prefix("Link ")?.split(' ').next()?.parse().ok()
    }

    /// What the refused link says about the tool's arguments.
    fn arguments(&self) -> Option<&Arguments> {
        let link = self.links.get(self.at()?)?;
        match &link.powers {
            Powers::Execution(_) => {
                let with_server = link.named_with_server(SERVER, self.own());
                with_server.or_else(|| link.tool(self.own()))
            }
            Powers::Issuer(issuing) => issuing.bounds.as_ref(),
        }
    }

    /// The refused link's parent, and the link.
    fn pair(&self) -> Option<(&Payload, &Payload)> {
        let at = self.at()?;
        Some((self.links.get(at.checked_sub(1)?)?, self.links.get(at)?))
    }
}

/// Nothing else has this reason.
fn always(_: &Refused<'_>) -> bool {
    true
}

/// The reference has no bound of links below that of depth.
fn is_too_long(call: &Refused<'_>) -> bool {
    call.presented.links() > DEFAULT_MAX_LINKS
}

/// The link names the tool without its server, and the tool's own name has a `/`. The reference does not know the server.
fn is_named_without_server(call: &Refused<'_>) -> bool {
    let own = call.own();
    let link = call.at().and_then(|at| call.links.get(at));
    let is_it =
        |link: &Payload| link.named(own).is_some() && link.named_with_server(SERVER, own).is_none();
    own.contains('/') && link.is_some_and(is_it)
}

/// The reference lets the link have these constraints under those of its parent, by a rule that Gateward does not have.
fn is_narrowed_otherwise(call: &Refused<'_>) -> bool {
    let Some((parent, child)) = call.pair() else { return false };
    let compared: Vec<(&Arguments, &Arguments)> = match (&parent.powers, &child.powers) {
        (Powers::Execution(_), Powers::Execution(tools)) => {
            tools.iter().filter_map(|(tool, narrow)| Some((parent.tool(tool)?, narrow))).collect()
        }
        (Powers::Issuer(issuing), Powers::Execution(tools)) => {
            let bounds = issuing.bounds.iter();
            bounds.flat_map(|wide| tools.iter().map(move |(_, narrow)| (wide, narrow))).collect()
        }
        (Powers::Issuer(wide), Powers::Issuer(narrow)) => {
            wide.bounds.iter().zip(&narrow.bounds).collect()
        }
        (Powers::Execution(_), Powers::Issuer(_)) => return false,
    };
    let refused: Option<Vec<_>> =
        compared.iter().map(|(wide, narrow)| not_narrower(wide, narrow)).collect();
    let Some(refused) = refused else { return false };
    let mut refused = refused.into_iter().flatten().peekable();
    refused.peek().is_some() && refused.all(|(wide, narrow)| is_stricter_about(wide, narrow))
}

type Pair<'a> = (&'a Constraint, &'a Constraint);

/// The constraints of a child that Gateward does not take for narrower. `None`: nobody does, whatever they say.
fn not_narrower<'a>(wide: &'a Arguments, narrow: &'a Arguments) -> Option<Vec<Pair<'a>>> {
    let names = |it: &'a Arguments| it.constraints.iter().map(|(name, _)| name);
    if narrow.allow_unknown && !wide.allow_unknown {
        return None;
    }
    if wide.constraints.is_empty() {
        return Some(Vec::new());
    }
    let pairs = wide.constraints.iter().zip(&narrow.constraints);
    let pairs = pairs.map(|((_, wide), (_, narrow))| (wide, narrow));
    names(wide).eq(names(narrow)).then(|| pairs.filter(|(w, n)| !covers(w, n)).collect())
}

/// Whether Gateward takes `narrow` for narrower.
fn covers(wide: &Constraint, narrow: &Constraint) -> bool {
    is_narrower(wide, narrow, &mut Work::default()) == Ok(true)
}

/// Why the reference takes `narrow` for narrower, and Gateward does not.
fn is_stricter_about(wide: &Constraint, narrow: &Constraint) -> bool {
    use Constraint::{All, Any, Contains, Exact, Not, NotOneOf, Subset, Unsupported};
    let either = |wide: &Constraint, narrow: &Constraint| {
        covers(wide, narrow) || is_stricter_about(wide, narrow)
    };
    match (wide, narrow) {
        // They become no `exact` in either verifier.
        (Any(_) | Contains(_) | Not(_) | NotOneOf(_) | Subset(_), Exact(_)) => false,
        // The reference evaluates regular expressions and shell words, and compares CEL. To the types that it does not know,
        // nothing is narrower.
        (Unsupported(id, _), Exact(_) | Unsupported(..)) => [5, 15, 128].contains(id),
        // Whether it is narrower depends on the value.
        (_, Exact(value)) => is_stricter(wide, value, true),
        // The reference takes `?` and `[` of the narrower pattern for characters.
        (Constraint::Pattern(_), Constraint::Pattern(narrow)) => {
            narrow.as_str().contains(['?', '[', ']'])
        }
        // For the reference, `/x` covers `/x/*`, and a pattern with its scheme's own port each port.
        (Constraint::UrlPattern(wide), Constraint::UrlPattern(narrow)) => {
            let (wide_path, narrow) = (path(wide), path(narrow));
            let rest = narrow.strip_prefix(wide_path);
            has_own_port(wide)
                || (!wide_path.contains('*') && rest.is_some_and(|rest| rest.starts_with('/')))
        }
        // For the reference, `/` is inside of `/`, also if the folder itself is excluded.
        (Constraint::Subpath(wide), Constraint::Subpath(narrow)) => {
            is_inside_of_root(wide, &narrow.root) && !narrow.allow_equal
        }
        (Constraint::Subpath(wide), Subset(paths)) => paths.iter().any(|it| is_clearer(wide, it)),
        (All(wide), All(narrow)) => {
            wide.iter().all(|part| narrow.iter().any(|other| either(part, other)))
        }
        (Any(wide), Any(narrow)) => {
            narrow.iter().all(|part| wide.iter().any(|other| either(other, part)))
        }
        (Not(wide), Not(narrow)) => is_stricter_about(narrow, wide),
        _ => false,
    }
}

/// The path of a URL pattern, with the `/` before it.
fn path(pattern: &UrlPattern) -> &str {
    let text = pattern.as_str();
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    rest.find('/').map_or("", |at| &rest[at..])
}

/// Whether the port is that of the pattern's scheme. The reference reads `*` as `https`.
fn has_own_port(pattern: &UrlPattern) -> bool {
    let (scheme, rest) = pattern.as_str().split_once("://").unwrap();
    let port = match scheme {
        "http" | "ws" => ":80",
        "ftp" => ":21",
        _ => ":443",
    };
    rest.split('/').next().unwrap().ends_with(port)
}

fn is_inside_of_root(folder: &Subpath, path: &str) -> bool {
    folder.root == "/" && !folder.allow_equal && path == "/"
}

/// A path that the reference takes for one below the folder, and Gateward does not.
fn is_clearer(folder: &Subpath, path: &Json) -> bool {
    path.as_str().is_some_and(|path| path.contains('\\') || is_inside_of_root(folder, path))
}

/// The same, of one value or of any in a list.
fn has_clearer(folder: &Subpath, value: &Json) -> bool {
    match value {
        Json::Array(paths) => paths.iter().any(|path| is_clearer(folder, path)),
        path => is_clearer(folder, path),
    }
}

/// Whether the child has no tool of exactly this name. Then the reference does not look at the gate.
fn is_unnamed(gate: &str, child: &Payload) -> bool {
    let is_it = |name: &str| name == gate || name == "*";
    match &child.powers {
        Powers::Execution(tools) => !tools.iter().any(|(name, _)| is_it(name)),
        Powers::Issuer(issuing) => !issuing.tools.iter().any(|name| is_it(name)),
    }
}

/// A gate of the parent is about a tool of the child by its other name.
fn has_gate_under_another_name(call: &Refused<'_>) -> bool {
    let Some((parent, child)) = call.pair() else { return false };
    parent.gates.as_ref().is_some_and(|gates| gates.tools().any(|gate| is_unnamed(gate, child)))
}

/// The child drops such a gate, or has another condition `if`: for the reference, it may be a narrower one.
fn has_other_condition(call: &Refused<'_>) -> bool {
    let Some((parent, child)) = call.pair() else { return false };
    let Some(before) = &parent.gates else { return false };
    let after = |tool: &str| child.gates.as_ref().and_then(|gates| gates.get(tool));
    let conditions = |gate: Option<&Gate>| gate.and_then(|gate| gate.arguments.clone());
    before.tools().any(|tool| {
        if is_unnamed(tool, child) {
            return before.get(tool) != after(tool);
        }
        let Some(wide) = conditions(before.get(tool)) else { return false };
        let narrow = conditions(after(tool)).unwrap_or_default();
        wide.iter().any(|(name, condition)| {
            let kept = narrow.iter().find(|(other, _)| other == name).map(|(_, kept)| kept);
            let (Condition::If(wide), Some(Condition::If(narrow))) = (condition, kept) else {
                return false;
            };
            wide != narrow && (covers(wide, narrow) || is_stricter_about(wide, narrow))
        })
    })
}

/// The constraint has a part that Gateward never evaluates for this value. The reference may not come to this part, or
/// not to this link.
fn has_unevaluated_constraint(call: &Refused<'_>) -> bool {
    let Some(arguments) = call.arguments() else { return false };
    match fit::arguments(arguments, call.input, &mut Work::default()) {
        Err(Misfit::Unsupported(name)) => {
            let (constraint, value) = (arguments.get(name), call.input.get(name));
            constraint.zip(value).is_some_and(|(it, value)| is_unevaluated(it, value))
        }
        _ => false,
    }
}

/// The same in a condition of a gate of any link.
fn has_unevaluated_gate(call: &Refused<'_>) -> bool {
    gates(call).any(|(_, _, gate)| {
        gate.arguments.iter().flatten().any(|(name, condition)| match condition {
            Condition::Always => false,
            Condition::If(constraint) | Condition::Unless(constraint) => {
                call.input.get(name).is_some_and(|value| is_unevaluated(constraint, value))
            }
        })
    })
}

/// The gates that are about the tool, each with its link's number and its name.
fn gates<'a>(call: &'a Refused<'_>) -> impl Iterator<Item = (usize, &'a str, &'a Gate)> {
    let links = call.links.iter().enumerate();
    let gates = links.filter_map(|(at, link)| Some((at, link.gates.as_ref()?)));
    gates.flat_map(move |(at, gates)| {
        let names = gates.tools().filter(move |name| call.is_named(name));
        names.filter_map(move |name| Some((at, name, gates.get(name)?)))
    })
}

/// The value does not fit a link before the last one, and the reference looks only at the last one; or Gateward says
/// of the value that it may mean something else to the tool.
fn refuses_value(call: &Refused<'_>) -> bool {
    let (Some(at), Some(arguments)) = (call.at(), call.arguments()) else { return false };
    let fits = fit::arguments(arguments, call.input, &mut Work::default());
    let Err(Misfit::Refused(name)) = fits else { return false };
    let (constraint, value) = (arguments.get(name), call.input.get(name));
    reference::link_allows(call.presented, at, call.tool, call.input).is_err()
        || constraint.zip(value).is_some_and(|(it, value)| is_stricter(it, value, true))
}

/// The reference asks for no approvals. Each gate that is closed here is one at which it does not look, or one whose
/// condition says nothing about a value of this kind.
fn has_gate_that_is_open_there(call: &Refused<'_>) -> bool {
    let Some(leaf) = call.links.len().checked_sub(1) else { return false };
    let asks = |at| reference::asks(call.presented, at, call.tool, call.input) == Ok(true);
    let is_closed = |name: &str, gate: &Gate| {
        let gates = Gates::new(vec![(name.to_owned(), gate.clone())]);
        gates.need_approvals(&[name], call.input, &mut Work::default()) == Ok(true)
    };
    let closed: Vec<_> = gates(call).filter(|(_, name, gate)| is_closed(name, gate)).collect();
    let is_difference = |(at, name, gate): &(usize, &str, &Gate)| {
        asks(*at) || *name != call.tool || has_strict_conditions(gate, call.input)
    };
    !asks(leaf) && !closed.is_empty() && closed.iter().all(is_difference)
}

/// Whether each condition that closes the gate does so only here.
fn has_strict_conditions(gate: &Gate, input: &Json) -> bool {
    let Some(arguments) = &gate.arguments else { return false };
    arguments.iter().all(|(name, condition)| {
        let Some(value) = input.get(name) else { return false };
        let (constraint, open) = match condition {
            Condition::Always => return false,
            Condition::If(constraint) => (constraint, false),
            Condition::Unless(constraint) => (constraint, true),
        };
        answers(constraint, value, open) || is_stricter(constraint, value, open)
    })
}

/// Whether Gateward says that a value fits, or that it does not.
fn answers(constraint: &Constraint, value: &Json, fits: bool) -> bool {
    value_fits(constraint, value, &mut Work::default()) == Ok(Fit::from(fits))
}

/// Why Gateward does not say that a value fits, or that it does not, where the reference says so.
fn is_stricter(constraint: &Constraint, value: &Json, fits: bool) -> bool {
    let answer = match value_fits(constraint, value, &mut Work::default()) {
        Ok(answer) if answer == Fit::from(fits) => return false,
        Ok(answer) => answer,
        Err(Undecidable::Unsupported) => return is_unevaluated(constraint, value),
        Err(Undecidable::TooMuch) => return false,
    };
    match (constraint, answer) {
        (Constraint::Not(inner), _) => is_stricter(inner, value, !fits),
        (Constraint::All(parts) | Constraint::Any(parts), _) => {
            // All parts of `all` must fit, and none of `any` may if it is not to fit.
            if matches!(constraint, Constraint::All(_)) == fits {
                let holds = |it| answers(it, value, fits) || is_stricter(it, value, fits);
                parts.iter().all(holds)
            } else {
                parts.iter().any(|part| is_stricter(part, value, fits))
            }
        }
        // Such a value fits neither the constraint nor `not` of it.
        (Constraint::Subpath(folder), Fit::Inapplicable) if has_clearer(folder, value) => true,
        (Constraint::UrlPattern(pattern), Fit::Inapplicable) if value.as_str().is_some() => {
            let authority = pattern.as_str().split_once("://").map_or("", |(_, rest)| rest);
            authority.split('/').next().unwrap().contains(':')
        }
        (Constraint::UrlSafe(_), Fit::Inapplicable) if value.as_str().is_some() => true,
        // Some tools take `["x"]` for `x`. And a path with `\` is not the same on all systems.
        (Constraint::NotOneOf(_) | Constraint::Subpath(_), Fit::Inapplicable) => {
            says_nothing(constraint, value)
        }
        // The reference takes a value of another kind for one that does not fit, and `not` of it fits.
        (_, Fit::Inapplicable) => !fits && says_nothing(constraint, value),
        _ => false,
    }
}

/// Whether a constraint is about values of another kind.
fn says_nothing(constraint: &Constraint, value: &Json) -> bool {
    let is_plain = |path: &str| path.starts_with('/') && !path.contains(['\\', '\0']);
    match constraint {
        Constraint::Range(_) => !matches!(value, Json::Integer(_) | Json::Number(_)),
        Constraint::Pattern(_) | Constraint::UrlPattern(_) | Constraint::UrlSafe(_) => {
            value.as_str().is_none()
        }
        // An IPv4 address in the form of an IPv6 address.
        Constraint::Cidr(..) => value.as_str().is_none_or(|text| text.starts_with("::ffff:")),
        Constraint::Contains(_) | Constraint::Subset(_) => !matches!(value, Json::Array(_)),
        Constraint::Subpath(_) => match value {
            Json::Array(paths) => !paths.iter().all(|it| it.as_str().is_some_and(is_plain)),
            value => !value.as_str().is_some_and(is_plain),
        },
        Constraint::Exact(exact) => !is_comparable(exact, value),
        Constraint::OneOf(values) | Constraint::NotOneOf(values) => {
            values.iter().any(|other| !is_comparable(other, value))
        }
        _ => false,
    }
}

/// Whether two values that are not equal are clearly different ones to every tool.
fn is_comparable(one: &Json, other: &Json) -> bool {
    let is_number = |value: &Json| matches!(value, Json::Integer(_) | Json::Number(_));
    match (one, other) {
        (Json::String(_), Json::String(_)) | (Json::Bool(_), Json::Bool(_)) => true,
        _ => is_number(one) && is_number(other),
    }
}

/// Whether a part of the constraint is never evaluated for this value.
fn is_unevaluated(constraint: &Constraint, value: &Json) -> bool {
    let text = value.as_str();
    match constraint {
        Constraint::Unsupported(..) => true,
        Constraint::Pattern(pattern) => {
            let pattern = pattern.as_str();
            text.is_some() && (pattern.contains(['[', ']']) || pattern.contains("**"))
        }
        Constraint::Cidr(..) => text.is_some_and(|text| text.parse::<IpAddr>().is_err()),
        Constraint::UrlPattern(pattern) => {
            let has_path = !matches!(path(pattern), "" | "/");
            text.is_some_and(|text| !is_clear_url(text) || (has_path && !is_clear_path(text)))
        }
        Constraint::UrlSafe(_) => text.is_some_and(|text| !is_clear_url(text)),
        Constraint::All(parts) | Constraint::Any(parts) => {
            parts.iter().any(|part| is_unevaluated(part, value))
        }
        Constraint::Not(inner) => is_unevaluated(inner, value),
        _ => false,
    }
}

/// A user in a URL can look like its host, and with other schemes a host may be any text.
fn is_clear_url(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("http" | "https" | "ws" | "wss" | "ftp"))
        && !text.contains('@')
}

/// Servers disagree about what such a path means.
fn is_clear_path(text: &str) -> bool {
    let (_, rest) = text.split_once("://").unwrap_or_default();
    !rest.contains([';', '%']) && !rest.contains("//") && !rest.contains("/../")
}

/// A refusal that both must share is not on the list, whatever its reason.
#[test]
fn the_list_tells_a_difference_from_a_wrong_refusal() {
    let text = |text: &str| Json::String(text.to_owned());
    let up_to = |max: f64| {
        Constraint::Range(Range {
            min: None,
            max: Some(max),
            min_inclusive: true,
            max_inclusive: true,
        })
    };
    let pattern = |text: &str| Constraint::Pattern(Pattern::new(text.to_owned()));
    let url = |text: &str| Constraint::UrlPattern(Box::new(UrlPattern::new(text).unwrap()));
    let not = |constraint: Constraint| Constraint::Not(Box::new(constraint));
    let not_x = || Constraint::NotOneOf(vec![text("x")]);
    let of_type = |id: u8| Constraint::Unsupported(id, vec![0xa0]);
    let safe = || Constraint::UrlSafe(Box::default());
    for (what, constraint, value, expected) in [
        ("too much", up_to(50.0), Json::Integer(60), false),
        ("a text instead of a number", up_to(50.0), text("a"), false),
        ("not too much, and a text", not(up_to(50.0)), text("a"), true),
        ("not too much, and little", not(up_to(50.0)), Json::Integer(20), false),
        ("what is excluded", not_x(), text("x"), false),
        ("a list of what is excluded", not_x(), Json::Array(vec![text("x")]), true),
        ("another prefix", pattern("b*"), text("a"), false),
        ("a pattern that is not evaluated", pattern("**"), text("a"), true),
        ("a URL of another scheme", safe(), text("foo://a.example"), true),
        (
            "the port of a scheme that the reference does not know",
            url("*://a.example:80"),
            text("ws://a.example/"),
            true,
        ),
        ("another host", url("*://a.example:80"), text("ws://b.example/"), false),
        ("a parameter", url("https://a.example/x/*"), text("https://a.example/x/..;/y"), true),
        ("an escape", url("https://a.example/x/*"), text("https://a.example/x/%2e%2e/y"), true),
        ("two slashes", url("https://a.example/x/*"), text("https://a.example/x//../y"), true),
        ("another path", url("https://a.example/x/*"), text("https://a.example/y"), false),
        (
            "one part as listed, and one that does not fit",
            Constraint::All(vec![not_x(), up_to(50.0)]),
            Json::Integer(60),
            false,
        ),
    ] {
        assert_eq!(is_stricter(&constraint, &value, true), expected, "{what}");
    }
    for (what, wide, narrow, expected) in [
        ("a wider range", up_to(50.0), up_to(60.0), false),
        ("another prefix", pattern("a*"), pattern("b*"), false),
        ("a character for a prefix", pattern("a*"), pattern("a?"), true),
        ("another path", url("https://a.example/x"), url("https://a.example/y"), false),
        ("a path below", url("https://a.example/x"), url("https://a.example/x/*"), true),
        ("another port", url("https://a.example:444"), url("https://a.example"), false),
        ("the scheme's own port", url("https://a.example:443"), url("https://a.example"), true),
        ("a value of a regular expression", of_type(5), Constraint::Exact(text("a")), true),
        ("a value of an unknown type", of_type(99), Constraint::Exact(text("a")), false),
        ("the same unknown type", of_type(99), of_type(99), false),
        ("a value that does not fit", pattern("b*"), Constraint::Exact(text("a")), false),
        ("a value that is not evaluated", pattern("**"), Constraint::Exact(text("a")), true),
    ] {
        assert!(!covers(&wide, &narrow), "{what}");
        assert_eq!(is_stricter_about(&wide, &narrow), expected, "{what}");
    }
}
