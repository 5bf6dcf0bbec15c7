//! The provenance of one call: the level of each sink, and whom the call reaches.

use std::collections::HashSet;

use super::explanation::{Provenance, SinkOrigin, TOOL};
use super::extract;
use super::leaves::{each_leaf, each_value, has_blank};
use super::lookup::{self, Found, Known};
use super::pointers::Step;
use super::result::MAX_RESULT_VALUES;
use super::run::RunValues;
use super::sinks::{Argument, answers, arguments};
use super::undeclared::Undeclared;
use super::{ArgumentRoles, Destinations, Level, Reach, Role, ValueKey, action, joined};
use crate::decode::escapes::{self, Escapes};
use crate::json::raw::RawObject;
use crate::json::{self, Json};

/// A call of a tool that writes.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    pub key: &'a ValueKey,
    /// `server/tool`.
    pub tool: &'a str,
    /// Whether the tool destroys, spends or grants: then the user must ask for the action itself.
    pub high_risk: bool,
    pub roles: Option<&'a ArgumentRoles>,
    /// As registered.
    pub reach: Reach,
    pub destinations: &'a Destinations,
    /// The values of the run; `None` if no harness assigned one.
    pub run: Option<&'a RunValues>,
    pub input: &'a Json,
    /// What a caller of `/v1/authorize` says that the call is about, beside the arguments.
    pub resource: &'a str,
    /// The tool's JSON Schema.
    pub schema: Option<&'a str>,
    /// The names that the tool's schema declares. If it declares none, it is not known which names are the tool's own.
    pub declared: Option<&'a HashSet<Box<str>>>,
    /// What the client answers to questions of the server, if it does.
    pub answers: Option<&'a Json>,
}

/// Whether a sink has the value that the tool's schema says it has if it is left out: then it names no destination. An
/// argument that the schema requires is never left out.
fn is_left_out(
    argument: &Argument<'_>,
    (properties, required): &(RawObject, Option<Json>),
) -> bool {
    let default = |name: &str| {
        let default = properties.object(name)?.get("default").map(str::to_owned)?;
        json::parse(default.as_bytes()).ok()
    };
    let is_required = |name: &str| {
        matches!(required, Some(Json::Array(names))
            if names.iter().any(|it| it.as_str() == Some(name)))
    };
    let name = argument.pointer.strip_prefix('/').filter(|_| argument.role == Role::Sink);
    name.is_some_and(|name| default(name).as_ref() == Some(argument.value) && !is_required(name))
}

/// The values of a run, or none.
struct OfRun<'a>(Option<&'a RunValues>);

impl Known for OfRun<'_> {
    fn get(&self, hash: u64) -> Option<Found> {
        self.0?.get(hash)
    }
}

/// The number that a value is. A text counts if every reader takes it for the same amount: `1.200` is none.
fn number(value: &Json) -> Option<f64> {
    match value {
        Json::String(text) => {
            let (whole, cents) = text.split_once('.').unwrap_or((text, "0"));
            let digits = |digits: &str, most: usize| {
                let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
                digits.parse::<u64>().ok().filter(|_| digits.len() <= most && is_number)
            };
            let (number, fraction) = (digits(whole, 12)?, digits(cents, 2)?);
            let fraction = if cents.len() == 1 { fraction * 10 } else { fraction };
            // No reader takes it for an octal number.
            (whole == "0" || !whole.starts_with('0'))
                .then_some((number * 100 + fraction) as f64 / 100.0)
        }
        // Integers are within the range that a double holds exactly.
        Json::Integer(number) => Some(*number as f64),
        Json::Number(number) => Some(*number),
        _ => None,
    }
}

/// The folders of the paths in a detail that can lead out of the folder in which its name is used. `A: b` and `/a` are
/// titles. The last name of a path is that of a new file.
fn folders(value: &Json) -> Vec<Json> {
    let is_slash = |letter: char| matches!(letter, '/' | '\\');
    let folder = |text: &str| {
        let text = text.trim();
        let has_slash = |rest: &[u8]| rest.iter().any(|byte| is_slash(char::from(*byte)));
        let is_path = match text.as_bytes() {
            [b'/' | b'\\' | b'~', rest @ ..] if has_slash(rest) => true,
            [drive, b':', next, ..] if drive.is_ascii_alphabetic() && *next != b' ' => true,
            _ => text.split(is_slash).any(|component| component.trim() == ".."),
        };
        let end = text.rfind(is_slash).filter(|at| text.get(at + 1..) != Some(".."));
        is_path
            .then(|| Json::String(text.get(..end.unwrap_or(text.len())).unwrap_or(text).to_owned()))
    };
    let mut folders = Vec::new();
    each_value(value, &mut |leaf| {
        let text = leaf.as_str().unwrap_or_default();
        // A tool can decode a name.
        let (decoded, _) = escapes::decode(text, Escapes { percent: true, ..Escapes::default() });
        folders.extend(folder(&decoded).or_else(|| folder(text)));
    });
    folders
}

