//! Hints for a new operator about the record that was just created, printed below it. Pure.
//!
//! INVARIANT (no policy is known here): a hint about a default describes the base policies that
//! Gateward comes with, and says so.

use gateward_core::registry::ServerTrust;
use gateward_core::trust::SourceTrust;
use serde_json::Value;

use crate::table::printable;

/// What the highest trust of an agent's credential means, and how to get another one. Empty for
/// administrators' credentials, which make no calls.
pub fn highest_trust(credential: &Value) -> Option<String> {
    let agent = credential.get("agent")?.as_str()?;
    let trust = credential.get("max_source_trust")?.as_str()?;
    let signed = credential.get("signed").and_then(Value::as_bool) == Some(true);
    let level = SourceTrust::from_claim(trust);
    let effect = match level {
        SourceTrust::TrustedInternalSigned if !signed => {
            "they can claim `trusted_internal_unsigned`; the signed level needs a credential with \
             --signed. The base policies let such calls read and write"
        }
        SourceTrust::TrustedInternalSigned | SourceTrust::TrustedInternalUnsigned => {
            "the base policies let calls that claim this read and write"
        }
        SourceTrust::SemiTrustedCustomer => {
            "the base policies let them read, and have every write wait for approval by the group \
             `security`"
        }
        SourceTrust::UntrustedExternal | SourceTrust::MaliciousSuspected | SourceTrust::Unknown => {
            "the base policies let them read, and deny every write"
        }
    };
    let advice = match level {
        SourceTrust::TrustedInternalSigned => "To allow less",
        _ => "To allow another one",
    };
    Some(format!(
        "Its calls count as `{}` at most, whatever they claim: {effect}. {advice}, issue another \
         credential and revoke this one: gateward credential create --agent {} --max-source-trust \
         <TRUST>",
        printable(trust),
        printable(agent),
    ))
}

/// What happens because a server's answers are not trusted.
pub fn untrusted_server(server: &Value) -> Option<String> {
    if server.get("trust")?.as_str()? != ServerTrust::Untrusted.as_str() {
        return None;
    }
    let server = printable(server.get("server")?.as_str()?);
    Some(format!(
        "Its trust is `untrusted`: a call of its tools taints the agent, or the run that a harness \
         assigned, for a day after the last answer unless `gateward settings set --taint-s` says \
         otherwise. With the base \
         policies, a tainted write waits for approval by the group `security` unless the user or a \
         trusted source named its destinations. If nobody outside can write what it answers: gateward server update {server} --trust trusted"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_credential_says_what_its_highest_trust_means_and_how_to_change_it() {
        for (trust, signed, expected) in [
            ("unknown", false, "deny every write"),
            ("untrusted_external", false, "deny every write"),
            ("semi_trusted_customer", false, "wait for approval"),
            ("trusted_internal_unsigned", false, "read and write"),
            ("trusted_internal_signed", false, "needs a credential with --signed"),
            ("trusted_internal_signed", true, "read and write"),
        ] {
            let credential = json!({"agent": "coder", "max_source_trust": trust, "signed": signed});
            let note = highest_trust(&credential).unwrap();
            for part in [
                &format!("count as `{trust}` at most"),
                expected,
                "gateward credential create --agent coder --max-source-trust",
            ] {
                assert!(note.contains(part), "{trust}: {note}");
            }
        }
        let administrator =
            json!({"agent": null, "administrator": "mara", "max_source_trust": "unknown"});
        assert_eq!(highest_trust(&administrator), None);
    }

    #[test]
    fn only_an_untrusted_server_says_that_it_taints() {
        let note = untrusted_server(&json!({"server": "web", "trust": "untrusted"})).unwrap();
        for part in ["taints", "approval", "gateward server update web --trust trusted"] {
            assert!(note.contains(part), "{note}");
        }
        assert_eq!(untrusted_server(&json!({"server": "web", "trust": "trusted"})), None);
    }
}
