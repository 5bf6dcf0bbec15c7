//! JSON Merge Patch (RFC 7396).

use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};

type Members = BTreeMap<String, Box<RawValue>>;

/// The document `target` after `patch`, both as JSON texts. Whatever the patch does not touch keeps
/// its text, so no number loses digits. A key that is in an object twice counts once: callers refuse
/// such texts before.
///
/// # Errors
///
/// One of the texts is not JSON.
pub fn merge_patch(target: &str, patch: &str) -> serde_json::Result<String> {
    let (target, patch) = (serde_json::from_str(target)?, serde_json::from_str(patch)?);
    merged(Some(target), patch).map(|merged| merged.get().to_owned())
}

fn merged(target: Option<&RawValue>, patch: &RawValue) -> serde_json::Result<Box<RawValue>> {
    if !is_object(patch) {
        return Ok(patch.to_owned());
    }
    let mut members: Members = match target.filter(|target| is_object(target)) {
        Some(target) => serde_json::from_str(target.get())?,
        None => BTreeMap::new(),
    };
    for (name, patch) in serde_json::from_str::<Members>(patch.get())? {
        let before = members.remove(&name);
        if patch.get() != "null" {
            members.insert(name, merged(before.as_deref(), &patch)?);
        }
    }
    to_raw_value(&members)
}

fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of RFC 7396, appendix A, whole and in its order, and numbers that no double holds.
    #[test]
    fn a_patch_is_merged_as_the_rfc_says() {
        for (target, patch, expected) in [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
            (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
            (r#"{"a":"foo"}"#, "null", "null"),
            (r#"{"a":"foo"}"#, r#""bar""#, r#""bar""#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"a":1,"e":null}"#),
            ("[1,2]", r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
            ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
            (
                r#"{"n":9007199254740993}"#,
                r#"{ "m" : 1.10 }"#,
                r#"{"m":1.10,"n":9007199254740993}"#,
            ),
        ] {
            assert_eq!(merge_patch(target, patch).unwrap(), expected, "{target} {patch}");
        }
        assert!(merge_patch("{}", "{").is_err());
    }
}
