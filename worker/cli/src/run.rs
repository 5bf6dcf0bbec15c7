//! Carries out a plan: sends its requests and prints the answers. `receipts` has the commands about receipts.

mod receipts;

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};
use std::thread::sleep;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, from_str};

use crate::approval::{self, Decide, Verdict};
use crate::arguments::ROWS_MAX;
use crate::bars;
use crate::client::Response;
use crate::commands::{AGENT, APPROVAL, CREDENTIAL, DECISION, SERVER, TOOL};
use crate::decision;
use crate::failure::Failure;
use crate::follow::{Follow, Matching};
use crate::grant::Grant;
use crate::notes;
use crate::page::Page;
use crate::plan::{Issue, Plan, SignedRequest};
use crate::request::Request;
use crate::review::{self, Registration, Review};
use crate::runner::{PAGE_ROWS_MAX, Runner, pending, print};
use crate::secret::SecretFile;
use crate::sign::Unsigned;
use crate::table::{self, Field, printable};
use crate::watch::Watch;

/// How often a grant is retried because somebody else changed the agent meanwhile.
const GRANT_TRIES_MAX: u32 = 5;
/// The default interval of the lanes' flush.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(1);
/// 10,000 decisions in one poll, about 15 MB. That is more than a terminal shows in a second.
const FOLLOW_PAGES_MAX: u32 = 50;
/// Bytes of an answer to a question: `yes` and the line's end.
const ANSWER_BYTES_MAX: u64 = 16;
/// 2,000 pending approvals in one poll. That is more than people decide on, and few enough to read
/// each time.
const WATCH_PAGES_MAX: u32 = 10;

impl Runner {
    /// The exit status: 0, or [`crate::failure::PENDING`].
    pub fn run(&self, plan: Plan) -> Result<u8, Failure> {
        match plan {
            Plan::Send { request, fields } => self.send(&request, fields),
            Plan::List { request, plural, fields, limit } => {
                self.list(&request, plural, fields, limit)
            }
            Plan::Issue(issue) => self.issue(issue),
            Plan::Register(request) => self.register(&request),
            Plan::Grant(grant) => self.grant(&grant, AGENT),
            Plan::ApproveTool { review, definition_sha256, reads } => {
                self.approve_tool(&review, definition_sha256, reads)
            }
            Plan::ApproveTools(many) => self.approve_many(&many),
            Plan::ReviewServer(review) => self.review_server(&review),
            Plan::Follow { request, matching } => self.follow(&request, &matching),
            Plan::ShowLimits(request) => self.show_limits(&request),
            Plan::ShowDecision(request) => self.show_decision(&request),
            Plan::ListReceipts { lane, from, limit } => self.list_receipts(lane, from, limit),
            Plan::ShowReceipt(request) => self.show_receipt(&request),
            Plan::VerifyReceipts(verify) => self.verify_receipts(&verify),
            Plan::ShowApproval(request) => self.show_approval(&request),
            Plan::Decide(decide) => self.decide(&decide),
            Plan::Watch(request) => self.watch(&request),
            Plan::Sign(request) => self.sign(&request),
            Plan::Export(export) => self.export(&export),
            Plan::VerifyExport(command) => command.run(self.json),
            Plan::Warrant(command) => command.run(self.json),
        }
    }

    /// Prints header lines, as `curl -H @-` reads them.
    fn sign(&self, request: &SignedRequest) -> Result<u8, Failure> {
        let SignedRequest { method, path, query, headers, body } = request;
        let added = self.client.sign(&Unsigned { method, path, query, headers, body })?;
        for (name, value) in added.iter().chain(headers) {
            print(&format!("{name}: {value}"))?;
        }
        Ok(0)
    }

    fn send(&self, request: &Request, fields: &[Field]) -> Result<u8, Failure> {
        let answer = self.client.send(request)?;
        self.print_answer(&answer, fields)?;
        pending(&answer)
    }

