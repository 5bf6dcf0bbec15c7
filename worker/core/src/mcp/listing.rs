//! Lists of what a server offers, without what no call of the agent could use.

use super::Era;
use super::action::ACTIONS;
use super::action::{prompt, resource, template};
use super::envelope::{self, ITEM};
use super::method::Listed;
use super::raw::{RawObject, array, items_within};
use crate::call::command::{Candidate, MAX_CANDIDATES};
use crate::gate::proxy::Visibility;
use crate::json::{self, Json};
use crate::name::is_tool_name;
use crate::registry::definition_sha256;

/// How long a client may keep a list: what it shows may be forbidden by the next minute, and is then
/// denied when called.
pub const MAX_LIST_TTL_MS: u64 = 60_000;

/// One page of a list.
#[derive(Debug)]
pub struct Page {
    listed: Listed,
    /// The items as they came, and what each would be called as; `None` for what never could be.
    items: Vec<(Box<str>, Option<Candidate>)>,
}

impl Page {
    /// `None` when the result has no such list, or more items than a lane looks at.
    #[must_use]
    pub fn read(listed: Listed, result: &RawObject) -> Option<Self> {
        let items = items_within(result.get(listed.field())?, MAX_CANDIDATES)?;
        let items = items.into_iter().map(|text| (Box::from(text), candidate(listed, text)));
        Some(Self { listed, items: items.collect() })
    }

    /// Every list of a result of which it is not known what was asked for; `None` when one cannot be
    /// read.
    #[must_use]
    pub fn all(result: &RawObject) -> Option<Vec<Self>> {
        let there = Listed::ALL.into_iter().filter(|listed| result.get(listed.field()).is_some());
        there.map(|listed| Self::read(listed, result)).collect()
    }

    /// What the lane is asked about.
    #[must_use]
    pub fn candidates(&self) -> Vec<Candidate> {
        self.items.iter().filter_map(|(_, candidate)| candidate.clone()).collect()
    }

    /// The definitions of tools that are not registered as they are listed, given what the lane says
    /// of each candidate.
    #[must_use]
    pub fn news(&self, visible: &[Visibility]) -> Vec<&str> {
        let is_new = |seen| matches!(seen, Visibility::Unknown | Visibility::Changed);
        self.judged(visible)
            .filter(|(_, seen)| self.listed == Listed::Tools && is_new(*seen))
            .map(|(text, _)| text)
            .collect()
    }

    /// The result with the items that the agent could use, in their order and their bytes.
    pub fn filter(&self, visible: &[Visibility], era: Era, result: &mut RawObject) {
        let kept: Vec<&str> = self
            .judged(visible)
            .filter(|(_, seen)| seen.is_usable())
            .map(|(text, _)| text)
            .collect();
        result.set(self.listed.field(), array(&kept));
        if era == Era::Stateless {
            let ttl = result.get("ttlMs").and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
            result.set("ttlMs", ttl.min(MAX_LIST_TTL_MS).to_string());
            result.set_text("cacheScope", "private");
        }
    }

    /// The candidates with the lane's word on each; without one, an item is hidden.
    fn judged(&self, visible: &[Visibility]) -> impl Iterator<Item = (&str, Visibility)> {
        let candidates = self.items.iter().filter(|(_, candidate)| candidate.is_some());
        let visible = visible.iter().copied().chain(std::iter::repeat(Visibility::Hidden));
        candidates.zip(visible).map(|((text, _), seen)| (&**text, seen))
    }
}

