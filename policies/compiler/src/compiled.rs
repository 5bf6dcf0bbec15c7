//! A compiled bundle with owned data. It is written as Rust source, or leaked for tests and benches.

use std::fmt::Write as _;

use gateward_core::policy::bundle::{
    self, AnnotatedDecision, Bundle, IndexEntry, PolicyRecord, Risk, ToolRecord,
};
use gateward_core::shield::Rules;
use gateward_core::velocity;

use crate::annotations::Annotations;
use crate::error::PolicyError;
use crate::index::Index;
use crate::shield;
use crate::tools::{ArgumentType, RecordType, Tool};
use crate::velocity::{KeyPart, Window};

/// The result of [`crate::compile`].
#[derive(Debug)]
pub struct Compiled {
    pub(crate) digest: String,
    pub(crate) index: Index,
    /// Sorted by id.
    pub(crate) policies: Vec<CompiledPolicy>,
    /// Sorted by id.
    pub(crate) tools: Vec<Tool>,
    /// Sorted by name.
    pub(crate) windows: Vec<Window>,
    pub(crate) shield: Rules,
    pub(crate) schema: String,
    pub(crate) warnings: Vec<PolicyError>,
}

/// As [`PolicyRecord`], owned.
#[derive(Debug)]
pub(crate) struct CompiledPolicy {
    pub id: String,
    pub text: String,
    pub expressions: Vec<u8>,
    pub tenant: Option<String>,
    pub forbid: bool,
    pub annotations: Annotations,
}

impl Compiled {
    /// Lower-case hex of SHA-256 over schema, tools, windows, and policies with their expressions.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The schema with every tool's action, in Cedar's schema syntax. Empty if nothing was validated.
    #[must_use]
    pub fn schema_text(&self) -> &str {
        &self.schema
    }

    /// Probable mistakes that do not fail the build, such as a policy that can never apply.
    #[must_use]
    pub fn warnings(&self) -> &[PolicyError] {
        &self.warnings
    }

    /// The bundle, in memory that is never freed. For tests and benches.
    #[must_use]
    pub fn leak(self) -> &'static Bundle {
        let bundle = Bundle {
            digest: self.digest.leak(),
            symbols: leak_all(self.index.symbols, |symbol| &*symbol.leak()),
            index: self.index.entries.leak(),
            postings: self.index.postings.leak(),
            policies: leak_all(self.policies, |policy| PolicyRecord {
                id: policy.id.leak(),
                text: policy.text.leak(),
                expressions: policy.expressions.leak(),
                tenant: policy.tenant.map(|tenant| &*tenant.leak()),
                forbid: policy.forbid,
                annotations: bundle::Annotations {
                    decision: policy.annotations.decision,
                    reason: policy.annotations.reason.map(|reason| &*reason.leak()),
                    approver_group: policy.annotations.approver_group.map(|group| &*group.leak()),
                    quorum: policy.annotations.quorum,
                    redact_fields: leak_all(policy.annotations.redact_fields, |field| {
                        &*field.leak()
                    }),
                },
            }),
            tools: leak_all(self.tools, |tool| ToolRecord {
                id: tool.id.leak(),
                mutates: tool.mutates,
                egress: tool.egress,
                risk: tool.risk,
                canary: tool.canary,
                input: leak_record(tool.input),
            }),
            velocity: leak_all(self.windows, |window| velocity::Window {
                name: window.name.leak(),
                id: window.id.leak(),
                tools: leak_all(window.tools, |glob| &*String::from(glob).leak()),
                counts: window.counts,
                sum: window.sum.map(|pointer| &*pointer.leak()),
                key: leak_all(window.key, |part| match part {
                    KeyPart::Agent => velocity::KeyPart::Agent,
                    KeyPart::User => velocity::KeyPart::User,
                    KeyPart::Run => velocity::KeyPart::Run,
                    KeyPart::Argument(pointer) => velocity::KeyPart::Argument(pointer.leak()),
                }),
                width_ms: window.window_s * 1_000,
                reach: window.reach,
            }),
            shield: self.shield,
        };
        Box::leak(Box::new(bundle))
    }

    /// `pub static BUNDLE: Bundle = …;`, for `include!` in a crate that depends on `gateward_core`.
    #[must_use]
    pub fn render(&self) -> String {
        let Self { digest, index, policies, tools, windows, shield, .. } = self;
        let mut out = format!("pub static BUNDLE: {PATH}::Bundle = {PATH}::Bundle {{\n");
        // Writing to a string cannot fail.
        let _ = writeln!(out, "digest: {digest:?},\nsymbols: &{:?},\nindex: &[", index.symbols);
        for IndexEntry { tenant, principal, action, resource, start, end } in &index.entries {
            let _ = writeln!(
                out,
                "{PATH}::IndexEntry {{ tenant: {tenant}, principal: {principal}, \
                 action: {action}, resource: {resource}, start: {start}, end: {end} }},"
            );
        }
        let _ = writeln!(out, "],\npostings: &{:?},\npolicies: &[", index.postings);
        for CompiledPolicy { id, text, expressions, tenant, forbid, annotations } in policies {
            let Annotations { decision, reason, approver_group, quorum, redact_fields } =
                annotations;
            let decision = match decision {
                AnnotatedDecision::Plain => "Plain",
                AnnotatedDecision::Quarantine => "Quarantine",
                AnnotatedDecision::RequireApproval => "RequireApproval",
                AnnotatedDecision::Redact => "Redact",
            };
            let _ = writeln!(
                out,
                "{PATH}::PolicyRecord {{ id: {id:?}, text: {text:?}, \
                 expressions: &{expressions:?}, tenant: {tenant:?}, forbid: {forbid}, \
                 annotations: {PATH}::Annotations {{ \
                 decision: {PATH}::AnnotatedDecision::{decision}, reason: {reason:?}, \
                 approver_group: {approver_group:?}, quorum: {quorum}, \
                 redact_fields: &{redact_fields:?} }} }},"
            );
        }
        out.push_str("],\ntools: &[\n");
        for Tool { id, mutates, egress, risk, canary, input } in tools {
            let risk = match risk {
                Risk::Low => "Low",
                Risk::Medium => "Medium",
                Risk::High => "High",
                Risk::Critical => "Critical",
            };
            let input = render_record(input);
            let _ = writeln!(
                out,
                "{PATH}::ToolRecord {{ id: {id:?}, mutates: {mutates}, egress: {egress}, \
                 risk: {PATH}::Risk::{risk}, canary: {canary}, input: {input} }},"
            );
        }
        out.push_str("],\nvelocity: &[\n");
        for Window { name, id, tools, counts, sum, key, window_s, reach } in windows {
            let tools: Vec<&str> = tools.iter().map(|glob| glob.as_str()).collect();
            let key: String = key
                .iter()
                .map(|part| match part {
                    KeyPart::Argument(pointer) => {
                        format!("{VELOCITY}::KeyPart::Argument({pointer:?}), ")
                    }
                    part => format!("{VELOCITY}::KeyPart::{part:?}, "),
                })
                .collect();
            let width_ms = window_s * 1_000;
            let _ = writeln!(
                out,
                "{VELOCITY}::Window {{ name: {name:?}, id: {id:?}, tools: &{tools:?}, \
                 counts: {VELOCITY}::Counts::{counts:?}, sum: {sum:?}, key: &[{key}], \
                 width_ms: {width_ms}, reach: {VELOCITY}::Reach::{reach:?} }},"
            );
        }
        let _ = writeln!(out, "],\nshield: {},\n}};", shield::render(shield));
        out
    }
}