    fn list(
        &self,
        request: &Request,
        plural: &str,
        fields: &[Field],
        limit: u32,
    ) -> Result<u8, Failure> {
        let mut list: Option<Page> = None;
        let mut cursor = None;
        loop {
            let rows = list.as_ref().map_or(0, |list| list.rows.len());
            let left = limit.saturating_sub(u32::try_from(rows).unwrap_or(limit));
            let page = self.page(request, cursor.as_deref(), left, plural)?;
            let (next, empty) = (page.next_cursor.clone(), page.rows.is_empty());
            match &mut list {
                None => list = Some(page),
                Some(list) => list.append(page),
            }
            let rows = list.as_ref().map_or(0, |list| list.rows.len());
            // An empty page is the end, even if it has a cursor.
            if next.is_none() || empty || u32::try_from(rows).is_ok_and(|rows| rows >= limit) {
                break;
            }
            cursor = next;
        }
        let list = list.ok_or_else(|| Failure::other("there is no list"))?;
        // No hint if the user set the limit.
        if list.next_cursor.is_some() && limit == ROWS_MAX {
            eprintln!("gateward: the list has more than these {} rows", list.rows.len());
        }
        if self.json {
            return print(&list.to_json(plural)?).map(|()| 0);
        }
        let mut values = Vec::with_capacity(list.rows.len());
        for row in &list.rows {
            let value: Value = from_str(row.get())
                .map_err(|_| Failure::Other(format!("the answer is not a list of {plural}")))?;
            values.push(value);
        }
        print(&table::list(fields, &values)).map(|()| 0)
    }

    /// Issues a credential. Its secrets are written to files, or printed once.
    fn issue(&self, issue: Issue) -> Result<u8, Failure> {
        let token_file = issue.token_out.map(SecretFile::create).transpose()?;
        let key_file = issue.signing_key_out.map(SecretFile::create).transpose()?;
        let answer = self.client.send(&issue.request)?;
        let mut body = answer.value()?;
        let mut secrets = Vec::new();
        let mut withheld = false;
        let credential = match issue.beside {
            Some(_) => body.get_mut("credential"),
            None => Some(&mut body),
        };
        let credential = credential
            .and_then(Value::as_object_mut)
            .ok_or_else(|| Failure::other("the answer is not a credential"))?;
        let key_id = credential.get("key_id").and_then(Value::as_str).unwrap_or("?").to_owned();
        let issued = credential.get("token").is_some_and(Value::is_string);
        for (member, file) in [("token", token_file), ("signing_key", key_file)] {
            let Some(Value::String(secret)) = credential.get(member) else { continue };
            let secret = secret.clone();
            match file {
                Some(file) => {
                    file.write(&secret).map_err(|failure| {
                        Failure::Other(format!("{failure}: the {member} of `{key_id}` is lost"))
                    })?;
                    withheld = true;
                    credential.insert(member.to_owned(), Value::Null);
                }
                None => secrets.push((member, secret)),
            }
        }

        match (self.json, withheld) {
            (true, false) => print(answer.text.trim())?,
            (true, true) => print(&body.to_string())?,
            (false, _) => {
                if let Some((member, fields)) = issue.beside {
                    let record = body.get(member).unwrap_or(&Value::Null);
                    print(&format!("{}\n", table::record(fields, record)))?;
                }
                let credential = issue.beside.map_or(Some(&body), |_| body.get("credential"));
                print_issued(credential, &secrets)?;
            }
        }
        if !issued {
            let why = if answer.replayed { "its first answer was lost" } else { "without a token" };
            return Err(Failure::Other(format!(
                "the credential `{key_id}` was issued, but {why}: revoke it and issue another"
            )));
        }
        pending(&answer)
    }

    /// Reads, edits and writes. Starts again if somebody else wrote meanwhile.
    fn grant(&self, grant: &Grant, fields: &[Field]) -> Result<u8, Failure> {
        for tries in 0..GRANT_TRIES_MAX {
            let read = self.client.send(&grant.read())?;
            let Some(request) = grant.edit(&read.value()?, tries > 0)? else {
                self.print_answer(&read, fields)?;
                return Ok(0);
            };
            match self.send(&request, fields) {
                Err(failure) if failure.is("precondition_failed") => {}
                result => return result,
            }
        }
        let agent = &grant.agent;
        Err(Failure::Other(format!(
            "other administrators keep changing agent `{agent}`; nothing was changed: try again"
        )))
    }

