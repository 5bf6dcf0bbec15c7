//! `agent grant` and `agent ungrant`: add or remove one glob of an agent's list, without losing
//! another administrator's change. Pure; `run` reads, sends, and starts again if somebody else
//! changed the agent meanwhile.

use serde_json::Value;

use crate::failure::Failure;
use crate::request::{Fields, Method, Request};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Add,
    Remove,
}

#[derive(Debug, PartialEq)]
pub struct Grant {
    pub agent: String,
    pub glob: String,
    pub change: Change,
}

impl Grant {
    pub fn read(&self) -> Request {
        Request::get(&["agents", &self.agent])
    }

    /// The change of the agent as it was read. `None` if nothing needs to change. `again`: an
    /// earlier attempt got 412, which may mean that it was carried out and its answer was lost.
    pub fn edit(&self, agent: &Value, again: bool) -> Result<Option<Request>, Failure> {
        let unreadable = || Failure::other("the answer is not an agent");
        let revision = agent.get("revision").and_then(Value::as_u64).ok_or_else(unreadable)?;
        let mut globs = match agent.get("allowed_tools") {
            Some(Value::Array(globs)) => globs.clone(),
            Some(Value::Null) => return Err(self.unrestricted()),
            _ => return Err(unreadable()),
        };
        let held = globs.iter().any(|glob| glob.as_str() == Some(&self.glob));
        match self.change {
            Change::Add if held => return Ok(None),
            Change::Add => globs.push(Value::from(self.glob.as_str())),
            Change::Remove if held => globs.retain(|glob| glob.as_str() != Some(&self.glob)),
            Change::Remove if again => return Ok(None),
            // A mistyped glob must not look like a removed grant.
            Change::Remove => {
                let Self { agent, glob, .. } = self;
                return Err(Failure::Other(format!("agent `{agent}` has no grant `{glob}`")));
            }
        }
        let fields = Fields::new().with("allowed_tools", Some(globs));
        let request = Request::new(Method::Patch, &["agents", &self.agent]).body(fields);
        Ok(Some(request.if_match(Some(revision))))
    }

    fn unrestricted(&self) -> Failure {
        let Self { agent, .. } = self;
        Failure::Other(format!(
            "agent `{agent}` may call any tool: there is no list to edit; \
             `gateward agent update {agent} --allowed-tool <GLOB>` or `--no-tools` makes one"
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_grant_edits_the_list_that_was_read_and_only_that() {
        let (add, remove) = (Change::Add, Change::Remove);
        for (change, glob, list, again, expected) in [
            (add, "b", json!(["a"]), false, Ok(Some(json!(["a", "b"])))),
            (add, "a", json!([]), false, Ok(Some(json!(["a"])))),
            (add, "a", json!(["a"]), false, Ok(None)),
            (remove, "a", json!(["a", "b"]), false, Ok(Some(json!(["b"])))),
            // Removing the last grant leaves an empty list: no tools, not all tools.
            (remove, "a", json!(["a"]), false, Ok(Some(json!([])))),
            (remove, "a", json!(["b"]), true, Ok(None)),
            (remove, "a", json!(["b"]), false, Err("agent `coder` has no grant `a`")),
            (add, "a", json!(null), false, Err("may call any tool")),
            (remove, "a", json!(null), true, Err("may call any tool")),
        ] {
            let grant = Grant { agent: "coder".to_owned(), glob: glob.to_owned(), change };
            let agent = json!({"agent": "coder", "revision": 7, "allowed_tools": list});
            match (grant.edit(&agent, again), expected) {
                (Ok(None), Ok(None)) => {}
                (Ok(Some(request)), Ok(Some(list))) => {
                    assert_eq!(request.method, Method::Patch);
                    assert_eq!(request.target(), "/v1/agents/coder");
                    assert_eq!(request.if_match, Some(7));
                    assert_eq!(request.body, Some(json!({"allowed_tools": list})));
                }
                (Err(failure), Err(text)) => assert!(failure.to_string().contains(text)),
                (got, _) => panic!("{change:?} {glob} {list}: {got:?}"),
            }
        }
    }
}
