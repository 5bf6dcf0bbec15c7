//! Lists of what a server offers, filtered to what the agent may use.

use serde_json::value::RawValue;

use super::Era;
use super::action::METHOD_TOOLS;
use super::action::{prompt, resource, template};
use super::envelope::{self, ITEM};
use super::method::Listed;
use crate::call::command::{Candidate, MAX_CANDIDATES};
use crate::gate::inspection::Inspected;
use crate::gate::proxy::Visibility;
use crate::json::raw::{RawObject, items_within};
use crate::json::{self, Json};
use crate::name::is_tool_name;
use crate::provenance::{Observed, ValueKey, extract};
use crate::registry::definition_sha256;

/// How long a client may cache a list. A tool that is forbidden in the meantime stays in the cached list,
/// and calls of it are denied.
pub const MAX_LIST_TTL_MS: u64 = 60_000;

/// One page of a list.
#[derive(Debug)]
pub struct Page {
    listed: Listed,
    /// The items, each with the candidate for its use; `None` for an item that cannot be used.
    items: Vec<(Box<RawValue>, Option<Candidate>)>,
}

impl Page {
    /// `None` when the result has no such list, or the list has more than [`MAX_CANDIDATES`] items.
    #[must_use]
    pub fn read(listed: Listed, result: &RawObject) -> Option<Self> {
        let items = items_within(result.get(listed.field())?, MAX_CANDIDATES)?;
        let items = items.into_iter().map(|item| (item.to_owned(), candidate(listed, item.get())));
        Some(Self { listed, items: items.collect() })
    }

    /// Every list of a result whose request is not known. `None` when one of them cannot be read.
    #[must_use]
    pub fn all(result: &RawObject) -> Option<Vec<Self>> {
        let there = Listed::ALL.into_iter().filter(|listed| result.get(listed.field()).is_some());
        there.map(|listed| Self::read(listed, result)).collect()
    }

    /// What the lane must decide on.
    #[must_use]
    pub fn candidates(&self) -> Vec<Candidate> {
        self.items.iter().filter_map(|(_, candidate)| candidate.clone()).collect()
    }

    /// The definitions of tools that are not registered, or differ from the registered ones. `visible` is
    /// the lane's result for each candidate.
    #[must_use]
    pub fn unregistered(&self, visible: &[Visibility]) -> Vec<&str> {
        let is_new = |seen| matches!(seen, Visibility::Unknown | Visibility::Changed);
        self.judged(visible)
            .filter(|(_, seen)| self.listed == Listed::Tools && is_new(*seen))
            .map(|(item, _)| item.get())
            .collect()
    }

    /// Has the shield inspect the items that the agent could use and that nobody reviewed. A tool in whose definition
    /// an attack is found counts as changed, so it waits for approval. An item of another list is hidden if it is
    /// withheld. Returns whether an item that stays has an attack.
    pub fn inspect(&self, visible: &mut [Visibility], look: impl Fn(&str) -> Inspected) -> bool {
        let items = self.items.iter().filter(|(_, candidate)| candidate.is_some());
        let mut taints = false;
        for ((item, _), seen) in items.zip(visible) {
            let of_tool = self.listed == Listed::Tools;
            if !seen.is_usable() || (of_tool && *seen == Visibility::Visible) {
                continue;
            }
            let inspected = look(item.get());
            let is_withheld = inspected.withheld.is_some();
            if of_tool && (inspected.taints || is_withheld) {
                *seen = Visibility::Changed;
            } else if is_withheld {
                *seen = Visibility::Hidden;
            } else {
                taints |= inspected.taints;
            }
        }
        taints
    }

    /// The values of the items that stay, with the trust of their server. If an administrator approved a tool's
    /// definition by its hash, its values must not count as untrusted. So the definition is read only if the server is
    /// trusted.
    #[must_use]
    pub fn observe(&self, visible: &[Visibility], key: &ValueKey, trusted: bool) -> Observed {
        let is_read = |seen: Visibility| {
            let is_reviewed = self.listed == Listed::Tools && seen == Visibility::Visible;
            seen.is_usable() && (trusted || !is_reviewed)
        };
        let kept = self.judged(visible).filter(|(_, seen)| is_read(*seen));
        let items = kept.filter_map(|(item, _)| json::parse_definition(item.get().as_bytes()).ok());
        extract::items(key, &items.collect::<Vec<_>>(), trusted)
    }

