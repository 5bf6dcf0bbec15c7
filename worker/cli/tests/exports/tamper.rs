//! What somebody can do to an export who can write to the database.

use gateward_core::receipt::hash;
use gateward_core::tlog::{Edge, leaf_hash};
use serde_json::{Value, json};

use super::body::canonical;
use super::keys::{TENANT, checkpoint};
use super::line::Line;

/// The lines of an export that somebody tampers with.
pub struct Forgery(pub Vec<Line>);

pub fn lane(number: u16) -> String {
    format!("{TENANT}.lane-{number}")
}

pub fn head() -> String {
    format!("{TENANT}.head")
}

impl Forgery {
    /// Where the entry with this receipt number is.
    pub fn at(&self, log: &str, seq: u64) -> usize {
        let is = |line: &Line| line.is_entry(log) && line.body().unwrap()["seq"] == seq;
        self.0.iter().position(is).unwrap()
    }

    /// Where the first line is that has all these words.
    pub fn find(&self, words: &[&str]) -> usize {
        let has = |line: &Line| words.iter().all(|word| line.text().contains(word));
        self.0.iter().position(has).unwrap()
    }

    /// Where the last line is that has all these words.
    pub fn find_last(&self, words: &[&str]) -> usize {
        let has = |line: &Line| words.iter().all(|word| line.text().contains(word));
        self.0.iter().rposition(has).unwrap()
    }

    /// Where the head's checkpoints of a lane are.
    pub fn lane_checkpoints(&self, number: u16) -> Vec<usize> {
        let is = |line: &Line| line.is_entry(&head()) && line.body().unwrap()["of_lane"] == number;
        (0..self.0.len()).filter(|at| is(&self.0[*at])).collect()
    }

    /// Changes the body of an entry.
    pub fn edit(&mut self, at: usize, change: impl FnOnce(&mut Value)) {
        let mut value = self.0[at].body().unwrap();
        change(&mut value);
        let Line::Entry { body, .. } = &mut self.0[at] else { panic!("no entry") };
        *body = canonical(&value);
    }

    /// Replaces words in the text of a line.
    pub fn replace(&mut self, at: usize, from: &str, to: &str) {
        let text = self.0[at].text();
        assert!(text.contains(from), "{text}");
        self.0[at] = Line::Raw(text.replacen(from, to, 1));
    }

    pub fn remove(&mut self, at: usize) -> Line {
        self.0.remove(at)
    }

    pub fn move_line(&mut self, from: usize, to: usize) {
        let line = self.0.remove(from);
        self.0.insert(to, line);
    }

    /// Computes again everything that needs no key: indexes, numbers, links, hashes of events, and the count.
    pub fn reseal(&mut self) {
        let logs: Vec<(String, u64, u64, String)> = self.begins();
        for (log, first, begin, prev_hash) in logs {
            let (mut next, mut previous) = (begin, Some(prev_hash));
            for at in 0..self.0.len() {
                if self.0[at].log() != log {
                    continue;
                }
                // An event follows its entry.
                let event = match self.0.get(at + 1) {
                    Some(Line::Event { event: Some(event), .. }) => Some(hash(event)),
                    _ => None,
                };
                if self.0[at].is_entry(&log) {
                    self.edit(at, |body| {
                        body["seq"] = json!(first + next);
                        if let Some(previous) = &previous {
                            body["prev_hash"] = json!(previous);
                        }
                        if let Some(event) = event.filter(|_| body["kind"] == "registry_event") {
                            body["event_hash"] = json!(event);
                        }
                    });
                }
                match &mut self.0[at] {
                    Line::Entry { index, body, .. } => {
                        (*index, previous) = (next, Some(hash(body)));
                        next += 1;
                    }
                    Line::Missing { index, .. } => {
                        (*index, previous) = (next, None);
                        next += 1;
                    }
                    Line::Event { index, .. } => *index = next - 1,
                    _ => {}
                }
            }
        }
        let is_counted = |line: &&Line| matches!(line, Line::Entry { .. } | Line::Missing { .. });
        let count = self.0.iter().filter(is_counted).count();
        if let Some(Line::End { entries }) = self.0.last_mut() {
            *entries = count as u64;
        }
    }

    /// Signs the checkpoints of a log again, with another key: those in the head, and the last.
    pub fn sign(&mut self, log: &str, keys: &[u8]) {
        let mut edge = Edge::default();
        for at in 0..self.0.len() {
            let note = |edge: &Edge| checkpoint(log, edge.size(), edge.root(), keys);
            match &mut self.0[at] {
                Line::Log { log: of, begin, edge: hashes, .. } if of == log => {
                    edge = Edge::from_parts(*begin, hashes.clone()).unwrap();
                }
                Line::Entry { log: of, body, .. } if of == log => {
                    edge.append(leaf_hash(body.as_bytes()), &mut |_, _, _| {});
                }
                Line::Checkpoint { log: of, note: last } if of == log => *last = note(&edge),
                Line::Entry { body, .. } => {
                    let mut value: Value = serde_json::from_str(body).unwrap();
                    let of = value["of_lane"].as_u64().map(|of| lane(of as u16));
                    if of.as_deref() == Some(log) {
                        value["checkpoint"] = json!(note(&edge));
                        *body = canonical(&value);
                    }
                }
                _ => {}
            }
        }
    }

    /// The tree of a log before a line.
    pub fn edge(&self, log: &str, before: usize) -> Edge {
        let mut edge = Edge::default();
        for line in &self.0[..before] {
            match line {
                Line::Log { log: of, begin, edge: hashes, .. } if of == log => {
                    edge = Edge::from_parts(*begin, hashes.clone()).unwrap();
                }
                Line::Entry { log: of, body, .. } if of == log => {
                    edge.append(leaf_hash(body.as_bytes()), &mut |_, _, _| {});
                }
                _ => {}
            }
        }
        edge
    }

    /// Leaves the entries of a log below `end` out, as retention does.
    pub fn prune(&mut self, log: &str, end: u64) {
        let gone = |line: &Line| match line {
            Line::Entry { log: of, index, .. } | Line::Event { log: of, index, .. } => {
                of == log && *index < end
            }
            _ => false,
        };
        let after = self.0.iter().rposition(|line| line.is_entry(log) && gone(line)).unwrap();
        let cut = self.edge(log, after + 1);
        let Line::Entry { body, .. } = &self.0[after] else { panic!("no entry") };
        let last = hash(body);
        for line in &mut self.0 {
            if let Line::Log { log: of, begin, edge, prev_hash, .. } = line
                && of == log
            {
                (*begin, *edge, *prev_hash) = (end, cut.hashes().to_vec(), last.clone());
            }
        }
        self.0.retain(|line| !gone(line));
        self.reseal();
    }

    fn begins(&self) -> Vec<(String, u64, u64, String)> {
        let begins = self.0.iter().filter_map(|line| match line {
            Line::Log { log, first, begin, prev_hash, .. } => {
                Some((log.clone(), *first, *begin, prev_hash.clone()))
            }
            _ => None,
        });
        begins.collect()
    }
}
