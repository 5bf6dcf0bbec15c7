//! Tools and constraints as JSON: how people write what a warrant allows, and how it is shown.
//!
//! `{"refund": {"amount": {"range": {"max": 50}}}}` has tools, their arguments, and a constraint for each
//! argument. A constraint is an object with one member: the name of its type, with its body.
//!
//! INVARIANT (inverse): what [`written`] returns, [`constraint`] reads as the same constraint. Exceptions are
//! what Gateward never evaluates, and what no value fits: it is shown, but cannot be made. That is a type such as
//! `regex`, a number that no argument has, and what [`must_be`] says.

use gateward_core::json::{Json, MAX_INTEGER};
use gateward_core::warrant::cbor::{Reader, Writer};
use gateward_core::warrant::constraint::fit::{Undecidable, value_fits};
use gateward_core::warrant::constraint::{
    Arguments, Constraint, Pattern, Range, Subpath, UrlPattern, UrlSafe, Work,
};
use serde_json::{Map, Value, json};

/// The names of the types that can be made.
const NAMES: &str = "wildcard, exact, pattern, range, one_of, not_one_of, cidr, url_pattern, contains, subset, \
                     all, any, not, subpath, url_safe";

/// Why a document is not in this form: the JSON pointer of the place, and what it must be.
type Wrong = String;

/// The constraints by tool, sorted by name.
pub fn tools(document: &Json) -> Result<Vec<(String, Arguments)>, Wrong> {
    let mut tools = Vec::new();
    for (tool, arguments) in object(document, "")? {
        let at = inside("", tool);
        let mut constraints = Vec::new();
        for (name, value) in object(arguments, &at)? {
            constraints.push((name.clone(), constraint(value, &inside(&at, name))?));
        }
        // Objects are sorted by UTF-16 units, and warrants by bytes.
        constraints.sort_by(|(a, _), (b, _)| a.cmp(b));
        tools.push((tool.clone(), Arguments { constraints, allow_unknown: false }));
    }
    tools.sort_by(|(a, _), (b, _)| a.cmp(b));
    if tools.is_empty() { Err(wrong("", "name at least one tool")) } else { Ok(tools) }
}

/// Reads one constraint. `at` is the JSON pointer of its place.
pub fn constraint(value: &Json, at: &str) -> Result<Constraint, Wrong> {
    let [(name, body)] = object(value, at)? else {
        let must = "it must have one member: the name of the constraint, with its body";
        return Err(wrong(at, must));
    };
    let at = inside(at, name);
    let constraint = match name.as_str() {
        "wildcard" if *body == Json::Null => Constraint::Wildcard,
        "wildcard" => return Err(wrong(&at, "it must be null")),
        "exact" => Constraint::Exact(body.clone()),
        "pattern" => Constraint::Pattern(Pattern::new(text(body, &at)?)),
        "range" => Constraint::Range(range(body, &at)?),
        "one_of" => Constraint::OneOf(array(body, &at)?.to_vec()),
        "not_one_of" => Constraint::NotOneOf(array(body, &at)?.to_vec()),
        "cidr" => Constraint::cidr(&text(body, &at)?)
            .ok_or_else(|| wrong(&at, "it must be a network in CIDR notation, or an address"))?,
        "url_pattern" => UrlPattern::new(&text(body, &at)?)
            .map(|pattern| Constraint::UrlPattern(Box::new(pattern)))
            .ok_or_else(|| wrong(&at, "it must be `scheme://host:port/path`"))?,
        "contains" => Constraint::Contains(array(body, &at)?.to_vec()),
        "subset" => Constraint::Subset(array(body, &at)?.to_vec()),
        "all" => Constraint::All(constraints(body, &at)?),
        "any" => Constraint::Any(constraints(body, &at)?),
        "not" => Constraint::Not(Box::new(constraint(body, &at)?)),
        "subpath" => Constraint::Subpath(subpath(body, &at)?),
        "url_safe" => Constraint::UrlSafe(Box::new(url_safe(body, &at)?)),
        _ => return Err(wrong(&at, &format!("there is no such constraint; there are {NAMES}"))),
    };
    // The reader of warrants has bounds of its own.
    let mut writer = Writer::default();
    constraint.write(&mut writer);
    if let Err(error) = Constraint::read(&mut Reader::new(&writer.bytes)) {
        return Err(wrong(&at, error.0));
    }
    match must_be(&constraint) {
        None => Ok(constraint),
        Some(must) => Err(wrong(&at, must)),
    }
}

