//! The claims that the caller of a proxy makes about its call. A claim never raises the trust above the
//! credential's.

use crate::bounds::{MAX_LABEL_BYTES, MAX_REQUEST_ID_BYTES};
use crate::call::tool_call::NO_CONTROL_CHARACTERS;
use crate::call::{self, ToolCall, run};
use crate::json::Json;
use crate::problem::{Problem, ProblemCode};
use crate::trust::SourceTrust;

/// The claims. An absent claim is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims {
    source_trust: Option<SourceTrust>,
    pub run_id: Option<String>,
    approval_id: Option<String>,
    user_id: Option<String>,
    user_role: Option<String>,
    contains_sensitive_data: bool,
}

impl Claims {
    /// Reads the claims. `text` returns the value of a name.
    ///
    /// # Errors
    ///
    /// `malformed_request`, with the name of the claim that is not valid.
    pub fn read(text: impl Fn(&str) -> Result<Option<String>, Problem>) -> Result<Self, Problem> {
        let bounded = |name: &str, max_bytes: usize| match text(name)? {
            Some(value) if value.is_empty() || value.len() > max_bytes => {
                Err(malformed(name, &format!("1 to {max_bytes} bytes")))
            }
            value => Ok(value),
        };
        let user_id = bounded("user_id", MAX_LABEL_BYTES)?;
        if user_id.as_ref().is_some_and(|id| id.contains(char::is_control)) {
            return Err(malformed("user_id", NO_CONTROL_CHARACTERS));
        }
        let sensitive = "contains_sensitive_data";
        Ok(Self {
            source_trust: bounded("source_trust", MAX_LABEL_BYTES)?
                .map(|claim| SourceTrust::from_claim(&claim)),
            run_id: bounded("run_id", MAX_LABEL_BYTES)?,
            approval_id: bounded("approval_id", MAX_REQUEST_ID_BYTES)?,
            user_id,
            user_role: bounded("user_role", MAX_LABEL_BYTES)?,
            contains_sensitive_data: match text(sensitive)?.as_deref() {
                None | Some("false") => false,
                Some("true") => true,
                Some(_) => return Err(malformed(sensitive, "`true` or `false`")),
            },
        })
    }

    /// Reads the claims from headers: `X-Gateward-Source-Trust` and so on.
    ///
    /// # Errors
    ///
    /// As [`Claims::read`].
    pub fn from_headers(header: impl Fn(&str) -> Option<String>) -> Result<Self, Problem> {
        Self::read(|name| {
            Ok(header(&format!("{}{}", crate::name::OWN_PREFIX, name.replace('_', "-"))))
        })
    }

    /// These claims with the lower source trust of both. If one says that the data is sensitive, it is.
    #[must_use]
    pub fn at_most(self, other: &Self) -> Self {
        let lowest = match (self.source_trust, other.source_trust) {
            (Some(own), Some(other)) => Some(own.lowest(other)),
            (own, other) => own.or(other),
        };
        Self {
            source_trust: lowest,
            contains_sensitive_data: self.contains_sensitive_data || other.contains_sensitive_data,
            ..self
        }
    }

    /// These claims in the run of a run credential.
    ///
    /// # Errors
    ///
    /// `malformed_request`: see [`run::fix`].
    pub fn in_run(self, run: &str) -> Result<Self, Problem> {
        let claimed = [&self.run_id, &self.user_id, &self.user_role];
        run::fix(run, claimed.map(|claim| claim.as_deref().unwrap_or_default()))?;
        Ok(Self { run_id: Some(run.to_owned()), ..self })
    }

    /// A call of a tool with these claims. Without a source trust, the call claims the highest one; the
    /// credential's own limits it.
    #[must_use]
    pub fn call(
        self,
        (tenant, agent): (&str, &str),
        (server, tool, resource): (&str, &str, &str),
        input: Json,
    ) -> ToolCall {
        let mut call = ToolCall {
            agent: agent.to_owned(),
            environment: None,
            server: server.to_owned(),
            tool: tool.to_owned(),
            resource: resource.to_owned(),
            mutates_state: false,
            input,
            route: None,
            source_trust: self.source_trust.unwrap_or(SourceTrust::TrustedInternalSigned),
            contains_sensitive_data: self.contains_sensitive_data,
            request_id: None,
            approval_id: self.approval_id,
            user_id: self.user_id.unwrap_or_default(),
            user_role: self.user_role.unwrap_or_default(),
            run_id: self.run_id.unwrap_or_default(),
            root_trust_level: None,
            nonce: None,
            timestamp_ms: None,
            dry_run: false,
            action_hash: [0; 32],
            fingerprint: [0; 32],
            rounded: Vec::new(),
        };
        call::complete(&mut call, tenant);
        call
    }
}

fn malformed(name: &str, must: &str) -> Problem {
    Problem::new(ProblemCode::MalformedRequest, format!("`{name}` must be {must}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_that_is_too_long_or_not_valid_is_rejected() {
        let long = "x".repeat(MAX_LABEL_BYTES + 1);
        for (name, value, expected) in [
            ("x-gateward-run-id", "r", true),
            ("x-gateward-run-id", long.as_str(), false),
            ("x-gateward-run-id", "", false),
            ("x-gateward-user-id", "ada", true),
            ("x-gateward-user-id", "a\0da", false),
            ("x-gateward-contains-sensitive-data", "true", true),
            ("x-gateward-contains-sensitive-data", "yes", false),
            ("x-gateward-source-trust", "made_up", true),
        ] {
            let claims = Claims::from_headers(|asked| (asked == name).then(|| value.to_owned()));
            assert_eq!(claims.is_ok(), expected, "{name}: {value}");
        }
    }

    #[test]
    fn an_unknown_source_trust_is_the_lowest_and_an_absent_one_the_highest() {
        let call = |claim: Option<&str>| {
            let claim = claim.map(str::to_owned);
            let claims = Claims::read(|name| Ok(claim.clone().filter(|_| name == "source_trust")));
            claims.unwrap().call(("t", "a"), ("s", "x", ""), Json::Object(Vec::new()))
        };
        assert_eq!(call(Some("made_up")).source_trust, SourceTrust::Unknown);
        assert_eq!(call(None).source_trust, SourceTrust::TrustedInternalSigned);
        assert_ne!(call(None).action_hash, [0; 32]);
    }

    #[test]
    fn of_two_claims_the_lower_source_trust_counts() {
        let of = |claim: &str| {
            Claims::read(|name| Ok((name == "source_trust").then(|| claim.to_owned()))).unwrap()
        };
        let (high, low) = (of("trusted_internal_unsigned"), of("untrusted_external"));
        for (own, other, expected) in [
            (&high, &low, &low),
            (&low, &high, &low),
            (&high, &Claims::default(), &high),
            (&Claims::default(), &low, &low),
        ] {
            assert_eq!(&own.clone().at_most(other), expected);
        }
    }

    #[test]
    fn data_is_sensitive_if_one_of_two_claims_says_so() {
        let of = |claim: &str| {
            Claims::read(|name| Ok((name == "contains_sensitive_data").then(|| claim.to_owned())))
                .unwrap()
        };
        for (own, other, expected) in
            [("true", "false", "true"), ("false", "true", "true"), ("false", "false", "false")]
        {
            assert_eq!(of(own).at_most(&of(other)), of(expected), "{own} and {other}");
        }
    }
}
