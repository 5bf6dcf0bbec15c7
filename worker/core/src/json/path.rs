//! Finding the field that an error of `serde_json` is about.
//!
//! An error has a position. If the value's own check failed, `serde_json` sets the position later, when it leaves the
//! object or array around the value: often after one more bracket or comma. So the beginnings of the text that end
//! close to the position are read again. The shortest one that fails ends in the value that the error is about.
//!
//! `serde_path_to_error` would wrap every deserializer: the Wasm would contain the code that reads each body twice.

use serde_json::Error;

use super::number::string_bytes;

/// An object or array that is not closed yet.
enum Open<'t> {
    /// The name of the current member, in quotation marks.
    Object(Option<&'t str>),
    /// The index of the current item.
    Array(usize),
}

/// Appends the path of the value that an error is about, such as `routes[2].path`. If a field is missing or unknown,
/// this is the object. The text must be valid JSON. `fails` must return whether reading a beginning of it has an error
/// other than an early end.
pub(crate) fn append_path(path: &mut String, text: &str, error: &Error, fails: fn(&str) -> bool) {
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    let position = lines.map(str::len).sum::<usize>().saturating_add(error.column());
    let read = text.get(..position).unwrap_or_default().trim_end();
    // Without the last byte that was read, with it, and with the next byte, which may have been looked at.
    let beginnings = [read.get(..read.len().saturating_sub(1)), Some(read), text.get(..=position)];
    let shortest = beginnings.into_iter().flatten().find(|beginning| fails(beginning));
    append_end(path, shortest.unwrap_or_default());
}

/// Appends the path of the value that a beginning of a JSON text ends in. If it ends with a bracket, this is the
/// object or array.
fn append_end(path: &mut String, text: &str) {
    let (mut open, mut at, mut last) = (Vec::new(), 0, b' ');
    while let Some(byte) = text.as_bytes().get(at) {
        let rest = text.get(at..).unwrap_or_default();
        let length = if *byte == b'"' { string_bytes(rest.as_bytes()) } else { 1 };
        at += length;
        match (byte, open.last_mut()) {
            (b'{', _) => open.push(Open::Object(None)),
            (b'[', _) => open.push(Open::Array(0)),
            (b'}' | b']', _) => {
                open.pop();
            }
            (b',', Some(Open::Object(name))) => *name = None,
            (b',', Some(Open::Array(index))) => *index += 1,
            // A name at the end has no value yet, so the error is about the object.
            (b'"', Some(Open::Object(name @ None))) if at < text.len() => {
                *name = rest.get(..length)
            }
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            last = *byte;
        }
    }
    // The current item has not begun, so the error is about the array.
    if matches!(last, b'[' | b',') {
        open.pop();
    }
    for value in open {
        match value {
            Open::Object(None) => {}
            Open::Object(Some(name)) => {
                append_name(path, &serde_json::from_str::<String>(name).unwrap_or_default());
            }
            Open::Array(index) => path.push_str(&format!("[{index}]")),
        }
    }
}