/// The modules of the rendered types.
const PATH: &str = "::gateward_core::policy::bundle";
const VELOCITY: &str = "::gateward_core::velocity";

fn render_record(record: &RecordType) -> String {
    let fields: String = record
        .fields
        .iter()
        .map(|field| {
            let (name, required, kind) = (&field.name, field.required, render_type(&field.kind));
            format!("{PATH}::Field {{ name: {name:?}, required: {required}, kind: {kind} }}, ")
        })
        .collect();
    format!("{PATH}::RecordType {{ fields: &[{fields}], open: {} }}", record.open)
}

fn render_type(kind: &ArgumentType) -> String {
    let variant = match kind {
        ArgumentType::Bool => "Bool".to_owned(),
        ArgumentType::Long => "Long".to_owned(),
        ArgumentType::Decimal => "Decimal".to_owned(),
        ArgumentType::String => "String".to_owned(),
        ArgumentType::Set(element) => format!("Set(&{})", render_type(element)),
        ArgumentType::Record(record) => format!("Record({})", render_record(record)),
    };
    format!("{PATH}::ArgumentType::{variant}")
}

fn leak_all<T, U>(owned: Vec<T>, leak: impl FnMut(T) -> U) -> &'static [U] {
    owned.into_iter().map(leak).collect::<Vec<U>>().leak()
}

fn leak_record(record: RecordType) -> bundle::RecordType {
    let fields = leak_all(record.fields, |field| bundle::Field {
        name: field.name.leak(),
        required: field.required,
        kind: leak_type(field.kind),
    });
    bundle::RecordType { fields, open: record.open }
}

fn leak_type(kind: ArgumentType) -> bundle::ArgumentType {
    match kind {
        ArgumentType::Bool => bundle::ArgumentType::Bool,
        ArgumentType::Long => bundle::ArgumentType::Long,
        ArgumentType::Decimal => bundle::ArgumentType::Decimal,
        ArgumentType::String => bundle::ArgumentType::String,
        ArgumentType::Set(element) => {
            bundle::ArgumentType::Set(Box::leak(Box::new(leak_type(*element))))
        }
        ArgumentType::Record(record) => bundle::ArgumentType::Record(leak_record(record)),
    }
}
