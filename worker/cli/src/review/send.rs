//! Approves many tools: by a glob, by a review on a terminal, or by a review from a file. Each tool
//! is a separate request. If one is refused, the others are still sent. The result of each tool is
//! printed.

use std::io::{self, IsTerminal as _};

use gateward_core::glob::Glob;
use gateward_core::registry::{ServerStatus, ToolStatus};
use serde_json::{Value, json};

use super::definition::{Change, Review};
use super::document::{self, DOCUMENT_TOOLS_MAX, Document, Reviewed, Verdict};
use super::registration::{self, Registration};
use super::session;
use crate::arguments::ToolId;
use crate::client::Response;
use crate::failure::{FAILED, Failure};
use crate::request::Request;
use crate::runner::{PAGE_ROWS_MAX, Runner, pending, print};
use crate::table::{self, Field, printable};

/// The approval of all pending tools of a server that match.
#[derive(Debug, PartialEq)]
pub struct Many {
    pub server: String,
    /// Compared with `server/tool`.
    pub glob: Glob,
    /// Whether to register them as tools that change nothing.
    pub reads: bool,
}

/// The review of all pending tools of a server.
#[derive(Debug, PartialEq)]
pub struct ServerReview {
    pub server: String,
    /// A review from a file.
    pub apply: Option<Document>,
}

const FIELDS: &[Field] = &[
    Field::column("tool"),
    Field::column("result"),
    Field::column("mutates"),
    Field::column("egress"),
    Field::column("risk"),
    Field::column("detail"),
];

const UNUSABLE: &str = "the definition that the server lists cannot be used";

/// The result for one tool.
#[derive(Clone, Copy, PartialEq)]
enum Done {
    Approved,
    AlreadyApproved,
    Skipped,
    NotApproved,
}

impl Done {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::AlreadyApproved => "already_approved",
            Self::Skipped => "skipped",
            Self::NotApproved => "not_approved",
        }
    }
}

/// The results of all tools.
#[derive(Default)]
struct Report {
    rows: Vec<Value>,
    approved: usize,
    not_approved: usize,
    /// An answer with status 202, which not every lane had confirmed.
    unconfirmed: Option<Response>,
    /// The worker does not answer, so nothing more is sent.
    stopped: bool,
}

impl Report {
    /// `tool` is the current record, or the known part of it.
    fn add(&mut self, tool: &Value, done: Done, detail: &str) {
        self.approved += usize::from(done == Done::Approved);
        self.not_approved += usize::from(done == Done::NotApproved);
        let of = |name: &str| tool.get(name).cloned().unwrap_or_default();
        self.rows.push(json!({
            "tool": of("tool"), "result": done.as_str(), "status": of("status"),
            "mutates": of("mutates"), "egress": of("egress"), "risk": of("risk"),
            "detail": detail,
        }));
    }

    fn refused(&mut self, tool: &Value, failure: &Failure) {
        self.stopped |= !matches!(failure, Failure::Problem { .. });
        self.add(tool, Done::NotApproved, &failure.to_string());
    }

    fn answered(&mut self, tool: &Value, result: Result<Response, Failure>) {
        let answered = result.and_then(|answer| Ok((answer.value()?, answer)));
        match answered {
            Err(failure) => self.refused(tool, &failure),
            Ok((approved, answer)) => {
                let status = approved.get("status").and_then(Value::as_str);
                let detail = status
                    .filter(|status| *status != ToolStatus::Active.as_str())
                    .map(|status| format!("it stays {status} until `gateward tool restore`"))
                    .unwrap_or_default();
                self.add(&approved, Done::Approved, &detail);
                if answer.status == 202 {
                    self.unconfirmed = Some(answer);
                }
            }
        }
    }
}

impl Runner {
    pub fn approve_many(&self, many: &Many) -> Result<u8, Failure> {
        let Many { server, glob, reads } = many;
        let mut tools = self.tools(server)?;
        tools.retain(|tool| glob.matches(&format!("{server}/{}", name(tool))));
        if tools.is_empty() {
            return Err(Failure::Other(format!("no tool of `{server}` matches `{glob}`")));
        }
        let mut report = Report::default();
        for tool in &tools {
            if is_approved(tool) {
                report.add(tool, Done::AlreadyApproved, "");
            } else if report.stopped {
                report.add(tool, Done::NotApproved, "not tried");
            } else {
                self.approve_unseen(server, tool, *reads, &mut report);
            }
        }
        self.finish(server, report)
    }