    /// Reads the tool, shows its definition, asks, and approves that definition. If the hash of the
    /// reviewed definition is given, it does not ask. Only with `reads` does the approval also set
    /// what the tool is.
    fn approve_tool(
        &self,
        review: &Review,
        reviewed_sha256: Option<String>,
        reads: bool,
    ) -> Result<u8, Failure> {
        let tool = self.client.send(&review.read())?.value()?;
        let registration = reads.then(|| Registration::proposed(&tool)).transpose()?;
        let registration = registration.map(Registration::as_read);
        let listed = tool.get("definition_sha256").and_then(Value::as_str);
        if reviewed_sha256.is_none() && listed.is_some() {
            if !tool.get("definition").is_some_and(Value::is_object) {
                let message = "the definition that the server lists cannot be used";
                return Err(Failure::other(message));
            }
            eprintln!("{}", review::shown(&tool));
            let question = match registration {
                Some(Registration { egress: true, .. }) => "Approve as a read that is egress?",
                Some(_) => "Approve as a read?",
                None => "Approve?",
            };
            confirm(question, "`--definition-sha256` with the hash of what you reviewed")?;
        }
        let hash = reviewed_sha256.as_deref().or(listed);
        self.send(&review.approval(hash, registration), TOOL)
    }

    /// Prints new decisions in a loop that ends only with a failure.
    fn follow(&self, request: &Request, matching: &Matching) -> Result<u8, Failure> {
        const PLURAL: &str = "decisions";
        let mut follow = Follow::default();
        loop {
            let first = self.page(request, None, PAGE_ROWS_MAX, PLURAL)?;
            let mut poll = follow.poll(&first)?;
            let older = request.clone().parameter("from", poll.from().as_deref());
            let mut more = poll.take(&first)?;
            let mut cursor = first.next_cursor.clone();
            let mut pages = 1;
            while more && pages < FOLLOW_PAGES_MAX {
                let page = self.page(&older, cursor.as_deref(), PAGE_ROWS_MAX, PLURAL)?;
                more = poll.take(&page)?;
                cursor = page.next_cursor;
                pages += 1;
            }
            if more {
                let rows = FOLLOW_PAGES_MAX * PAGE_ROWS_MAX;
                eprintln!(
                    "gateward: more than {rows} decisions at once; the older ones are left out"
                );
            }
            for row in poll.finish(&first)? {
                if !matching.matches(&row.value) {
                    continue;
                }
                self.print_line(DECISION, &row.raw, &row.value)?;
            }
            sleep(FOLLOW_INTERVAL);
        }
    }

    /// Registers a server, and explains the effect of its trust.
    fn register(&self, request: &Request) -> Result<u8, Failure> {
        let answer = self.client.send(request)?;
        self.print_answer(&answer, SERVER)?;
        if !self.json
            && let Some(note) = notes::untrusted_server(&answer.value()?)
        {
            print(&format!("\n{note}"))?;
        }
        pending(&answer)
    }

    fn show_limits(&self, request: &Request) -> Result<u8, Failure> {
        let answer = self.client.send(request)?;
        let text = if self.json { answer.text } else { bars::shown(&answer.text)? };
        print(text.trim_end()).map(|()| 0)
    }

    /// Reads everything that explains a decision, as far as the credential may read it.
    fn show_decision(&self, request: &Request) -> Result<u8, Failure> {
        let answer = self.client.send(request)?;
        if self.json {
            return print(answer.text.trim()).map(|()| 0);
        }
        let decision = answer.value()?;
        let receipt = self.readable(decision::receipt(&decision))?.map(|receipt| receipt.text);
        let approval = self.readable(decision::approval(&decision))?;
        let approval = approval.map(|approval| approval.value()).transpose()?;
        print(&decision::shown(&decision, receipt.as_deref(), approval.as_ref())).map(|()| 0)
    }

