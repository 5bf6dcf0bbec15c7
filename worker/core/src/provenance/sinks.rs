//! The sinks and contents among the arguments of one call.

use super::action::words;
use super::pointers::{escaped, first_step};
use super::search::{is_in, rsplit_once};
use super::{ArgumentRoles, Role};
use crate::json::Json;

/// Sinks and contents of a call that are looked up. If a call has more, the rest counts as one sink that nobody named.
pub const MAX_SINKS: usize = 64;

/// Nesting of roles. Arguments are nested at most as deep as a request may be.
const MAX_DEPTH: usize = 16;

/// An argument that has a role, or a part of one.
#[derive(Debug, Clone, PartialEq)]
pub struct Argument<'a> {
    /// A JSON Pointer (RFC 6901).
    pub pointer: String,
    pub role: Role,
    /// Whether a pointer gives the role. Without one, an argument is a sink.
    pub named: bool,
    pub value: &'a Json,
}

/// Names of flags that narrow what a call does if they are true, and of those that do if they are false.
const IF_TRUE: [&str; 5] = ["confidential", "draft", "dry run", "dryrun", "private"];
const IF_FALSE: [&str; 6] = ["all", "force", "overwrite", "permanent", "public", "recursive"];

/// Whether a flag only narrows what the call does, such as `private: true` or `force: false`. A longer name can say the
/// opposite: `include_private`, `block_public`.
fn narrows(pointer: &str, value: &Json) -> bool {
    let Json::Bool(value) = value else { return false };
    let name = words(rsplit_once(pointer, '/').map_or("", |(_, name)| name)).join(" ");
    let names = if *value { &IF_TRUE[..] } else { &IF_FALSE[..] };
    is_in(names, name.strip_prefix("is ").unwrap_or(&name))
}

/// The steps of a registered pointer that are left below a value, and its role.
type Rule<'a> = (&'a str, Role);

/// The arguments with their roles, in order, without flags that only narrow the call. Returns whether there are
/// more than [`MAX_SINKS`].
#[must_use]
pub fn arguments<'a>(roles: Option<&ArgumentRoles>, input: &'a Json) -> (Vec<Argument<'a>>, bool) {
    let roles = roles.map_or(&[][..], |roles| roles.0.as_slice());
    // Without any marked sink, each argument may be the destination.
    let marked = roles.iter().any(|(_, role)| *role == Role::Sink);
    let rules: Vec<Rule<'_>> = match marked {
        true => roles.iter().map(|(pointer, role)| (pointer.as_str(), *role)).collect(),
        false => Vec::new(),
    };
    let (mut found, own) = (Vec::new(), (Role::Sink, false));
    let whole = members(&mut found, "", own, input, &rules, MAX_DEPTH)
        .unwrap_or_else(|| collect(&mut found, String::new(), own, input, &[], MAX_DEPTH));
    (found, !whole)
}

/// The beginning of places in the answers to a server's questions. No JSON Pointer begins so, so no plan names one.
const ANSWERS: &str = "request/params/inputResponses";

/// What a client says about a question by itself: whether the user answered it.
const ACTIONS: [&str; 3] = ["accept", "decline", "cancel"];

/// Adds what a client answers to a server's questions: each member of each answer, as a sink. The server asked for them,
/// so no registration gives them a role. Returns whether there are more than [`MAX_SINKS`].
#[must_use]
pub fn answers<'a>(found: &mut Vec<Argument<'a>>, answers: &'a Json) -> bool {
    let mut add = |pointer: String, value: &'a Json| {
        collect(found, pointer, (Role::Sink, false), value, &[], 0)
    };
    let is_action = |name: &str, value: &Json| {
        name == "action" && value.as_str().is_some_and(|text| ACTIONS.contains(&text))
    };
    let Json::Object(answers) = answers else { return !add(ANSWERS.to_owned(), answers) };
    let whole = answers.iter().all(|(question, answer)| {
        let pointer = [ANSWERS, "/", &escaped(question)].concat();
        let Json::Object(members) = answer else { return add(pointer, answer) };
        members.iter().filter(|(name, value)| !is_action(name, value)).all(|(name, value)| {
            let pointer = [&pointer, "/", &escaped(name)].concat();
            add(pointer, value)
        })
    });
    !whole
}