/// Appends the name of a member to a path.
pub(crate) fn append_name(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;
    use crate::field::{Name, Whole};

    #[derive(Deserialize)]
    #[serde(try_from = "Vec<String>")]
    struct AtMostOne;

    impl TryFrom<Vec<String>> for AtMostOne {
        type Error = &'static str;

        fn try_from(list: Vec<String>) -> Result<Self, Self::Error> {
            if list.len() < 2 { Ok(Self) } else { Err("must be at most one") }
        }
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    #[expect(dead_code, reason = "only read")]
    enum Kind {
        One,
        Two { name: Name },
    }

    #[derive(Default, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Body {
        name: Option<Name>,
        count: Option<Whole<1, 9>>,
        names: Vec<Name>,
        counts: Vec<Whole<1, 9>>,
        lists: Vec<Vec<Name>>,
        pair: Option<(u8, Name)>,
        few: Option<AtMostOne>,
        kinds: Vec<Kind>,
        map: BTreeMap<String, Inner>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Inner {
        name: Name,
        flag: Option<bool>,
    }

    fn fails(beginning: &str) -> bool {
        serde_json::from_str::<Body>(beginning).is_err_and(|error| !error.is_eof())
    }

    #[test]
    fn the_path_leads_to_what_the_error_is_about() {
        for (text, expected) in [
            // The value has another type, or a check of its own refuses it. It is first, last or alone.
            (r#"{"name":5}"#, "name"),
            (r#"{"name":"A B"}"#, "name"),
            (r#"{"name":"A B","names":[]}"#, "name"),
            (r#"{"names":[],"name" : "A B" } "#, "name"),
            (r#"{"name":{}}"#, "name"),
            (r#"{"count":12}"#, "count"),
            (r#"{"count":[1],"name":"a"}"#, "count"),
            (r#"{"count":"[","name":"a"}"#, "count"),
            (r#"{"count":"a,","name":"a"}"#, "count"),
            (r#"{"names":"a"}"#, "names"),
            (r#"{"names":["A","b"]}"#, "names[0]"),
            (r#"{"names":["a" , "B" , "c"]}"#, "names[1]"),
            (r#"{"names":["a","B"]}"#, "names[1]"),
            (r#"{"names":["a", {}]}"#, "names[1]"),
            (r#"{"names":[ [] ]}"#, "names[0]"),
            (r#"{"names":["a","b,[\"",null]}"#, "names[1]"),
            (r#"{"counts":[1,12,1]}"#, "counts[1]"),
            (r#"{"counts":[1,"]"]}"#, "counts[1]"),
            (r#"{"counts":[1,[1]]}"#, "counts[1]"),
            (r#"{"lists":[["a"],[],["b","c",[]]]}"#, "lists[2][2]"),
            (r#"{"lists":[["a"],{"a":[]}]}"#, "lists[1]"),
            ("{\"names\":[\n\"a\",\r\n\t\"B\"\n]\n}", "names[1]"),
            // An object or array is refused as a whole.
            (r#"{"few":["a","b"]}"#, "few"),
            (r#"{"few":["a","b"],"name":"a"}"#, "few"),
            (r#"{"few":["a",1]}"#, "few[1]"),
            (r#"{"pair":[1]}"#, "pair"),
            (r#"{"pair":[]}"#, "pair"),
            (r#"{"pair":[1,"a",1]}"#, "pair"),
            (r#"{"pair":[1,"A"]}"#, "pair[1]"),
            (r#"{"kinds":["one",5]}"#, "kinds[1]"),
            (r#"{"kinds":["three"]}"#, "kinds[0]"),
            (r#"{"kinds":[["one"]]}"#, "kinds[0]"),
            (r#"{"kinds":[{"two":{"name":"A"}}]}"#, "kinds[0].two.name"),
            // The caller appends the name of a field that is missing or unknown.
            (r#"{"map":{"a":{"name":"a"},"b":{"flag":true}}}"#, "map.b"),
            (r#"{"map":{"a":{}}}"#, "map.a"),
            (r#"{"map":{"a":{"name":"a","flags":[1]}}}"#, "map.a"),
            (r#"{"names":["a"],"nam":5}"#, ""),
            // Names are unescaped.
            (
                "{\"map\":{\"\\\"\\u00fc,\u{1f600}\":{\"name\":\"a\",\"flag\":1}}}",
                "map.\"ü,😀.flag",
            ),
        ] {
            let error = serde_json::from_str::<Body>(text).err().unwrap();
            let mut path = String::new();
            append_path(&mut path, text, &error, fails);
            assert_eq!(path, expected, "{text}: {error}");
        }
    }

    #[test]
    fn an_error_without_a_usable_position_is_about_the_whole_text() {
        let column = usize::MAX;
        for message in [
            "no position",
            "elsewhere at line 7 column 9",
            &format!("elsewhere at line 1 column {column}"),
        ] {
            let mut path = String::new();
            let error = <Error as serde::de::Error>::custom(message);
            append_path(&mut path, r#"{"name":{"ü":5}}"#, &error, |_| true);
            assert_eq!(path, "", "{message}");
        }
    }
}