/// What a constraint must be so that a value can fit it; `None` if one can. A worker reads the others too, and denies each
/// call.
fn must_be(constraint: &Constraint) -> Option<&'static str> {
    // A constraint on texts that cannot be evaluated for this one cannot be for any.
    let text = Json::String("https://a.example/".to_owned());
    let is_evaluated =
        || value_fits(constraint, &text, &mut Work::default()) != Err(Undecidable::Unsupported);
    match constraint {
        Constraint::Pattern(_) if !is_evaluated() => {
            Some("it must not have `[`, `]` or `**`, which are not evaluated")
        }
        Constraint::UrlPattern(pattern) if pattern.as_str().contains("**") => {
            Some("it must not have `**`, which is not evaluated")
        }
        Constraint::OneOf(values) if values.is_empty() => Some("it must have a value"),
        Constraint::Range(range) if has_no_number(range) => {
            Some("a number must be between `min` and `max`")
        }
        Constraint::UrlSafe(_) if !is_evaluated() => {
            Some("its domains must be hosts in lower case, such as `a.example` or `*.a.example`")
        }
        Constraint::UrlSafe(safe) if !safe.schemes.iter().any(|scheme| is_read(scheme)) => {
            Some("it must have a scheme of http, https, ws, wss and ftp")
        }
        Constraint::UrlSafe(safe) => {
            let is_empty = safe.allow_domains.as_ref().is_some_and(Vec::is_empty)
                || safe.allow_ports.as_ref().is_some_and(Vec::is_empty);
            is_empty.then_some("its lists of what is allowed must not be empty")
        }
        _ => None,
    }
}

fn has_no_number(range: &Range) -> bool {
    match (range.min, range.max) {
        (Some(min), Some(max)) => min > max || (min == max && !range.contains(min)),
        _ => false,
    }
}

/// Whether a worker reads URLs of this scheme.
fn is_read(scheme: &str) -> bool {
    ["http", "https", "ws", "wss", "ftp"].iter().any(|read| read.eq_ignore_ascii_case(scheme))
}

fn constraints(value: &Json, at: &str) -> Result<Vec<Constraint>, Wrong> {
    let items = array(value, at)?.iter().enumerate();
    items.map(|(index, item)| constraint(item, &inside(at, &index.to_string()))).collect()
}

fn range(value: &Json, at: &str) -> Result<Range, Wrong> {
    let body = Members::new(value, at, &["min", "max", "min_inclusive", "max_inclusive"])?;
    let bound = |name: &str| match body.get(name) {
        None => Ok(None),
        Some(Json::Integer(number)) => Ok(Some(*number as f64)),
        Some(Json::Number(number)) => Ok(Some(*number)),
        Some(_) => Err(wrong(&inside(at, name), "it must be a number")),
    };
    Ok(Range {
        min: bound("min")?,
        max: bound("max")?,
        min_inclusive: body.flag("min_inclusive", true)?,
        max_inclusive: body.flag("max_inclusive", true)?,
    })
}

fn subpath(value: &Json, at: &str) -> Result<Subpath, Wrong> {
    let body = Members::new(value, at, &["root", "case_sensitive", "allow_equal"])?;
    let root = body.get("root").ok_or_else(|| wrong(at, "it must have a `root`"))?;
    Ok(Subpath {
        root: text(root, &inside(at, "root"))?,
        case_sensitive: body.flag("case_sensitive", true)?,
        allow_equal: body.flag("allow_equal", true)?,
    })
}

/// The members of `url_safe` that block, in the order of [`UrlSafe::blocks`].
const BLOCKS: [&str; 4] = ["block_private", "block_loopback", "block_metadata", "block_reserved"];

fn url_safe(value: &Json, at: &str) -> Result<UrlSafe, Wrong> {
    let others = ["schemes", "allow_domains", "deny_domains", "allow_ports", "block_internal_tlds"];
    let body = Members::new(value, at, &[&BLOCKS[..], &others[..]].concat())?;
    let default = UrlSafe::default();
    let list = |name: &str| {
        body.get(name).map(|list| array(list, &inside(at, name)).map(|it| (it, inside(at, name))))
    };
    let texts = |name: &str| match list(name).transpose()? {
        None => Ok(None),
        Some((items, at)) => {
            items.iter().map(|item| text(item, &at)).collect::<Result<Vec<_>, _>>().map(Some)
        }
    };
    let ports = match list("allow_ports").transpose()? {
        None => None,
        Some((items, at)) => {
            Some(items.iter().map(|item| port(item, &at)).collect::<Result<_, _>>()?)
        }
    };
    let mut blocks = default.blocks;
    for (name, block) in BLOCKS.iter().zip(&mut blocks) {
        *block = body.flag(name, *block)?;
    }
    Ok(UrlSafe {
        schemes: texts("schemes")?.unwrap_or(default.schemes),
        allow_domains: texts("allow_domains")?,
        deny_domains: texts("deny_domains")?,
        allow_ports: ports,
        blocks,
        block_internal_tlds: body.flag("block_internal_tlds", default.block_internal_tlds)?,
    })
}

fn port(value: &Json, at: &str) -> Result<u16, Wrong> {
    let port = match value {
        Json::Integer(number) => u16::try_from(*number).ok(),
        _ => None,
    };
    port.ok_or_else(|| wrong(at, "it must be a list of ports"))
}

/// An object with members of these names.
struct Members<'a> {
    fields: &'a [(String, Json)],
    at: &'a str,
}

impl<'a> Members<'a> {
    fn new(value: &'a Json, at: &'a str, names: &[&str]) -> Result<Self, Wrong> {
        let fields = object(value, at)?;
        match fields.iter().find(|(name, _)| !names.contains(&name.as_str())) {
            None => Ok(Self { fields, at }),
            Some((name, _)) => {
                let known = names.join(", ");
                Err(wrong(&inside(at, name), &format!("it is unknown; there are {known}")))
            }
        }
    }