/// Adds a value, or its members if rules name some of them. Returns false if there was no space.
fn collect<'a>(
    found: &mut Vec<Argument<'a>>,
    pointer: String,
    inherited: (Role, bool),
    value: &'a Json,
    rules: &[Rule<'_>],
    depth: usize,
) -> bool {
    let own = rules.iter().find(|(rest, _)| rest.is_empty());
    let (role, named) = own.map_or(inherited, |(_, role)| (*role, true));
    let deeper = rules.iter().any(|(rest, _)| !rest.is_empty());
    if deeper
        && let Some(depth) = depth.checked_sub(1)
        && let Some(whole) = members(found, &pointer, (role, named), value, rules, depth)
    {
        return whole;
    }
    if narrows(&pointer, value) {
        return true;
    }
    if found.len() >= MAX_SINKS {
        return false;
    }
    found.push(Argument { pointer, role, named, value });
    true
}

/// Adds the members of an object or the items of an array, each with the rules that go on below it. `None` if the value is
/// none of both.
fn members<'a>(
    found: &mut Vec<Argument<'a>>,
    pointer: &str,
    inherited: (Role, bool),
    value: &'a Json,
    rules: &[Rule<'_>],
    depth: usize,
) -> Option<bool> {
    let mut add = |step: &str, value: &'a Json, is_item: bool| {
        let mut below = Vec::new();
        // A rule that names the step comes before one with `*`.
        for by_star in [false, true] {
            below.extend(rules.iter().filter_map(|rule| after(rule, step, is_item, by_star)));
        }
        collect(found, [pointer, "/", step].concat(), inherited, value, &below, depth)
    };
    match value {
        Json::Object(members) => {
            Some(members.iter().all(|(name, value)| add(&escaped(name), value, false)))
        }
        Json::Array(items) => {
            Some(items.iter().enumerate().all(|(at, value)| add(&at.to_string(), value, true)))
        }
        _ => None,
    }
}

