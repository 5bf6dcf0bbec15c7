//! What a command will do. `commands` turns arguments into a plan, and `run` carries it out.

use std::path::PathBuf;

use crate::approval::Decide;
use crate::arguments::{PageArguments, TokenOut};
use crate::chain::VerifyReceipts;
use crate::export::Export;
use crate::failure::Failure;
use crate::follow::Matching;
use crate::grant::Grant;
use crate::request::{Fields, Method, Request};
use crate::review::{Many, Review, ServerReview};
use crate::table::Field;
use crate::verify::VerifyExport;
use crate::warrant::Warrant;

#[derive(Debug, PartialEq)]
pub enum Plan {
    /// One request, whose answer is one record or nothing.
    Send {
        request: Request,
        fields: &'static [Field],
    },
    /// All pages of a list, at most `limit` rows. `plural` is the name of the member with the rows.
    List {
        request: Request,
        plural: &'static str,
        fields: &'static [Field],
        limit: u32,
    },
    /// A request whose answer has secrets that are shown once.
    Issue(Issue),
    /// The registration of a server, which also explains the effect of its trust.
    Register(Request),
    Grant(Grant),
    /// The approval of a tool, whose definition is shown first.
    ApproveTool {
        review: Review,
        /// The definition that was reviewed elsewhere. If it is given, nothing is shown or asked.
        definition_sha256: Option<String>,
        /// Whether to register it as a tool that changes nothing.
        reads: bool,
    },
    ApproveTools(Many),
    ReviewServer(ServerReview),
    /// New decisions, until interrupted.
    Follow {
        request: Request,
        matching: Matching,
    },
    /// What is used of limits.
    ShowLimits(Request),
    /// One decision, with everything that explains it.
    ShowDecision(Request),
    /// A lane's receipts, at most `limit` rows.
    ListReceipts {
        lane: u16,
        from: u64,
        limit: u32,
    },
    ShowReceipt(Request),
    VerifyReceipts(VerifyReceipts),
    /// One approval, with everything that a person needs to decide on it.
    ShowApproval(Request),
    /// A decision on an approval, which is shown first.
    Decide(Decide),
    /// Pending approvals and their changes, until interrupted.
    Watch(Request),
    /// Prints the headers that sign a request. Sends nothing.
    Sign(SignedRequest),
    /// Writes the tenant's receipts to a file.
    Export(Export),
    /// Verifies an export on this machine. Sends nothing.
    VerifyExport(VerifyExport),
    /// Makes or reads a warrant on this machine. Sends nothing.
    Warrant(Warrant),
}

#[derive(Debug, PartialEq)]
pub struct Issue {
    pub request: Request,
    /// The record that is created together with the credential: its member and its fields. If
    /// present, the credential is the answer's member `credential`; otherwise it is the answer
    /// itself.
    pub beside: Option<(&'static str, &'static [Field])>,
    pub bearer: Bearer,
    pub token_out: Option<PathBuf>,
    pub signing_key_out: Option<PathBuf>,
}

/// The secret that authenticates a request.
#[derive(Debug, PartialEq)]
pub enum Bearer {
    Token,
    /// The worker's bootstrap secret, from this file or from the environment.
    BootstrapSecret(Option<PathBuf>),
}

/// The request to sign.
#[derive(Debug, PartialEq)]
pub struct SignedRequest {
    pub method: String,
    pub path: String,
    pub query: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Plan {
    pub fn bearer(&self) -> &Bearer {
        match self {
            Self::Issue(issue) => &issue.bearer,
            _ => &Bearer::Token,
        }
    }

    pub fn list(
        request: Request,
        plural: &'static str,
        fields: &'static [Field],
        page: &PageArguments,
    ) -> Self {
        let request = request.parameter("cursor", page.cursor.as_deref());
        Self::List { request, plural, fields, limit: page.limit }
    }

    /// An issued credential without another record.
    pub fn issue(request: Request, out: TokenOut, signing_key_out: Option<PathBuf>) -> Self {
        let TokenOut { token_out } = out;
        let bearer = Bearer::Token;
        Self::Issue(Issue { request, beside: None, bearer, token_out, signing_key_out })
    }
}

/// A PATCH of the fields that were given. Without any field, it is a mistake.
pub fn patch(segments: &[&str], fields: Fields, revision: Option<u64>) -> Result<Request, Failure> {
    if fields.is_empty() {
        return Err(Failure::Usage("nothing to change: give at least one option".to_owned()));
    }
    Ok(Request::new(Method::Patch, segments).body(fields).if_match(revision))
}