impl Call<'_> {
    /// Looks up every sink. The sinks are complete; [`Provenance::bounded`] leaves the first of them.
    #[must_use]
    pub fn provenance(&self) -> Provenance {
        let (mut arguments, mut more) = arguments(self.roles, self.input);
        if let Some(given) = self.answers {
            more |= answers(&mut arguments, given);
        }
        let schema = self.with_defaults();
        let is_left_out =
            |it: &Argument<'_>| schema.as_ref().is_some_and(|schema| is_left_out(it, schema));
        let given = arguments.iter().filter(|argument| !is_left_out(argument));
        let mut sinks: Vec<SinkOrigin> =
            given.filter_map(|argument| self.origin(argument, &arguments)).collect();
        let names = self.names_in_sinks(&arguments);
        sinks.extend(names.found.iter().map(|(pointer, name)| self.origin_of_name(pointer, name)));
        sinks.extend(self.unjoined(&arguments));
        sinks.extend(self.untrusted_resource());
        more |= names.more;
        if more {
            sinks.push(SinkOrigin::new(String::new(), Level::Nowhere));
        }
        let all_own = || {
            arguments.iter().all(|argument| is_left_out(argument) || self.is_own(argument))
                && names.found.iter().all(|(_, name)| self.is_own_name(name))
        };
        let reach = match self.reach {
            Reach::BySinks if sinks.is_empty() => Reach::Nobody,
            Reach::BySinks if !more && all_own() => Reach::Tenant,
            Reach::BySinks => Reach::Outside,
            registered => registered,
        };
        // The action alone is no destination: a call without sinks stays unknown.
        let mut lowest = sinks.iter().map(|sink| sink.level).min().unwrap_or(Level::Nowhere);
        if self.high_risk {
            let action = self.action();
            lowest = lowest.min(action.level);
            sinks.push(action);
        }
        // A sort takes more code, and there are few.
        let mut sorted: Vec<SinkOrigin> = Vec::with_capacity(sinks.len());
        for sink in sinks {
            let order = (sink.level, &sink.sink);
            let at = sorted.partition_point(|other| (other.level, &other.sink) < order);
            sorted.insert(at, sink);
        }
        Provenance {
            instruction_known: self.run.is_some_and(RunValues::is_instructed),
            lowest,
            reach,
            sinks: sorted,
        }
    }

    /// The tool itself as a sink: whether the run asks for what it does.
    fn action(&self) -> SinkOrigin {
        let asks = action::asks(self.key, self.tool, |hash| self.is_said(Some(hash)));
        let level = if asks { Level::Instruction } else { Level::Nowhere };
        let tool = Some(self.tool.to_owned());
        SinkOrigin { tool, ..SinkOrigin::new(TOOL.to_owned(), level) }
    }

    /// Whether the instruction, the plan or an approver stated a hash.
    fn is_said(&self, hash: Option<u64>) -> bool {
        let found = self.run.zip(hash).and_then(|(run, hash)| run.get(hash));
        found.is_some_and(|found| found.level == Level::Instruction)
    }

    /// The words that name a destination together, each with the pointer to the first. Those that the plan states are left
    /// out.
    fn pairs<'v>(&self, arguments: &'v [Argument<'_>]) -> Vec<(&'v str, &'v str, &'v str)> {
        let texts = arguments.iter().filter(|argument| argument.role == Role::Sink);
        let texts: Vec<_> = texts.filter_map(|it| Some((it, it.value.as_str()?))).collect();
        let mut pairs = Vec::new();
        for (argument, text) in &texts {
            let pointer = argument.pointer.as_str();
            if let Some((first, second)) = joined::words(pointer, text)
                && !self.is_stated(argument)
            {
                pairs.push((pointer, first, second));
            }
            for (second, name) in &texts {
                if joined::is_pair(pointer, &second.pointer)
                    && !(self.is_stated(argument) && self.is_stated(second))
                {
                    pairs.push((pointer, *text, *name));
                }
            }
        }
        pairs
    }

    /// The pairs of words that the instruction does not join, although it joins the second word with another one.
    fn unjoined(&self, arguments: &[Argument<'_>]) -> Vec<SinkOrigin> {
        let Some(run) = self.run else { return Vec::new() };
        let more = self.is_said(Some(joined::more(self.key)));
        let origin = |(pointer, first, second): (&str, &str, &str)| {
            if !(more || self.is_said(joined::second(self.key, second)))
                || self.is_said(joined::pair(self.key, first, second))
            {
                return None;
            }
            let whole = Json::String([first, "/", second].concat());
            let found = lookup::known_whole(self.key, &whole, run);
            let level = found.map_or(Level::Nowhere, |found| found.level);
            let sink = [pointer, "#pair"].concat();
            (level < Level::Instruction).then(|| SinkOrigin::new(sink, level))
        };
        self.pairs(arguments).into_iter().filter_map(origin).collect()
    }

    /// The resource, if it has a value of an untrusted result. Callers make up its text, so it is no sink otherwise.
    fn untrusted_resource(&self) -> Option<SinkOrigin> {
        let value = &Json::String(self.resource.to_owned());
        let known = &OfRun(self.run);
        let found = lookup::sink(self.key, (value, true), self.destinations, known)?;
        let sink = SinkOrigin::new("#resource".to_owned(), found.level);
        (found.level == Level::Untrusted).then(|| self.with_source(sink, found))
    }

    /// The hashes of all values that the call sends, and whether some are missing.
    #[must_use]
    pub fn sent(&self) -> (Vec<u64>, bool) {
        let (mut sent, mut incomplete) = extract::arguments(self.key, self.input, self.declared());
        let resource = Json::String(self.resource.to_owned());
        for beside in [Some(&resource), self.answers].into_iter().flatten() {
            let (found, more) = extract::arguments(self.key, beside, None);
            sent.extend(found);
            incomplete |= more;
        }
        let is_known = |text: &str| {
            let text = Json::String(text.to_owned());
            let found = lookup::known_whole(self.key, &text, &OfRun(self.run));
            found.is_some_and(|found| found.level >= Level::Trusted)
        };
        let (pairs, more) =
            joined::sent(self.key, self.input, &|hash| self.is_said(hash), &is_known);
        sent.extend(pairs);
        incomplete |= more;
        sent.sort_unstable();
        sent.dedup();
        incomplete |= sent.len() > MAX_RESULT_VALUES;
        sent.truncate(MAX_RESULT_VALUES);
        (sent, incomplete)
    }

    /// The hashes of all sinks, which an approver states by approving the call, and of the action. Contents are not
    /// stated: the approver saw a text, and no destination. No approval covers answers to questions.
    #[must_use]
    pub fn statement(&self) -> Vec<u64> {
        let (arguments, more) = arguments(self.roles, self.input);
        let sinks = || arguments.iter().filter(|argument| argument.role == Role::Sink);
        let mut stated: Vec<u64> =
            sinks().flat_map(|argument| lookup::hashes(self.key, argument.value)).collect();
        // If there are more arguments, some of them may be contents. So no names are stated then.
        if !more {
            let names = self.names_in_sinks(&arguments).found.into_iter();
            let names = names.flat_map(|(_, name)| lookup::hashes(self.key, &Json::String(name)));
            stated.extend(names);
        }
        let pairs = self.pairs(&arguments).into_iter();
        stated.extend(pairs.filter_map(|(_, first, second)| joined::pair(self.key, first, second)));
        if self.untrusted_resource().is_some() {
            stated.extend(lookup::hashes(self.key, &Json::String(self.resource.to_owned())));
        }
        if self.high_risk {
            stated.push(action::tool(self.key, self.tool));
            for sink in sinks() {
                each_leaf(sink.value, &mut |leaf| {
                    stated.extend(leaf.as_str().and_then(|text| joined::itself(self.key, text)));
                });
            }
        }
        stated
    }

    /// The undeclared names in sinks. A name in a value that the plan states is stated with it. A name to which
    /// a role's pointer leads is the tool's own.
    fn names_in_sinks(&self, arguments: &[Argument<'_>]) -> Undeclared {
        let Some(declared) = self.declared() else { return Undeclared::default() };
        let others = arguments.iter().filter(|it| it.role != Role::Sink || self.is_stated(it));
        let others: Vec<&Json> = others.map(|argument| argument.value).collect();
        let has_role = |steps: &[Step<'_>]| self.roles.is_some_and(|roles| roles.lead_to(steps));
        let is_own = |name: &str, steps: &[Step<'_>]| declared.contains(name) || has_role(steps);
        Undeclared::of(&is_own, self.input, &others)
    }

    /// The names that the schema declares, if it declares any.
    fn declared(&self) -> Option<&HashSet<Box<str>>> {
        self.declared.filter(|declared| !declared.is_empty())
    }

    /// Where a name came from. A name without a meaning of its own, such as an empty one, is known nowhere.
    fn origin_of_name(&self, pointer: &str, name: &str) -> SinkOrigin {
        let level = self.level_of_name(name, &OfRun(self.run));
        SinkOrigin::new([pointer, "#name"].concat(), level)
    }

    /// Whether a name is on the allow-list.
    fn is_own_name(&self, name: &str) -> bool {
        self.level_of_name(name, &OfRun(None)) == Level::Allowed
    }

    fn level_of_name(&self, name: &str, known: &OfRun<'_>) -> Level {
        let name = (&Json::String(name.to_owned()), true);
        let found = lookup::sink(self.key, name, self.destinations, known);
        found.map_or(Level::Nowhere, |found| found.level)
    }

    /// Hashes to add to the run's plan after the call. For each argument whose value the plan lets the agent choose from a
    /// result, there are two: the chosen value as a planned one, and the mark that the agent has chosen.
    #[must_use]
    pub fn choices(&self) -> Vec<u64> {
        let (arguments, _) = arguments(self.roles, self.input);
        let unstated = arguments.iter().filter(|argument| !self.is_stated(argument));
        let chosen = unstated.filter_map(|argument| {
            let value = self.choice(argument)?;
            let pointer = &argument.pointer;
            Some([
                lookup::planned(self.key, self.tool, pointer, value),
                lookup::chosen(self.key, self.tool, pointer),
            ])
        });
        chosen.flatten().collect()
    }

    /// The value of an argument, if the plan lets the agent choose it. The value must have been seen first in a trusted
    /// result of a tool that the plan names for this argument. The agent must not have chosen a value for the argument
    /// before. If the argument is a list, it must have exactly one item, which is the value.
    fn choice<'v>(&self, argument: &Argument<'v>) -> Option<&'v Json> {
        let run = self.run.filter(|run| run.holds_choices())?;
        let value = match argument.value {
            Json::Array(items) => match items.as_slice() {
                [only] => only,
                _ => return None,
            },
            other => other,
        };
        let found = lookup::known_whole(self.key, value, run)?;
        let (source, _) = run.source(found.source.filter(|_| found.level == Level::Trusted)?)?;
        let from = lookup::from(self.key, self.tool, &argument.pointer, &source.tool);
        let chosen = lookup::chosen(self.key, self.tool, &argument.pointer);
        (run.is_planned(from) && !run.is_planned(chosen)).then_some(value)
    }

    /// Where the value of one of the arguments came from; `None` if it names no destination.
    fn origin(&self, argument: &Argument<'_>, all: &[Argument<'_>]) -> Option<SinkOrigin> {
        let (known, nowhere) = (&OfRun(self.run), Found { level: Level::Nowhere, source: None });
        let folders = match argument.role {
            Role::Detail => folders(argument.value),
            _ => Vec::new(),
        };
        let (found, sink) = match argument.role {
            Role::Detail if !folders.is_empty() => {
                let folders = (&Json::Array(folders), true);
                let found = lookup::sink(self.key, folders, self.destinations, known)?;
                let links = lookup::links(self.key, argument.value, self.destinations, known);
                let links = links.filter(|links| links.level < found.level);
                (links.unwrap_or(found), argument.pointer.clone())
            }
            Role::Detail | Role::Content => (
                lookup::links(self.key, argument.value, self.destinations, known)?,
                [&argument.pointer, "#links"].concat(),
            ),
            // A tool can take an empty filter for "all".
            Role::Sink if self.high_risk && argument.named && has_blank(argument.value) => {
                (nowhere, argument.pointer.clone())
            }
            Role::Sink => {
                let found = self.sink(argument, known)?;
                let is_above = self.high_risk
                    && found.level == Level::Instruction
                    && self.is_above(argument, all);
                (if is_above { nowhere } else { found }, argument.pointer.clone())
            }
        };
        let is_planned = || self.is_stated(argument) || self.choice(argument).is_some();
        if found.level < Level::Instruction && is_planned() {
            return Some(SinkOrigin::new(sink, Level::Instruction));
        }
        Some(self.with_source(SinkOrigin::new(sink, found.level), found))
    }

    /// Whether an argument names only a folder of what the user named, such as `/work` after "delete /work/exports". A word
    /// is none if another argument has the word that the instruction joins with it, such as `acme` of `acme/shop`.
    fn is_above(&self, argument: &Argument<'_>, all: &[Argument<'_>]) -> bool {
        let mut is_above = false;
        each_leaf(argument.value, &mut |leaf| {
            let is_said = |hash| self.is_said(hash);
            is_above |= leaf.as_str().is_some_and(|it| joined::is_above(self.key, it, &is_said));
        });
        let word = argument.value.as_str().filter(|text| !text.contains(['/', '\\']));
        let is_joined = |text: &str, pointer: &str| {
            let end = text.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next();
            let is_said =
                |word| self.is_said(joined::pair(self.key, word, end.unwrap_or_default()));
            joined::can_be_apart(&argument.pointer, pointer) && word.is_some_and(is_said)
        };
        let is_second = |it: &Argument<'_>| {
            it.role == Role::Sink
                && it.value.as_str().is_some_and(|text| {
                    let is_pair = || joined::is_pair(&argument.pointer, &it.pointer);
                    is_joined(text, &it.pointer) || (!text.is_empty() && is_pair())
                })
        };
        is_above && !all.iter().any(is_second)
    }

    fn with_source(&self, mut origin: SinkOrigin, found: Found) -> SinkOrigin {
        let source = found.source.and_then(|source| self.run?.source(source));
        if let Some((source, number)) = source {
            origin.call = Some(number);
            origin.decision_id = Some(source.decision_id.clone()).filter(|id| !id.is_empty());
            origin.tool = Some(source.tool.clone());
        }
        origin
    }

    /// The properties of the tool's schema and the names of those that it requires, if it may have defaults. The schema is
    /// parsed once for all arguments.
    fn with_defaults(&self) -> Option<(RawObject, Option<Json>)> {
        // Most schemas have none.
        let schema = self.schema.filter(|schema| schema.contains("\"default\""))?;
        let schema = RawObject::parse(schema)?;
        let required = schema.get("required").and_then(|it| json::parse(it.as_bytes()).ok());
        Some((schema.object("properties")?, required))
    }

    /// The level of a sink. [`Self::names_in_sinks`] judges the names in the arguments if the schema declares any, but
    /// not those in answers, whose pointers begin without a slash.
    fn sink(&self, argument: &Argument<'_>, known: &OfRun<'_>) -> Option<Found> {
        let value = (argument.value, argument.named);
        match self.declared().is_some() && argument.pointer.starts_with('/') {
            true => lookup::values(self.key, value, self.destinations, known),
            false => lookup::sink(self.key, value, self.destinations, known),
        }
    }

    /// Whether the run's plan states this value for this argument. Of a list, each item must be stated, or the sum of the
    /// numbers must be within the limit.
    fn is_stated(&self, argument: &Argument<'_>) -> bool {
        let Some(run) = self.run.filter(|run| run.has_plan()) else { return false };
        let planned = |value: &Json| {
            run.is_planned(lookup::planned(self.key, self.tool, &argument.pointer, value))
        };
        let limited = lookup::limited(self.key, self.tool, &argument.pointer);
        let is_within = |number| run.is_within(limited, number);
        let value = argument.value;
        if planned(value) || number(value).is_some_and(is_within) {
            return true;
        }
        let Json::Array(items) = value else { return false };
        let numbers = || items.iter().map(number);
        !items.is_empty()
            && (items.iter().all(planned)
                || numbers().all(|item| item.is_some_and(is_within))
                    && numbers().sum::<Option<f64>>().is_some_and(is_within))
    }

    /// Whether an argument names only destinations on the allow-list, or none.
    fn is_own(&self, argument: &Argument<'_>) -> bool {
        if argument.role != Role::Sink {
            return true;
        }
        let found = self.sink(argument, &OfRun(None));
        found.is_none_or(|found| found.level == Level::Allowed)
    }
}
