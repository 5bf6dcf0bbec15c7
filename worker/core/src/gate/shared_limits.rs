//! Limits that the lanes of a tenant share: which of them count a call, and for which subject.

use std::collections::HashMap;
use std::rc::Rc;

use crate::call::command::{GateCommand, Purpose};
use crate::limit::lease::{Answer, Leased, book_name};
use crate::limit::usage::Covered;
use crate::limit::{Amount, Book, Kind, Limit};
use crate::registry::{CallRecords, EACH, SharedLimit, SubjectKind};

/// Counts of shared limits that one call may add to: each is a row, and may be a request. An agent can be a member of
/// many groups.
pub const MAX_SHARED_OF_CALL: usize = 64;

/// A shared limit of a call.
#[derive(Debug, Clone)]
pub struct Shared<'a> {
    pub limit: &'a Rc<Limit>,
    /// The subject that the call counts for.
    pub subject: String,
}

impl Shared<'_> {
    /// The name of the book with the lane's lease.
    #[must_use]
    pub fn book(&self) -> String {
        book_name(&self.limit.counter, &self.subject)
    }
}

/// The parts of shared limits that a lane has, and what it keeps of them for calls that wait.
#[derive(Debug, Clone, Copy)]
pub struct Leases<'a> {
    pub books: &'a HashMap<Rc<str>, Book>,
    pub waits: Waits<'a>,
}

/// Calls that wait for a part of a shared limit.
#[derive(Debug, Clone, Copy)]
pub struct Waits<'a> {
    /// What the lane holds for calls that waited, by the book's name, with the lease's number.
    pub held: &'a HashMap<String, (u64, Amount)>,
    /// What this call got, by the book's name.
    pub answers: &'a [(String, Answer)],
}

impl Waits<'_> {
    /// What a step knows about the lease of one limit.
    #[must_use]
    pub fn of(&self, name: &str, subject: &str) -> Leased {
        let answer = self.answers.iter().find(|(book, _)| book == name).map(|(_, answer)| *answer);
        let (number, all) = self.held.get(name).copied().unwrap_or_default();
        let own = match answer {
            Some(Answer::Granted { amount, number: of, .. }) if of == number => amount,
            _ => Amount::ZERO,
        };
        Leased { subject: subject.to_owned(), held: (number, all.minus(own)), answer }
    }
}

/// Whether calls add to a count of the limit.
#[must_use]
pub fn is_counted(limit: &Limit) -> bool {
    !matches!(limit.kind, Kind::Hours | Kind::PerCall)
}

/// The shared limits that cover a call, each with the subjects that the call counts for. If the call adds to more than
/// [`MAX_SHARED_OF_CALL`] counts, only one more than that are returned.
#[must_use]
pub fn of_call<'a>(
    records: &'a CallRecords,
    command: &GateCommand,
    Covered { reads, writes }: Covered,
) -> Vec<Shared<'a>> {
    let shared = records.tenant.as_ref().map_or(&[][..], |tenant| &tenant.shared_limits);
    let mut found: Vec<Shared<'a>> = Vec::new();
    if shared.is_empty() || !calls_tool(&command.purpose) {
        return found;
    }
    let tool = command.call.tool_id();
    let mut room = MAX_SHARED_OF_CALL + 1;
    for limit in shared.iter().filter(|it| it.limit.covers(&tool, reads, writes)) {
        let is_counted = is_counted(&limit.limit);
        // A limit that counts nothing says the same for each of its subjects.
        let most = if is_counted { room } else { 1 };
        if most > 0 {
            let before = found.len();
            found.extend(subjects(limit, records, command).take(most));
            room -= if is_counted { found.len() - before } else { 0 };
        }
    }
    found
}

fn calls_tool(purpose: &Purpose) -> bool {
    matches!(purpose, Purpose::Authorize | Purpose::Forward | Purpose::Routed(_))
}

fn subjects<'a>(
    shared: &'a SharedLimit,
    records: &CallRecords,
    command: &GateCommand,
) -> impl Iterator<Item = Shared<'a>> {
    let call = &command.call;
    let one = |name: String, counts: bool| if counts { vec![name] } else { Vec::new() };
    let subjects = match shared.subject_kind {
        SubjectKind::Agent | SubjectKind::Credential => Vec::new(),
        SubjectKind::Tenant => vec![EACH.to_owned()],
        SubjectKind::Group => {
            let groups = records.agent.as_ref().map_or(&[][..], |agent| &agent.groups);
            groups.iter().filter(|group| shared.counts(group)).cloned().collect()
        }
        SubjectKind::Tool => {
            let tool = call.tool_id();
            // A call of a tool that is not registered is denied. It must not create a counter.
            let counts = records.tool.is_some() && shared.counts(&tool);
            one(tool, counts)
        }
        SubjectKind::Server => {
            one(call.server.clone(), records.server.is_some() && shared.counts(&call.server))
        }
        // Only a harness's claim about the user counts.
        SubjectKind::User => {
            let user = &call.user_id;
            one(user.clone(), records.is_harness() && !user.is_empty() && shared.counts(user))
        }
    };
    subjects.into_iter().map(move |subject| Shared { limit: &shared.limit, subject })
}
