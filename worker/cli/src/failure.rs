//! Why a command failed, as one line and an exit status.

use std::fmt;
use std::process::ExitCode;

use serde_json::Value;

use crate::table::printable;

/// The command failed: the API refused, the worker did not answer, a file could not be written.
pub const FAILED: u8 = 1;
/// The command line is invalid. This is clap's own status.
pub const USAGE: u8 = 2;
/// The change is committed, but not every lane confirmed it.
pub const PENDING: u8 = 3;

#[derive(Debug, PartialEq)]
pub enum Failure {
    /// The API's answer, RFC 9457, or the refusal of a warrant.
    Problem {
        code: String,
        detail: String,
        field: Option<String>,
    },
    /// A mistake that clap cannot find: options that do not fit together.
    Usage(String),
    Other(String),
}

impl Failure {
    pub fn other(message: impl Into<String>) -> Self {
        Self::Other(message.into())
    }

    /// An answer whose status is not a success.
    pub fn from_answer(status: u16, text: &str) -> Self {
        let body: Value = serde_json::from_str(text).unwrap_or_default();
        let member = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
        match member("code") {
            Some(code) => Self::Problem {
                code,
                detail: member("detail").or_else(|| member("title")).unwrap_or_default(),
                field: member("field"),
            },
            None => Self::Other(format!(
                "the answer has status {status} and does not come from Gateward"
            )),
        }
    }

    pub fn is(&self, expected: &str) -> bool {
        matches!(self, Self::Problem { code, .. } if code == expected)
    }

    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(if matches!(self, Self::Usage(_)) { USAGE } else { FAILED })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Problem { code, detail, field } => {
                write!(f, "{}: {}", printable(code), printable(detail))?;
                match field {
                    Some(field) => write!(f, " (field `{}`)", printable(field)),
                    None => Ok(()),
                }
            }
            Self::Usage(message) | Self::Other(message) => f.write_str(&printable(message)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_line_with_its_code() {
        for (status, text, expected) in [
            (
                422,
                r#"{"code":"invalid_field","detail":"`agent` is no name","field":"agent"}"#,
                "invalid_field: `agent` is no name (field `agent`)",
            ),
            (404, r#"{"code":"not_found","detail":"no\nsuch"}"#, r"not_found: no\nsuch"),
            (401, r#"{"code":"unauthorized","title":"Not valid"}"#, "unauthorized: Not valid"),
            (502, "<html>", "the answer has status 502 and does not come from Gateward"),
            (301, "", "the answer has status 301 and does not come from Gateward"),
        ] {
            assert_eq!(Failure::from_answer(status, text).to_string(), expected);
        }
    }
}