    /// Removes from the result the items that the agent may not use. The others keep order and bytes.
    pub fn filter(&self, visible: &[Visibility], era: Era, result: &mut RawObject) {
        let kept = self.judged(visible).filter(|(_, seen)| seen.is_usable());
        result.set(self.listed.field(), &kept.map(|(item, _)| item).collect::<Vec<_>>());
        if era == Era::Stateless {
            let ttl = result.get("ttlMs").and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
            result.set("ttlMs", &ttl.min(MAX_LIST_TTL_MS));
            result.set("cacheScope", "private");
        }
    }

    /// The items that have a candidate, with the lane's result for each. An item without a result is
    /// hidden.
    fn judged(&self, visible: &[Visibility]) -> impl Iterator<Item = (&RawValue, Visibility)> {
        let candidates = self.items.iter().filter(|(_, candidate)| candidate.is_some());
        let visible = visible.iter().copied().chain(std::iter::repeat(Visibility::Hidden));
        candidates.zip(visible).map(|((item, _), seen)| (&**item, seen))
    }
}

/// The candidate for using the item. `None` when the item cannot be read or is ambiguous.
fn candidate(listed: Listed, text: &str) -> Option<Candidate> {
    let item = json::parse_definition(text.as_bytes()).ok()?;
    let Json::Object(members) = &item else { return None };
    if envelope::confusable(ITEM, members.iter().map(|(name, _)| name.as_str())).is_some() {
        return None;
    }
    let field = |name: &str| item.get(name).and_then(Json::as_str).map(str::to_owned);
    match listed {
        Listed::Tools => {
            let hash = definition_sha256(&item);
            let tool = field("name")
                .filter(|name| is_tool_name(name) && !METHOD_TOOLS.contains(&name.as_str()))?;
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
    use crate::provenance::lookup;
    use Visibility::{Changed, Hidden, Unknown, Unreviewed, Visible};

    #[test]
    fn the_items_that_stay_keep_their_order_and_bytes() {
        let text = r#"{"tools":[{"name":"a","inputSchema":{"$defs":{"x":1.50}}},{"name":"b"}, {"name":"c d"},{"name":"e","name":"f"},{"name":"g"}],"nextCursor":"","ttlMs":90000}"#;
        for (visible, era, expected, unregistered) in [
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
            assert_eq!(page.unregistered(visible), unregistered);
            page.filter(visible, era, &mut result);
            assert_eq!(result.write(), expected);
        }
    }

    #[test]
    fn the_values_of_the_items_that_stay_are_read_unless_somebody_reviewed_them() {
        let key = ValueKey::new([7; 16]);
        let hash = |value: &str| lookup::hashes(&key, &Json::String(value.to_owned())).remove(0);
        let text = r#"{"tools":[
            {"name":"a","description":"Mail bo@x.com.","inputSchema":{"properties":{"n":{"maximum":77}}}},
            {"name":"b","description":"Mail li@x.com."}],
            "resources":[{"uri":"a://1","name":"for bo@x.com","size":77},{"uri":"a://2","name":"for li@x.com"}]}"#;
        let result = RawObject::parse(text).unwrap();
        for (listed, visible, trusted, expected) in [
            (Listed::Tools, [Visible, Unreviewed], true, "bo@x.com li@x.com"),
            (Listed::Tools, [Visible, Unreviewed], false, "li@x.com"),
            (Listed::Tools, [Changed, Hidden], false, ""),
            (Listed::Resources, [Visible, Visible], false, "bo@x.com li@x.com"),
            (Listed::Resources, [Hidden, Visible], true, "li@x.com"),
        ] {
            let page = Page::read(listed, &result).unwrap();
            let observed = page.observe(&visible, &key, trusted);
            let (read, other) = match trusted {
                true => (&observed.trusted, &observed.untrusted),
                false => (&observed.untrusted, &observed.trusted),
            };
            for value in ["bo@x.com", "li@x.com"] {
                assert_eq!(
                    read.contains(&hash(value)),
                    expected.contains(value),
                    "{listed:?} {value}"
                );
            }
            assert!(!read.contains(&hash("77")) && other.is_empty() && !observed.incomplete);
            assert_eq!(observed.is_empty(), expected.is_empty());
        }
    }

    #[test]
    fn a_list_that_is_too_long_closes_the_run_only_if_it_is_untrusted() {
        let key = ValueKey::new([7; 16]);
        let items = |size: usize| -> Vec<String> {
            let name = |at| format!("{at} {}", "x".repeat(size));
            (0..900).map(|at| format!(r#"{{"uri":"a://{at}","name":"{}"}}"#, name(at))).collect()
        };
        for (size, trusted, incomplete) in
            [(1, true, false), (1, false, false), (2_000, true, false), (2_000, false, true)]
        {
            let text = format!(r#"{{"resources":[{}]}}"#, items(size).join(","));
            let page = Page::read(Listed::Resources, &RawObject::parse(&text).unwrap()).unwrap();
            let observed = page.observe(&[Visible; 900], &key, trusted);
            assert_eq!(observed.incomplete, incomplete, "{size} {trusted}");
        }
    }

    #[test]
    fn an_item_becomes_the_candidate_for_its_use() {
        for (listed, text, expected) in [
            (Listed::Resources, r#"{"resources":[{"uri":"a://b"}]}"#, vec![resource("a://b")]),
            (Listed::Resources, r#"{"resources":[{"name":"b"},5]}"#, vec![]),
            (Listed::Prompts, r#"{"prompts":[{"name":"p"}]}"#, vec![prompt("p")]),
            // Some clients show the second name, which is not the one that is decided on.
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
    fn an_item_with_an_attack_waits_is_hidden_or_taints() {
        let look = |text: &str| Inspected {
            taints: text.contains("attack"),
            withheld: text.contains("secret").then(String::new),
            ..Inspected::default()
        };
        let text = r#"{"tools":[{"name":"a","description":"attack"},{"name":"b","description":"attack"},{"name":"c","description":"secret"},{"name":"d"},{"name":"e","description":"attack"}],
            "prompts":[{"name":"a","description":"attack"},{"name":"b","description":"secret"},{"name":"c"}]}"#;
        let result = RawObject::parse(text).unwrap();
        for (listed, before, expected, taints) in [
            (
                Listed::Tools,
                &[Unreviewed, Visible, Unreviewed, Unreviewed, Hidden][..],
                &[Changed, Visible, Changed, Unreviewed, Hidden][..],
                false,
            ),
            (Listed::Prompts, &[Visible, Visible, Visible], &[Visible, Hidden, Visible], true),
        ] {
            let page = Page::read(listed, &result).unwrap();
            let mut visible = before.to_vec();
            assert_eq!(page.inspect(&mut visible, look), taints);
            assert_eq!(visible, expected);
        }
    }

    #[test]
    fn a_definitions_hash_covers_its_canonical_form() {
        let hash = |text: &str| candidate(Listed::Tools, text).unwrap().definition_sha256.unwrap();
        assert_eq!(hash(r#"{"name":"a","x":1.0}"#), hash(r#"{ "x": 1, "name": "a" }"#));
        assert_ne!(hash(r#"{"name":"a","x":1}"#), hash(r#"{"name":"a","x":2}"#));
        // As doubles, these two would be equal.
        let large = |number: &str| hash(&format!(r#"{{"name":"a","maximum":{number}}}"#));
        assert_ne!(large("9223372036854775807"), large("9223372036854775808"));
        assert_ne!(large("1e300"), large("1e301"));
    }

    #[test]
    fn a_value_that_is_not_a_list_or_is_too_long_is_not_read() {
        let long = format!(r#"{{"tools":[{}]}}"#, vec!["{}"; MAX_CANDIDATES + 1].join(","));
        for text in ["{}", r#"{"tools":{}}"#, r#"{"tools":null}"#, &long] {
            assert!(Page::read(Listed::Tools, &RawObject::parse(text).unwrap()).is_none());
        }
    }
}