    fn get(&self, name: &str) -> Option<&'a Json> {
        self.fields.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    fn flag(&self, name: &str, default: bool) -> Result<bool, Wrong> {
        match self.get(name) {
            None => Ok(default),
            Some(Json::Bool(flag)) => Ok(*flag),
            Some(_) => Err(wrong(&inside(self.at, name), "it must be true or false")),
        }
    }
}

fn object<'a>(value: &'a Json, at: &str) -> Result<&'a [(String, Json)], Wrong> {
    match value {
        Json::Object(fields) => Ok(fields),
        _ => Err(wrong(at, "it must be an object")),
    }
}

fn array<'a>(value: &'a Json, at: &str) -> Result<&'a [Json], Wrong> {
    match value {
        Json::Array(items) => Ok(items),
        _ => Err(wrong(at, "it must be a list")),
    }
}

fn text(value: &Json, at: &str) -> Result<String, Wrong> {
    let text = value.as_str().ok_or_else(|| wrong(at, "it must be a text"))?;
    Ok(text.to_owned())
}

/// The JSON pointer (RFC 6901) of a member.
fn inside(at: &str, name: &str) -> String {
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn wrong(at: &str, must: &str) -> Wrong {
    if at.is_empty() { must.to_owned() } else { format!("{at}: {must}") }
}

/// A constraint as JSON. Members with their default are left out.
pub fn written(constraint: &Constraint) -> Value {
    let values = |values: &[Json]| Value::Array(values.iter().map(value).collect());
    let all = |all: &[Constraint]| Value::Array(all.iter().map(written).collect());
    let body = match constraint {
        Constraint::Wildcard => Value::Null,
        Constraint::Exact(exact) => value(exact),
        Constraint::Pattern(pattern) => json!(pattern.as_str()),
        Constraint::Range(range) => Value::Object(written_range(range)),
        Constraint::OneOf(list)
        | Constraint::NotOneOf(list)
        | Constraint::Contains(list)
        | Constraint::Subset(list) => values(list),
        Constraint::Cidr(text, _) => json!(text),
        Constraint::UrlPattern(pattern) => json!(pattern.as_str()),
        Constraint::All(list) | Constraint::Any(list) => all(list),
        Constraint::Not(inner) => written(inner),
        Constraint::Subpath(subpath) => Value::Object(written_subpath(subpath)),
        Constraint::UrlSafe(safe) => Value::Object(written_url_safe(safe)),
        // The bytes of the body, which is in CBOR.
        Constraint::Unsupported(_, body) => json!(hex::encode(body)),
    };
    Value::Object(Map::from_iter([(constraint.name(), body)]))
}

/// The constraints on the arguments of one tool.
pub fn written_arguments(arguments: &Arguments) -> Value {
    let constraints = arguments.constraints.iter();
    Value::Object(constraints.map(|(name, it)| (name.clone(), written(it))).collect())
}

fn written_range(range: &Range) -> Map<String, Value> {
    let bound = |name: &str, bound: Option<f64>| bound.map(|it| (name.to_owned(), number(it)));
    let flag = |name: &str, flag: bool| (!flag).then(|| (name.to_owned(), json!(false)));
    let members = [
        bound("min", range.min),
        bound("max", range.max),
        flag("min_inclusive", range.min_inclusive),
        flag("max_inclusive", range.max_inclusive),
    ];
    members.into_iter().flatten().collect()
}

fn written_subpath(subpath: &Subpath) -> Map<String, Value> {
    let mut members = Map::from_iter([("root".to_owned(), json!(subpath.root))]);
    for (name, flag) in
        [("case_sensitive", subpath.case_sensitive), ("allow_equal", subpath.allow_equal)]
    {
        if !flag {
            members.insert(name.to_owned(), json!(false));
        }
    }
    members
}

fn written_url_safe(safe: &UrlSafe) -> Map<String, Value> {
    let default = UrlSafe::default();
    let schemes = (safe.schemes != default.schemes).then(|| json!(safe.schemes));
    let optional = [
        ("schemes", schemes),
        ("allow_domains", safe.allow_domains.as_ref().map(|list| json!(list))),
        ("deny_domains", safe.deny_domains.as_ref().map(|list| json!(list))),
        ("allow_ports", safe.allow_ports.as_ref().map(|list| json!(list))),
        ("block_internal_tlds", safe.block_internal_tlds.then(|| json!(true))),
    ];
    let blocks = BLOCKS.iter().zip(safe.blocks);
    let blocks = blocks.map(|(name, block)| (*name, (!block).then(|| json!(false))));
    let members = optional.into_iter().chain(blocks);
    members.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// A whole number without a point, as people write it.
fn number(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() <= MAX_INTEGER as f64 {
        json!(number as i64)
    } else {
        json!(number)
    }
}

fn value(json: &Json) -> Value {
    let text = json.canonical();
    // Warrants may have numbers that JSON lacks, such as infinity.
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

#[cfg(test)]
mod tests;
