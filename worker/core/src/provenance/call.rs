//! The provenance of one call: the level of each sink, and whom the call reaches.

use std::collections::HashSet;

use super::explanation::{Provenance, SinkOrigin, TOOL};
use super::leaves::has_blank;
use super::lookup::{self, Found, Known};
use super::pointers::Step;
use super::run::RunValues;
use super::sinks::{Argument, answers, arguments};
use super::undeclared::Undeclared;
use super::{ArgumentRoles, Destinations, Level, Reach, Role, ValueKey, action, joined};
use crate::json::Json;

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
    /// The names that the tool's schema declares. If it declares none, it is not known which names are the tool's own.
    pub declared: Option<&'a HashSet<Box<str>>>,
    /// What the client answers to questions of the server, if it does.
    pub answers: Option<&'a Json>,
}

/// The values of a run, or none.
struct OfRun<'a>(Option<&'a RunValues>);

impl Known for OfRun<'_> {
    fn get(&self, hash: u64) -> Option<Found> {
        self.0?.get(hash)
    }
}

fn number(value: &Json) -> Option<f64> {
    match value {
        // Integers are within the range that a double holds exactly.
        Json::Integer(number) => Some(*number as f64),
        Json::Number(number) => Some(*number),
        _ => None,
    }
}

impl Call<'_> {
    /// Looks up every sink. The sinks are complete; [`Provenance::bounded`] leaves the first of them.
    #[must_use]
    pub fn provenance(&self) -> Provenance {
        let (mut arguments, mut more) = arguments(self.roles, self.input);
        if let Some(given) = self.answers {
            more |= answers(&mut arguments, given);
        }
        let mut sinks: Vec<SinkOrigin> =
            arguments.iter().filter_map(|argument| self.origin(argument)).collect();
        let names = self.names_in_sinks(&arguments);
        sinks.extend(names.found.iter().map(|(pointer, name)| self.origin_of_name(pointer, name)));
        sinks.extend(self.unjoined(&arguments));
        more |= names.more;
        if more {
            sinks.push(SinkOrigin::new(String::new(), Level::Nowhere));
        }
        let all_own = || {
            arguments.iter().all(|argument| self.is_own(argument))
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
        sinks
            .sort_unstable_by(|one, other| (one.level, &one.sink).cmp(&(other.level, &other.sink)));
        Provenance {
            instruction_known: self.run.is_some_and(RunValues::is_instructed),
            lowest,
            reach,
            sinks,
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
            for other in joined::seconds(pointer) {
                if let Some((second, name)) = texts.iter().find(|(it, _)| it.pointer == other)
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
            let found = lookup::whole(self.key, &whole).and_then(|hash| run.get(hash));
            let level = found.map_or(Level::Nowhere, |found| found.level);
            let sink = [pointer, "#pair"].concat();
            (level < Level::Instruction).then(|| SinkOrigin::new(sink, level))
        };
        self.pairs(arguments).into_iter().filter_map(origin).collect()
    }

    /// The hashes of all sinks, which an approver states by approving the call, and of the action. Contents are not
    /// stated: the approver saw a text, and no destination. No approval covers answers to questions.
    #[must_use]
    pub fn statement(&self) -> Vec<u64> {
        let (arguments, more) = arguments(self.roles, self.input);
        let sinks = arguments.iter().filter(|argument| argument.role == Role::Sink);
        let mut stated: Vec<u64> =
            sinks.flat_map(|argument| lookup::hashes(self.key, argument.value)).collect();
        // If there are more arguments, some of them may be contents. So no names are stated then.
        if !more {
            let names = self.names_in_sinks(&arguments).found.into_iter();
            let names = names.flat_map(|(_, name)| lookup::hashes(self.key, &Json::String(name)));
            stated.extend(names);
        }
        let pairs = self.pairs(&arguments).into_iter();
        stated.extend(pairs.filter_map(|(_, first, second)| joined::pair(self.key, first, second)));
        stated.extend(self.high_risk.then(|| action::tool(self.key, self.tool)));
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

    /// Hashes to add to the run's plan after the call. For each sink whose value the plan lets the agent choose from a
    /// result, there are two: the chosen value as a planned one, and the mark that the agent has chosen.
    #[must_use]
    pub fn choices(&self) -> Vec<u64> {
        let (arguments, _) = arguments(self.roles, self.input);
        let sinks = arguments.iter().filter(|argument| argument.role == Role::Sink);
        let chosen = sinks.filter(|argument| !self.is_stated(argument)).filter_map(|argument| {
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
        let found = run.get(lookup::whole(self.key, value)?)?;
        let (source, _) = run.source(found.source.filter(|_| found.level == Level::Trusted)?)?;
        let from = lookup::from(self.key, self.tool, &argument.pointer, &source.tool);
        let chosen = lookup::chosen(self.key, self.tool, &argument.pointer);
        (run.is_planned(from) && !run.is_planned(chosen)).then_some(value)
    }

    /// Where an argument's value came from; `None` if it names no destination.
    fn origin(&self, argument: &Argument<'_>) -> Option<SinkOrigin> {
        let known = &OfRun(self.run);
        let (found, sink) = match argument.role {
            Role::Detail | Role::Content => (
                lookup::links(self.key, argument.value, self.destinations, known)?,
                [&argument.pointer, "#links"].concat(),
            ),
            // A tool can take an empty filter for "all".
            Role::Sink if self.high_risk && argument.named && has_blank(argument.value) => {
                (Found { level: Level::Nowhere, source: None }, argument.pointer.clone())
            }
            Role::Sink => (self.sink(argument, known)?, argument.pointer.clone()),
        };
        let is_planned = || self.is_stated(argument) || self.choice(argument).is_some();
        if found.level < Level::Instruction && is_planned() {
            return Some(SinkOrigin::new(sink, Level::Instruction));
        }
        let mut origin = SinkOrigin::new(sink, found.level);
        let source = found.source.and_then(|source| self.run?.source(source));
        if let Some((source, number)) = source {
            origin.call = Some(number);
            origin.decision_id = Some(source.decision_id.clone()).filter(|id| !id.is_empty());
            origin.tool = Some(source.tool.clone());
        }
        Some(origin)
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
