//! The provenance of one call: the level of each sink, and whom the call reaches.

use std::collections::HashSet;
use std::ptr;

use super::action::Named;
use super::explanation::{Provenance, SinkOrigin, TOOL};
use super::extract;
use super::leaves::{each_leaf, each_value, has_blank};
use super::link::SLASHES;
use super::lookup::{self, Found, Known, NOWHERE};
use super::plan::number;
use super::pointers::{Step, first_step, unescaped};
use super::result::MAX_RESULT_VALUES;
use super::run::RunValues;
use super::search::trim_end;
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

/// The folders of the paths in a detail that can lead out of the folder in which its name is used. `A: b` and `/a` are
/// titles. The last name of a path is that of a new file.
fn folders(value: &Json) -> Vec<Json> {
    let mut folders = Vec::new();
    each_value(value, &mut |leaf| {
        let text = leaf.as_str().unwrap_or_default();
        // A tool can decode a name.
        let (decoded, _) = escapes::decode(text, Escapes { percent: true, ..Escapes::default() });
        let folder = folder(&decoded).or_else(|| folder(text));
        folders.extend(folder.map(|folder| Json::String(folder.to_owned())));
    });
    folders
}

fn folder(text: &str) -> Option<&str> {
    let text = text.trim();
    let is_slash = |byte: &u8| matches!(byte, b'/' | b'\\');
    let is_path = match text.as_bytes() {
        [b'/' | b'\\' | b'~', rest @ ..] if rest.iter().any(is_slash) => true,
        [drive, b':', next, ..] if drive.is_ascii_alphabetic() && *next != b' ' => true,
        _ => text.split(SLASHES).any(|component| component.trim() == ".."),
    };
    let end = text.bytes().rposition(|byte| is_slash(&byte));
    let end = end.filter(|at| text.get(at + 1..) != Some(".."));
    is_path.then(|| text.get(..end.unwrap_or(text.len())).unwrap_or(text))
}

/// Adds a sink to a list whose lowest levels come first. A sort takes more code, and there are few.
fn add(sinks: &mut Vec<SinkOrigin>, sink: SinkOrigin) {
    let order = (sink.level, &sink.sink);
    let at = sinks.partition_point(|other| (other.level, &other.sink) < order);
    sinks.insert(at, sink);
}