    /// Approves a tool without showing its definition. So it skips a tool whose definition changed
    /// since its last approval, because a server could have changed a tool that people trust.
    fn approve_unseen(&self, server: &str, listed: &Value, reads: bool, report: &mut Report) {
        let tool = match self.tool(server, name(listed)) {
            Ok(tool) => tool,
            Err(failure) => return report.refused(listed, &failure),
        };
        let review = || format!("review it: `gateward server review {server}`");
        let why = match Change::of(&tool) {
            Change::Changed => {
                format!("its definition changed since it was approved; {}", review())
            }
            Change::Unusable => UNUSABLE.to_owned(),
            Change::Undescribed if reads && tool.get("mutates") == Some(&Value::Bool(true)) => {
                format!("an administrator registered it as a tool that writes; {}", review())
            }
            _ if reads && registration::says_that_it_writes(&tool) => {
                format!("its server says that it writes; {}", review())
            }
            _ => {
                let answer = Registration::proposed(&tool).and_then(|registration| {
                    let registration = if reads { registration.as_read() } else { registration };
                    self.approve(server, &tool, Some(registration))
                });
                return report.answered(&tool, answer);
            }
        };
        report.add(&tool, Done::NotApproved, &why);
    }

    pub fn review_server(&self, review: &ServerReview) -> Result<u8, Failure> {
        let ServerReview { server, apply } = review;
        let mut tools = self.tools(server)?;
        if let Some(document) = apply {
            return self.apply(document, &tools);
        }
        tools.retain(|tool| !is_approved(tool));
        if self.json {
            return self.print_document(server, &tools);
        }
        if tools.is_empty() {
            return print(&format!("No tool of `{}` is waiting for approval.", printable(server)))
                .map(|()| 0);
        }
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            let instead = "--json for a document to edit, and --apply to carry it out";
            return Err(Failure::Usage(format!("there is no terminal to ask on: give {instead}")));
        }
        self.ask(server, &tools)
    }

    fn print_document(&self, server: &str, waiting: &[Value]) -> Result<u8, Failure> {
        let some = waiting.iter().take(DOCUMENT_TOOLS_MAX);
        let tools: Result<Vec<_>, _> = some.map(|tool| self.tool(server, name(tool))).collect();
        print(&document::write(server, &tools?)?)?;
        if let Some(more @ 1..) = waiting.len().checked_sub(DOCUMENT_TOOLS_MAX) {
            eprintln!("gateward: {more} more tools are waiting; review them after these");
        }
        Ok(0)
    }

    fn ask(&self, server: &str, waiting: &[Value]) -> Result<u8, Failure> {
        let (mut input, mut output) = (io::stdin().lock(), io::stderr());
        let mut report = Report::default();
        let mut quit = false;
        for (at, listed) in waiting.iter().enumerate() {
            if quit || report.stopped {
                report.add(listed, Done::Skipped, "");
                continue;
            }
            let tool = match self.tool(server, name(listed)) {
                Ok(tool) => tool,
                Err(failure) => {
                    report.refused(listed, &failure);
                    continue;
                }
            };
            let title = format!("\nTool {} of {}", at + 1, waiting.len());
            let proposed = Registration::proposed(&tool)?;
            let asked = session::ask(&tool, proposed, &title, &mut input, &mut output);
            match asked.map_err(|error| Failure::Other(format!("the terminal: {error}")))? {
                session::Answer::Approve(said) => {
                    report.answered(&tool, self.approve(server, &tool, Some(said)));
                }
                session::Answer::Skip if Change::of(&tool) == Change::Unusable => {
                    report.add(&tool, Done::NotApproved, UNUSABLE);
                }
                session::Answer::Skip => report.add(&tool, Done::Skipped, ""),
                session::Answer::Quit => {
                    quit = true;
                    report.add(&tool, Done::Skipped, "");
                }
            }
        }
        self.finish(server, report)
    }

    fn apply(&self, document: &Document, tools: &[Value]) -> Result<u8, Failure> {
        let server = &document.server;
        let mut report = Report::default();
        for reviewed in &document.tools {
            let tool = tools.iter().find(|tool| name(tool) == reviewed.tool);
            let known = tool.cloned().unwrap_or_else(|| json!({"tool": reviewed.tool}));
            match (reviewed.verdict, tool) {
                (Verdict::Skip, _) => report.add(&known, Done::Skipped, ""),
                (_, None) => report.add(&known, Done::NotApproved, "it is not registered"),
                (_, Some(tool)) if is_approved_as(tool, reviewed) => {
                    report.add(&known, Done::AlreadyApproved, "");
                }
                _ if report.stopped => report.add(&known, Done::NotApproved, "not tried"),
                _ => {
                    // The hash and the revision that were reviewed, not the current ones.
                    let answer = self.client.send(&approval(
                        server,
                        &reviewed.tool,
                        reviewed.revision,
                        reviewed.definition_sha256.as_deref(),
                        Some(reviewed.registration()),
                    ));
                    report.answered(&known, answer);
                }
            }
        }
        self.finish(server, report)
    }

    fn approve(
        &self,
        server: &str,
        tool: &Value,
        registration: Option<Registration>,
    ) -> Result<Response, Failure> {
        let revision = tool.get("revision").and_then(Value::as_u64);
        let revision = revision.ok_or_else(|| Failure::other("the answer is not a tool"))?;
        let hash = tool.get("definition_sha256").and_then(Value::as_str);
        self.client.send(&approval(server, name(tool), revision, hash, registration))
    }

    /// All tools of a server, without their definitions.
    fn tools(&self, server: &str) -> Result<Vec<Value>, Failure> {
        const PLURAL: &str = "tools";
        let request = Request::get(&["servers", server, PLURAL]);
        let mut tools = Vec::new();
        let mut cursor = None;
        loop {
            let page = self.page(&request, cursor.as_deref(), PAGE_ROWS_MAX, PLURAL)?;
            for row in &page.rows {
                let tool = serde_json::from_str(row.get());
                tools.push(tool.map_err(|_| Failure::other("the answer is not a list of tools"))?);
            }
            // An empty page is the end, even if it has a cursor.
            if page.next_cursor.is_none() || page.rows.is_empty() {
                return Ok(tools);
            }
            cursor = page.next_cursor;
        }
    }

    /// A tool with its definitions.
    fn tool(&self, server: &str, tool: &str) -> Result<Value, Failure> {
        self.client.send(&Request::get(&["servers", server, "tools", tool]))?.value()
    }

    fn finish(&self, server: &str, report: Report) -> Result<u8, Failure> {
        let Report { rows, approved, not_approved, unconfirmed, .. } = report;
        let tools = rows.len();
        if self.json {
            print(&json!({"server": server, "tools": rows}).to_string())?;
        } else {
            print(&table::list(FIELDS, &rows))?;
        }
        if approved > 0 {
            let server = self.client.send(&Request::get(&["servers", server]))?.value()?;
            let of = |name| server.get(name).and_then(Value::as_str).map(printable);
            if let (Some(name), Some(status)) = (of("server"), of("status"))
                && status != ServerStatus::Active.as_str()
            {
                eprintln!(
                    "gateward: the server `{name}` is {status}, so its tools cannot be called yet"
                );
            }
        }
        if not_approved > 0 {
            eprintln!("gateward: {not_approved} of {tools} tools were not approved");
            return Ok(FAILED);
        }
        unconfirmed.map_or(Ok(0), |answer| pending(&answer))
    }
}

fn approval(
    server: &str,
    tool: &str,
    revision: u64,
    definition_sha256: Option<&str>,
    registration: Option<Registration>,
) -> Request {
    let id = ToolId { server: server.to_owned(), tool: tool.to_owned() };
    Review { id, if_match: Some(revision) }.approval(definition_sha256, registration)
}

fn name(tool: &Value) -> &str {
    tool.get("tool").and_then(Value::as_str).unwrap_or_default()
}

fn is_approved(tool: &Value) -> bool {
    tool.get("approved") == Some(&Value::Bool(true))
}

/// Whether the review was applied before.
fn is_approved_as(tool: &Value, reviewed: &Reviewed) -> bool {
    is_approved(tool)
        && tool.get("definition_sha256").and_then(Value::as_str)
            == reviewed.definition_sha256.as_deref()
        && Registration::of(tool).is_ok_and(|known| known == reviewed.registration())
}