/// The rest of a rule after one step of the pointer, if the step, or the `*` in its place, is the rule's next one. `*`
/// matches an item. For a sink it also matches a member, because a caller can send an object in place of an array.
fn after<'r>(
    &(rest, role): &Rule<'r>,
    step: &str,
    is_item: bool,
    by_star: bool,
) -> Option<Rule<'r>> {
    let (first, rest) = first_step(rest)?;
    let is_star = first == "*" && (is_item || role == Role::Sink);
    (is_star == by_star && (is_star || first == step)).then_some((rest, role))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn found(roles: Option<&str>, input: &str) -> String {
        let roles = roles.map(|text| serde_json::from_str::<ArgumentRoles>(text).unwrap());
        let input = json::parse(input.as_bytes()).unwrap();
        let (arguments, more) = arguments(roles.as_ref(), &input);
        let mut texts: Vec<String> = arguments
            .iter()
            .map(|argument| {
                format!(
                    "{} {} {}",
                    argument.pointer,
                    argument.role.as_str(),
                    argument.value.canonical()
                )
            })
            .collect();
        texts.extend(more.then(|| "more".to_owned()));
        texts.join("; ")
    }

    #[test]
    fn each_argument_has_the_role_of_its_longest_pointer() {
        let roles = r#"{"/to":"sink","/body":"content","/at":"detail","/list/*/mail":"sink","/list":"detail","/list/0/name":"content"}"#;
        for (what, roles, input, expected) in [
            ("no roles", None, r#"{"a":1,"b":"x"}"#, r#"/a sink 1; /b sink "x""#),
            (
                "roles without a sink",
                Some(r#"{"/a":"detail","/b":"content"}"#),
                r#"{"a":1,"b":"x"}"#,
                r#"/a sink 1; /b sink "x""#,
            ),
            (
                "each role",
                Some(roles),
                r#"{"at":"now","body":"hi","to":"x"}"#,
                r#"/at detail "now"; /body content "hi"; /to sink "x""#,
            ),
            (
                "argument without a role",
                Some(roles),
                r#"{"new":1,"to":2}"#,
                "/new sink 1; /to sink 2",
            ),
            (
                "items",
                Some(roles),
                r#"{"list":[{"mail":"a","name":"b"},{"mail":"c","name":"d"}]}"#,
                r#"/list/0/mail sink "a"; /list/0/name content "b"; /list/1/mail sink "c"; /list/1/name detail "d""#,
            ),
            (
                "array where an object was expected",
                Some(roles),
                r#"{"to":["a","b"]}"#,
                r#"/to sink ["a","b"]"#,
            ),
            (
                "object where an array was expected",
                Some(
                    r#"{"/to":"sink","/list":"detail","/list/*/id":"sink","/list/*/note":"content"}"#,
                ),
                r#"{"list":{"0":{"id":"a","note":"b"}}}"#,
                r#"/list/0/id sink "a"; /list/0/note detail "b""#,
            ),
            ("name with a slash", Some(r#"{"/a~1b":"sink"}"#), r#"{"a/b":1}"#, "/a~1b sink 1"),
            ("no arguments", Some(roles), "{}", ""),
        ] {
            assert_eq!(found(roles, input), expected, "{what}");
        }
    }

    #[test]
    fn each_member_of_an_answer_is_a_sink_except_for_whether_it_was_given() {
        for (what, text, expected) in [
            (
                "an elicitation",
                r#"{"k":{"action":"accept","content":{"to":"x"}}}"#,
                r#"request/params/inputResponses/k/content {"to":"x"}"#,
            ),
            ("declined", r#"{"k":{"action":"decline"}}"#, ""),
            (
                "another word",
                r#"{"k":{"action":"x@y.com"}}"#,
                r#"request/params/inputResponses/k/action "x@y.com""#,
            ),
            (
                "roots, and a question with a slash",
                r#"{"a/b":{"roots":[{"uri":"file:///a"}]}}"#,
                r#"request/params/inputResponses/a~1b/roots [{"uri":"file:///a"}]"#,
            ),
            ("no object", r#"{"k":"x"}"#, r#"request/params/inputResponses/k "x""#),
            ("no answers", "[5]", "request/params/inputResponses [5]"),
        ] {
            let input = json::parse(text.as_bytes()).unwrap();
            let mut found = Vec::new();
            assert!(!answers(&mut found, &input), "{what}");
            let texts = found.iter().map(|it| {
                assert_eq!((it.role, it.named), (Role::Sink, false), "{what}");
                format!("{} {}", it.pointer, it.value.canonical())
            });
            assert_eq!(texts.collect::<Vec<_>>().join("; "), expected, "{what}");
        }
        let many: Vec<String> = (0..=MAX_SINKS).map(|n| format!(r#""a{n}":1"#)).collect();
        let many = json::parse(format!("{{{}}}", many.join(",")).as_bytes()).unwrap();
        assert!(answers(&mut Vec::new(), &many));
    }

    #[test]
    fn more_arguments_than_are_looked_up_are_reported() {
        let many: Vec<String> = (0..=MAX_SINKS).map(|n| format!(r#""a{n:03}":1"#)).collect();
        let input = format!("{{{}}}", many.join(","));
        assert!(found(None, &input).ends_with("more"));
        let fits = format!("{{{}}}", many[1..].join(","));
        assert!(!found(None, &fits).ends_with("more"));
    }
}