    /// The answer. `None` if there is nothing to read, if the credential may not read it, or if it
    /// was deleted.
    fn readable(&self, request: Option<Request>) -> Result<Option<Response>, Failure> {
        let Some(request) = request else { return Ok(None) };
        match self.client.send(&request) {
            Err(failure) if failure.is("forbidden") || failure.is("not_found") => Ok(None),
            answer => answer.map(Some),
        }
    }

    fn show_approval(&self, request: &Request) -> Result<u8, Failure> {
        let answer = self.client.send(request)?;
        let text = if self.json { answer.text } else { approval::shown(&answer.value()?) };
        print(text.trim_end()).map(|()| 0)
    }

    /// Reads the approval, shows it, and decides on exactly that.
    fn decide(&self, decide: &Decide) -> Result<u8, Failure> {
        let read = self.client.send(&decide.read())?.value()?;
        let request = decide.request(&read)?;
        if !self.json {
            eprintln!("{}\n", approval::shown(&read));
        }
        let answer = self.client.send(&request)?;
        if self.json {
            return print(answer.text.trim()).map(|()| 0);
        }
        let edited = matches!(decide.verdict, Verdict::Approve { edit: Some(_) });
        print(&approval::decided(&answer.value()?, edited)).map(|()| 0)
    }

    /// Prints pending approvals, then new and changed ones, in a loop that ends only with a
    /// failure.
    fn watch(&self, request: &Request) -> Result<u8, Failure> {
        const PLURAL: &str = "approvals";
        let mut watch = Watch::default();
        let mut complete = true;
        loop {
            let mut list = self.page(request, None, PAGE_ROWS_MAX, PLURAL)?;
            for _ in 1..WATCH_PAGES_MAX {
                let Some(cursor) = list.next_cursor.clone() else { break };
                list.append(self.page(request, Some(&cursor), PAGE_ROWS_MAX, PLURAL)?);
            }
            let was_complete = complete;
            complete = list.next_cursor.is_none();
            if was_complete && !complete {
                let rows = WATCH_PAGES_MAX * PAGE_ROWS_MAX;
                eprintln!(
                    "gateward: more than {rows} approvals are pending; the oldest are left out"
                );
            }
            for waiting in watch.poll(list.rows, complete)? {
                self.print_line(APPROVAL, &waiting.raw, &waiting.value)?;
            }
            sleep(FOLLOW_INTERVAL);
        }
    }

    /// A record as one line.
    fn print_line(&self, fields: &[Field], raw: &RawValue, value: &Value) -> Result<(), Failure> {
        if self.json { print(raw.get()) } else { print(&table::line(fields, value)) }
    }

    fn print_answer(&self, answer: &Response, fields: &[Field]) -> Result<(), Failure> {
        match answer.value()? {
            Value::Null => Ok(()),
            _ if self.json => print(answer.text.trim()),
            body => print(&table::record(fields, &body)),
        }
    }
}

/// A credential, and its secrets that were not written to a file.
fn print_issued(credential: Option<&Value>, secrets: &[(&str, String)]) -> Result<(), Failure> {
    let mut credential = credential.cloned().unwrap_or_default();
    if let Some(fields) = credential.as_object_mut() {
        fields.remove("token");
        fields.remove("signing_key");
    }
    print(&table::record(CREDENTIAL, &credential))?;
    if let Some(note) = notes::highest_trust(&credential) {
        print(&format!("\n{note}"))?;
    }
    for (member, secret) in secrets {
        let name = member.replace('_', " ");
        let secret = printable(secret);
        print(&format!(
            "\nThis is its {name}. It is shown only once. Keep it secret.\n\n{secret}"
        ))?;
    }
    Ok(())
}

/// Asks a question on the terminal. Any answer except yes is a failure. `instead` is the option to
/// use without a terminal.
fn confirm(question: &str, instead: &str) -> Result<(), Failure> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(Failure::Usage(format!("there is no terminal to ask on: give {instead}")));
    }
    eprint!("{question} [y/N] ");
    let mut answer = String::new();
    io::stdin()
        .lock()
        .take(ANSWER_BYTES_MAX)
        .read_line(&mut answer)
        .map_err(|error| Failure::Other(format!("standard input: {error}")))?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::other("nothing was changed")),
    }
}
