//! Matches and their groups, as regex-automata finds them.

use std::ops::{Index, Range};
use std::sync::Arc;
use std::vec::IntoIter;

use regex_automata::util::captures;
use regex_automata::{Input, meta};

use crate::Regex;

/// A part of a text that matches.
#[derive(Clone, Debug)]
pub struct Match<'h> {
    text: &'h str,
    at: Range<usize>,
}

impl<'h> Match<'h> {
    #[must_use]
    pub fn as_str(&self) -> &'h str {
        self.text.get(self.at.clone()).unwrap_or_default()
    }

    #[must_use]
    pub fn start(&self) -> usize {
        self.at.start
    }

    #[must_use]
    pub fn end(&self) -> usize {
        self.at.end
    }
}

/// A match with its groups.
#[derive(Debug)]
pub struct Captures<'h> {
    text: &'h str,
    found: captures::Captures,
}

impl<'h> Captures<'h> {
    /// A group; 0 is the whole match.
    #[must_use]
    pub fn get(&self, group: usize) -> Option<Match<'h>> {
        Some(Match { text: self.text, at: self.found.get_group(group)?.range() })
    }

    /// The whole match and all groups.
    #[must_use]
    pub fn extract<const N: usize>(&self) -> (&'h str, [&'h str; N]) {
        self.found.extract(self.text)
    }
}

impl Index<usize> for Captures<'_> {
    type Output = str;

    fn index(&self, group: usize) -> &str {
        self.get(group).map_or("", |found| found.as_str())
    }
}

impl Regex {
    fn groups(&self) -> Option<&meta::Regex> {
        let compiled =
            self.groups.get_or_init(|| Some(Arc::new(meta::Regex::new(&self.pattern).ok()?)));
        compiled.as_ref()?.downcast_ref()
    }

    /// The first match, with its groups.
    #[must_use]
    pub fn captures<'h>(&self, text: &'h str) -> Option<Captures<'h>> {
        let regex = self.groups()?;
        let mut found = regex.create_captures();
        regex.captures(text, &mut found);
        found.is_match().then_some(Captures { text, found })
    }

    /// The first match that begins at this offset or later.
    #[must_use]
    pub fn find_at<'h>(&self, text: &'h str, start: usize) -> Option<Match<'h>> {
        let found = self.groups()?.find(Input::new(text).range(start..))?;
        Some(Match { text, at: found.range() })
    }

    /// All matches that do not overlap.
    #[must_use]
    pub fn find_iter<'h>(&self, text: &'h str) -> IntoIter<Match<'h>> {
        let found = self.groups().into_iter().flat_map(|regex| regex.find_iter(text));
        let found: Vec<_> = found.map(|found| Match { text, at: found.range() }).collect();
        found.into_iter()
    }
}
