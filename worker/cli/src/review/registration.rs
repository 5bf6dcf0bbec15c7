//! What an approval sets for a tool, and what is proposed. A proposal errs on the safe side: a tool
//! whose definition suggests egress is proposed as an egress tool, whatever is registered.

use gateward_admin::egress::{self, Sign};
use gateward_admin::roles;
use gateward_core::json::{self, Json};
use gateward_core::policy::bundle::Risk;
use gateward_core::problem::Problem;
use gateward_core::provenance::{ArgumentRoles, Role};
use serde::Deserialize as _;
use serde_json::Value;

use super::summary::cut;
use crate::failure::Failure;
use crate::request::Fields;
use crate::table::printable;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Registration {
    pub mutates: bool,
    pub egress: bool,
    pub risk: Risk,
}

impl Registration {
    /// The registration in the API's record of the tool.
    pub fn of(tool: &Value) -> Result<Self, Failure> {
        let flag = |name: &str| tool.get(name).and_then(Value::as_bool);
        let risk = tool.get("risk").and_then(|risk| Risk::deserialize(risk).ok());
        let (Some(mutates), Some(egress), Some(risk)) = (flag("mutates"), flag("egress"), risk)
        else {
            return Err(Failure::other("the answer is not a tool"));
        };
        Ok(Self { mutates, egress, risk })
    }

    /// The registration, with egress if the definition suggests it.
    pub fn proposed(tool: &Value) -> Result<Self, Failure> {
        let known = Self::of(tool)?;
        Ok(Self { egress: known.egress || !signs(tool).is_empty(), ..known })
    }

    /// The registration of a tool that changes nothing. Every listed tool starts with medium risk,
    /// before a person has looked at it. A read that sends nothing out gets low risk. A risk that
    /// somebody raised stays.
    pub fn as_read(self) -> Self {
        let risk = match self.risk {
            Risk::Medium if !self.egress => Risk::Low,
            risk => risk,
        };
        Self { mutates: false, risk, ..self }
    }

    pub fn fields(self, fields: Fields) -> Fields {
        fields
            .with("mutates", Some(self.mutates))
            .with("egress", Some(self.egress))
            .with("risk", Some(self.risk.as_str()))
    }
}

/// The tool's definition, if it has one.
fn definition(tool: &Value) -> Option<Result<Json, Problem>> {
    let definition = tool.get("definition").filter(|definition| definition.is_object())?;
    Some(json::parse_definition(definition.to_string().as_bytes()).map_err(Problem::from))
}

/// The roles of the tool's arguments, for people. If its definition suggests other roles or another reach than
/// are registered, these too: a definition may have changed since.
pub fn roles(tool: &Value) -> Vec<String> {
    let known = tool.get("argument_roles").and_then(|roles| ArgumentRoles::deserialize(roles).ok());
    let known = described(&known.unwrap_or_default());
    let mut lines = vec![format!("roles: {known}")];
    if let Some(Ok(definition)) = definition(tool) {
        let (roles, reach) = roles::derive(&definition);
        let roles = described(&roles);
        if roles != known || tool.get("reach").and_then(Value::as_str) != Some(reach.as_str()) {
            lines.push(format!("its definition suggests: reach {}; {roles}", reach.as_str()));
        }
    }
    lines
}

fn described(ArgumentRoles(roles): &ArgumentRoles) -> String {
    if roles.iter().all(|(_, role)| *role != Role::Sink) {
        return "every argument is a sink".to_owned();
    }
    let of = |role: Role| {
        let pointers = roles.iter().filter(|(_, one)| *one == role);
        let pointers: Vec<&str> = pointers.map(|(pointer, _)| pointer.as_str()).collect();
        (!pointers.is_empty()).then(|| format!("{} {}", role.as_str(), pointers.join(" ")))
    };
    cut(&printable(&Role::ALL.into_iter().filter_map(of).collect::<Vec<_>>().join(", ")))
}