impl Call<'_> {
    /// Looks up every sink. The sinks are complete; [`Provenance::bounded`] leaves the first of them.
    #[must_use]
    pub fn provenance(&self) -> Provenance {
        let (mut arguments, mut more) = arguments(self.roles, self.input);
        if let Some(given) = self.answers {
            more |= answers(&mut arguments, given);
        }
        let mut sinks = Vec::new();
        let (mut named, mut all_own) = (Vec::new(), self.reach == Reach::BySinks);
        let is_left_out = |it: &Argument<'_>| self.is_left_out(it) || self.is_usual(it);
        for argument in arguments.iter().filter(|it| !is_left_out(it)) {
            if let Some(origin) = self.origin(argument, &arguments) {
                if argument.role == Role::Sink && origin.level == Level::Instruction {
                    let (pointer, value) = (argument.pointer.as_str(), argument.value);
                    named.push(Named { pointer, value, declared: self.is_declared(argument) });
                }
                add(&mut sinks, origin);
            }
            all_own = all_own && self.is_own(argument);
        }
        let names = self.names_in_sinks(&arguments);
        for (pointer, name) in &names.found {
            let level = self.level_of_name(name, self.run);
            add(&mut sinks, SinkOrigin::new([pointer, "#name"].concat(), level));
            all_own = all_own && self.level_of_name(name, None) == Level::Allowed;
        }
        self.each_pair(&arguments, &mut |pointer, first, second| {
            if let Some(level) = self.unjoined(first, second) {
                add(&mut sinks, SinkOrigin::new([pointer, "#pair"].concat(), level));
            }
        });
        if let Some(found) = self.untrusted_resource() {
            let origin = SinkOrigin::new("#resource".to_owned(), found.level);
            add(&mut sinks, self.with_source(origin, found));
        }
        if let Some((name, hash)) = self.amount_left_out()
            && !self.is_said(Some(hash))
        {
            add(&mut sinks, SinkOrigin::new(["/", name].concat(), Level::Nowhere));
        }
        more |= names.more;
        if more {
            add(&mut sinks, SinkOrigin::new(String::new(), Level::Nowhere));
        }
        let reach = match self.reach {
            Reach::BySinks if sinks.is_empty() => Reach::Nobody,
            Reach::BySinks if !more && all_own => Reach::Tenant,
            Reach::BySinks => Reach::Outside,
            registered => registered,
        };
        let modes = self.modes(&arguments);
        // With links in a content only, the call is for nothing that the user named.
        let is_for_none = named.is_empty()
            && !sinks.is_empty()
            && sinks.iter().all(|sink| sink.level == Level::Instruction);
        let asks = !is_for_none && self.asks(&modes, &named);
        if asks {
            sinks.retain(|sink| !modes.iter().any(|mode| mode.pointer == sink.sink));
        }
        // The action alone is no destination: a call without sinks stays unknown, unless the tool takes nothing.
        let none = if self.takes_nothing() { Level::Instruction } else { Level::Nowhere };
        let mut lowest = sinks.first().map_or(none, |sink| sink.level);
        if self.high_risk {
            let action = self.action(asks);
            lowest = lowest.min(action.level);
            add(&mut sinks, action);
        }
        let instruction_known = self.run.is_some_and(RunValues::is_instructed);
        Provenance { instruction_known, lowest, reach, sinks }
    }

    /// The tool itself as a sink: whether the run asks to do what it does.
    fn action(&self, asks: bool) -> SinkOrigin {
        let is_tool = || self.is_said(Some(action::tool(self.key, self.tool)));
        let level = if asks || is_tool() { Level::Instruction } else { Level::Nowhere };
        let tool = Some(self.tool.to_owned());
        SinkOrigin { tool, ..SinkOrigin::new(TOOL.to_owned(), level) }
    }

    /// Whether the instruction, the plan or an approver stated a hash.
    // Inlined into each caller, it takes much more code.
    #[inline(never)]
    pub(super) fn is_said(&self, hash: Option<u64>) -> bool {
        let found = self.run.zip(hash).and_then(|(run, hash)| run.get(hash));
        found.is_some_and(|found| found.level == Level::Instruction)
    }

    /// Calls `found` with the words that name a destination together, and with the pointer to the first. Those that the plan
    /// states are left out.
    fn each_pair<'v>(
        &self,
        arguments: &'v [Argument<'_>],
        found: &mut dyn FnMut(&'v str, &'v str, &'v str),
    ) {
        let text = |it: &Argument<'v>| (it.role == Role::Sink).then(|| it.value.as_str()).flatten();
        for argument in arguments {
            let Some(first) = text(argument) else { continue };
            let pointer = argument.pointer.as_str();
            if let Some((first, second)) = joined::words(pointer, first)
                && !self.is_stated(argument)
            {
                found(pointer, first, second);
            }
            for other in arguments {
                if let Some(second) = text(other)
                    && joined::is_pair(pointer, &other.pointer)
                    && !(self.is_stated(argument) && self.is_stated(other))
                    && !arguments.iter().any(|third| {
                        // `organization` beside `owner` and `repo`.
                        !ptr::eq(third, argument)
                            && joined::is_pair(&third.pointer, &other.pointer)
                            && text(third)
                                .is_some_and(|it| self.is_said(joined::pair(self.key, it, second)))
                    })
                {
                    found(pointer, first, second);
                }
            }
        }
    }

    /// The level of two words that the instruction does not join, although it joins the second one with another one.
    fn unjoined(&self, first: &str, second: &str) -> Option<Level> {
        let run = self.run?;
        if !(self.is_said(Some(joined::more(self.key)))
            || self.is_said(joined::second(self.key, second)))
            || self.is_said(joined::pair(self.key, first, second))
        {
            return None;
        }
        let whole = [first, "/", second].concat();
        let level = lookup::known_text(self.key, &whole, run).map_or(Level::Nowhere, |it| it.level);
        (level < Level::Instruction).then_some(level)
    }

    /// The resource, if it has a value of an untrusted result. Callers make up its text, so it is no sink otherwise.
    fn untrusted_resource(&self) -> Option<Found> {
        let found = lookup::text(self.key, self.resource, self.destinations, &self.run)?;
        (found.level == Level::Untrusted).then_some(found)
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
            let found = lookup::known_text(self.key, text, &self.run);
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
        let mut stated = Vec::new();
        let mut add = |value: &Json| stated.append(&mut lookup::hashes(self.key, value));
        sinks().for_each(|argument| add(argument.value));
        // If there are more arguments, some of them may be contents. So no names are stated then.
        if !more {
            for (_, name) in self.names_in_sinks(&arguments).found {
                add(&Json::String(name.to_owned()));
            }
        }
        sinks().for_each(|argument| self.each_use(argument, &mut |hash, _| stated.push(hash)));
        stated.extend(self.amount_left_out().map(|(_, hash)| hash));
        self.each_pair(&arguments, &mut |_, first, second| {
            stated.extend(joined::pair(self.key, first, second));
        });
        if self.untrusted_resource().is_some() {
            stated.append(&mut lookup::hashes(self.key, &Json::String(self.resource.to_owned())));
        }
        if self.high_risk {
            stated.push(action::tool(self.key, self.tool));
            for sink in sinks() {
                each_leaf(sink.value, &mut |leaf| {
                    let Some(text) = leaf.as_str() else { return };
                    stated.extend(joined::itself(self.key, text));
                });
            }
        }
        stated
    }

    /// The undeclared names in sinks. A name in a value that the plan states is stated with it. A name to which
    /// a role's pointer leads is the tool's own.
    fn names_in_sinks(&self, arguments: &[Argument<'_>]) -> Undeclared<'_> {
        let Some(declared) = self.declared() else { return Undeclared::default() };
        let others = arguments.iter().filter(|it| it.role != Role::Sink || self.is_stated(it));
        let others: Vec<&Json> = others.map(|argument| argument.value).collect();
        let has_role = |steps: &[Step<'_>]| self.roles.is_some_and(|roles| roles.lead_to(steps));
        let is_own = |name: &str, steps: &[Step<'_>]| declared.contains(name) || has_role(steps);
        Undeclared::of(&is_own, self.input, &others, !self.high_risk)
    }

    /// Whether an argument is one of the tool's.
    fn is_declared(&self, argument: &Argument<'_>) -> bool {
        let name = first_step(&argument.pointer).map(|(name, _)| unescaped(name));
        let has = |all: &HashSet<Box<str>>| name.is_some_and(|name| all.contains(name.as_str()));
        self.declared().is_none_or(has)
    }

    /// The names that the schema declares, if it declares any.
    pub(super) fn declared(&self) -> Option<&HashSet<Box<str>>> {
        self.declared.filter(|declared| !declared.is_empty())
    }

    /// The level of a name. A name without a meaning of its own, such as an empty one, is known nowhere.
    fn level_of_name(&self, name: &str, run: Option<&RunValues>) -> Level {
        let found = lookup::text(self.key, name, self.destinations, &run);
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
        let known = &self.run;
        let mut mark = "";
        let found = match argument.role {
            // A tool can take an empty filter for "all".
            Role::Sink if self.high_risk && argument.named && has_blank(argument.value) => NOWHERE,
            Role::Sink => {
                let found = self.used(argument, self.sink(argument, known)?);
                let is_above = found.level == Level::Instruction
                    && self.high_risk
                    && self.is_above(argument, all);
                if is_above { NOWHERE } else { found }
            }
            role => {
                let links = lookup::links(self.key, argument.value, self.destinations, known);
                let folders =
                    if role == Role::Detail { folders(argument.value) } else { Vec::new() };
                if folders.is_empty() {
                    mark = "#links";
                    links?
                } else {
                    let folders = (&Json::Array(folders), true);
                    let found = lookup::sink(self.key, folders, self.destinations, known)?;
                    links.filter(|links| links.level < found.level).unwrap_or(found)
                }
            }
        };
        let sink = [&argument.pointer, mark].concat();
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
        let word = argument.value.as_str().filter(|text| !text.contains(SLASHES));
        let is_joined = |text: &str, pointer: &str| {
            let end = trim_end(text, &SLASHES).rsplit(SLASHES).next();
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

    /// Whether a sink has the value that the tool's schema says it has if it is left out: then it names no destination. An
    /// argument that the schema requires is never left out. If a tool of high risk has a default for where it acts, the user
    /// may have meant another place.
    fn is_left_out(&self, argument: &Argument<'_>) -> bool {
        let Some(name) = argument.pointer.strip_prefix('/') else { return false };
        // Most schemas have no default.
        let schema = self.schema.filter(|schema| schema.contains("\"default\""));
        let (Some(schema), Role::Sink) = (schema, argument.role) else { return false };
        let default = || {
            let property = RawObject::parse(&self.property(argument)?)?;
            json::parse(property.get("default")?.as_bytes()).ok()
        };
        let is_required = || {
            let quoted = ["\"", name, "\""].concat();
            let schema = RawObject::parse(schema);
            schema.is_some_and(|it| it.get("required").is_some_and(|all| all.contains(&quoted)))
        };
        !(self.high_risk && action::is_place(name))
            && default().as_ref() == Some(argument.value)
            && !is_required()
    }

    /// The level of a sink. [`Self::names_in_sinks`] judges the names in the arguments if the schema declares any, but
    /// not those in answers, whose pointers begin without a slash.
    fn sink(&self, argument: &Argument<'_>, known: &dyn Known) -> Option<Found> {
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
        // A plan names each member of a list by `*`.
        let star =
            |step: &'_ str| step.bytes().all(|byte| byte.is_ascii_digit()) && !step.is_empty();
        let steps = argument.pointer.split('/').map(|step| if star(step) { "*" } else { step });
        let pointers = [argument.pointer.clone(), steps.collect::<Vec<_>>().join("/")];
        let planned = |value: &Json| {
            let of = |pointer| lookup::planned(self.key, self.tool, pointer, value);
            pointers.iter().any(|pointer| run.is_planned(of(pointer)))
        };
        let limited = lookup::limited(self.key, self.tool, &argument.pointer);
        let is_within = |number| run.is_within(limited, number);
        let value = argument.value;
        if planned(value) || number(value).is_some_and(is_within) {
            return true;
        }
        let Json::Array(items) = value else { return false };
        let mut sum = 0.0;
        let mut add = |number: f64| {
            sum += number;
            is_within(number)
        };
        !items.is_empty()
            && (items.iter().all(planned)
                || items.iter().all(|item| number(item).is_some_and(&mut add)) && is_within(sum))
    }

    /// Whether an argument names only destinations on the allow-list, or none.
    fn is_own(&self, argument: &Argument<'_>) -> bool {
        if argument.role != Role::Sink {
            return true;
        }
        let found = self.sink(argument, &None::<&RunValues>);
        found.is_none_or(|found| found.level == Level::Allowed)
    }
}