/// What the item would be called as; `None` when it cannot be read in one way only.
fn candidate(listed: Listed, text: &str) -> Option<Candidate> {
    let item = json::parse_definition(text.as_bytes()).ok()?;
    let Json::Object(members) = &item else { return None };
    if envelope::mistaken(ITEM, members.iter().map(|(name, _)| name.as_str())).is_some() {
        return None;
    }
    let field = |name: &str| item.get(name).and_then(Json::as_str).map(str::to_owned);
    match listed {
        Listed::Tools => {
            let hash = definition_sha256(&item);
            let tool = field("name")
                .filter(|name| is_tool_name(name) && !ACTIONS.contains(&name.as_str()))?;
            Some(Candidate { tool, input: None, resource: None, definition_sha256: Some(hash) })
        }
        Listed::Prompts => Some(prompt(&field("name")?)),
        Listed::Resources => Some(resource(&field("uri")?)),
        Listed::Templates => Some(template()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Visibility::{Changed, Hidden, Unknown, Visible};

    #[test]
    fn a_list_keeps_the_order_and_the_bytes_of_what_stays() {
        let text = r#"{"tools":[{"name":"a","inputSchema":{"$defs":{"x":1.50}}},{"name":"b"}, {"name":"c d"},{"name":"e","name":"f"},{"name":"g"}],"nextCursor":"","ttlMs":90000}"#;
        for (visible, era, expected, news) in [
            (
                &[Visible, Hidden, Visible][..],
                Era::Session,
                r#"{"tools":[{"name":"a","inputSchema":{"$defs":{"x":1.50}}},{"name":"g"}],"nextCursor":"","ttlMs":90000}"#,
                vec![],
            ),
            (
                &[Unknown, Visible, Changed],
                Era::Stateless,
                r#"{"tools":[{"name":"b"}],"nextCursor":"","ttlMs":60000,"cacheScope":"private"}"#,
                vec![r#"{"name":"a","inputSchema":{"$defs":{"x":1.50}}}"#, r#"{"name":"g"}"#],
            ),
            (&[], Era::Session, r#"{"tools":[],"nextCursor":"","ttlMs":90000}"#, vec![]),
        ] {
            let mut result = RawObject::parse(text).unwrap();
            let page = Page::read(Listed::Tools, &result).unwrap();
            assert_eq!(page.news(visible), news);
            page.filter(visible, era, &mut result);
            assert_eq!(result.write(), expected);
        }
    }

    #[test]
    fn an_item_is_judged_as_what_it_would_be_called_as() {
        for (listed, text, expected) in [
            (Listed::Resources, r#"{"resources":[{"uri":"a://b"}]}"#, vec![resource("a://b")]),
            (Listed::Resources, r#"{"resources":[{"name":"b"},5]}"#, vec![]),
            (Listed::Prompts, r#"{"prompts":[{"name":"p"}]}"#, vec![prompt("p")]),
            // Some readers show the second name, which would not be the one that is judged.
            (Listed::Prompts, r#"{"prompts":[{"name":"p","Name":"q"}]}"#, vec![]),
            (Listed::Tools, r#"{"tools":[{"name":"a","NAME":"b"}]}"#, vec![]),
            (Listed::Tools, r#"{"tools":[{"name":"a","InputSchema":{}}]}"#, vec![]),
            (Listed::Resources, r#"{"resources":[{"uri":"a://b","URI":"c://d"}]}"#, vec![]),
            (
                Listed::Templates,
                r#"{"resourceTemplates":[{"uriTemplate":"a://{b}"}]}"#,
                vec![template()],
            ),
        ] {
            let page = Page::read(listed, &RawObject::parse(text).unwrap()).unwrap();
            assert_eq!(page.candidates(), expected, "{text}");
        }
    }

    #[test]
    fn every_list_of_a_result_is_filtered() {
        for (text, pages, expected) in [
            (r#"{"content":[]}"#, Some(0), r#"{"content":[]}"#),
            (
                r#"{"prompts":[{"name":"p"}],"tools":[{"name":"a"}],"resourceTemplates":[{}],"resources":[{"uri":"a"}]}"#,
                Some(4),
                r#"{"prompts":[],"tools":[],"resourceTemplates":[],"resources":[]}"#,
            ),
            (r#"{"prompts":[],"tools":{"name":"a"}}"#, None, ""),
        ] {
            let mut result = RawObject::parse(text).unwrap();
            let found = Page::all(&result);
            assert_eq!(found.as_ref().map(Vec::len), pages, "{text}");
            for page in found.unwrap_or_default() {
                page.filter(&[], Era::Session, &mut result);
            }
            if pages.is_some() {
                assert_eq!(result.write(), expected);
            }
        }
    }

    #[test]
    fn a_definition_is_known_by_its_canonical_form() {
        let hash = |text: &str| candidate(Listed::Tools, text).unwrap().definition_sha256.unwrap();
        assert_eq!(hash(r#"{"name":"a","x":1.0}"#), hash(r#"{ "x": 1, "name": "a" }"#));
        assert_ne!(hash(r#"{"name":"a","x":1}"#), hash(r#"{"name":"a","x":2}"#));
        // No double tells these two apart.
        let large = |number: &str| hash(&format!(r#"{{"name":"a","maximum":{number}}}"#));
        assert_ne!(large("9223372036854775807"), large("9223372036854775808"));
        assert_ne!(large("1e300"), large("1e301"));
    }

    #[test]
    fn what_is_no_list_or_too_long_a_one_is_not_read() {
        let long = format!(r#"{{"tools":[{}]}}"#, vec!["{}"; MAX_CANDIDATES + 1].join(","));
        for text in ["{}", r#"{"tools":{}}"#, r#"{"tools":null}"#, &long] {
            assert!(Page::read(Listed::Tools, &RawObject::parse(text).unwrap()).is_none());
        }
    }
}