/// The signs of egress in the tool's definition, for people.
pub fn signs(tool: &Value) -> Vec<String> {
    let definition = match definition(tool) {
        None => return Vec::new(),
        Some(Err(_)) => return vec!["the definition cannot be read".to_owned()],
        Some(Ok(definition)) => definition,
    };
    let sign = |sign: &Sign<'_>| match sign {
        Sign::OpenWorld => "openWorldHint".to_owned(),
        Sign::Format(format) => format!("format `{format}`"),
        Sign::Name(name) => format!("argument `{}`", cut(&printable(name))),
    };
    egress::signs(&definition).iter().map(sign).collect()
}

/// Whether the definition says that the tool changes something. If it says the opposite, or
/// nothing, that proves nothing.
pub fn says_that_it_writes(tool: &Value) -> bool {
    let hint = |name: &str| tool.pointer(&format!("/definition/annotations/{name}"));
    hint("readOnlyHint") == Some(&Value::Bool(false))
        || (hint("destructiveHint") == Some(&Value::Bool(true))
            && hint("readOnlyHint") != Some(&Value::Bool(true)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(registered: (bool, bool, &str), definition: Value) -> Value {
        let (mutates, egress, risk) = registered;
        json!({"mutates": mutates, "egress": egress, "risk": risk, "definition": definition})
    }

    #[test]
    fn egress_is_proposed_where_the_registry_or_the_definition_suggests_it() {
        let fetch = json!({"inputSchema": {"properties": {"url": {"type": "string"}}}});
        let plain = json!({"inputSchema": {"properties": {"query": {}}}});
        for (registered, definition, expected) in [
            (false, &fetch, true),
            (true, &plain, true),
            (false, &plain, false),
            (false, &Value::Null, false),
            // A schema's bound can be any number.
            (false, &json!({"inputSchema": {"maximum": 1_u64 << 60}}), false),
        ] {
            let tool = tool((true, registered, "low"), definition.clone());
            assert_eq!(Registration::proposed(&tool).unwrap().egress, expected, "{definition}");
        }
    }

    #[test]
    fn roles_are_shown_with_what_the_definition_suggests_if_it_differs() {
        let definition =
            json!({"name": "send", "inputSchema": {"properties": {"to": {}, "body": {}}}});
        let suggested = json!({"/body": "content", "/to": "sink"});
        let shown = "sink /to, content /body";
        let all = "every argument is a sink";
        for (roles, reach, definition, expected) in [
            (&suggested, "outside", &definition, vec![format!("roles: {shown}")]),
            (
                &Value::Null,
                "outside",
                &definition,
                vec![
                    format!("roles: {all}"),
                    format!("its definition suggests: reach outside; {shown}"),
                ],
            ),
            (
                &suggested,
                "nobody",
                &definition,
                vec![
                    format!("roles: {shown}"),
                    format!("its definition suggests: reach outside; {shown}"),
                ],
            ),
            (&json!({"/body": "content"}), "nobody", &Value::Null, vec![format!("roles: {all}")]),
        ] {
            let tool = json!({"argument_roles": roles, "reach": reach, "definition": definition});
            assert_eq!(super::roles(&tool), expected, "{tool}");
        }
    }

    #[test]
    fn as_a_read_a_tool_keeps_its_egress_and_a_risk_that_was_raised() {
        for (risk, egress, expected) in [
            ("medium", false, Risk::Low),
            ("medium", true, Risk::Medium),
            ("low", true, Risk::Low),
            ("high", false, Risk::High),
            ("critical", false, Risk::Critical),
        ] {
            let known = Registration::of(&tool((true, egress, risk), Value::Null)).unwrap();
            let read = Registration { mutates: false, egress, risk: expected };
            assert_eq!(known.as_read(), read, "{risk} {egress}");
        }
    }

    #[test]
    fn a_definition_says_that_its_tool_writes_only_where_it_says_so() {
        for (annotations, expected) in [
            (json!({}), false),
            (json!({"readOnlyHint": true}), false),
            (json!({"readOnlyHint": false}), true),
            (json!({"readOnlyHint": "false"}), false),
            (json!({"destructiveHint": true}), true),
            (json!({"destructiveHint": true, "readOnlyHint": true}), false),
        ] {
            let tool = json!({"definition": {"annotations": annotations}});
            assert_eq!(says_that_it_writes(&tool), expected, "{annotations}");
        }
    }
}
