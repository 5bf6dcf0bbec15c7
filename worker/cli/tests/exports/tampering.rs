//! The tables of tamperings. Each does everything that needs no key, and names the fault that must be found first.

mod form;
mod logs;
mod receipts;

use gateward_core::tlog::leaf_hash;
use serde_json::json;

use super::history::History;
use super::keys::{KEY, checkpoint, cosigned};
use super::line::Line;
use super::tamper::{Forgery, head, lane};

/// The history that is tampered with. It has 91 lines: the numbers below are of its lines and receipts.
pub const EVENTFUL: History =
    History { seed: 21, receipts: 60, lanes: 3, between: 4, eventful: true };

pub struct Tampering {
    pub name: &'static str,
    pub tamper: fn(&mut Forgery),
    /// How the first fault begins: kind, log, receipts, line. Empty if nothing is found.
    pub found: &'static str,
}

const fn case(name: &'static str, tamper: fn(&mut Forgery), found: &'static str) -> Tampering {
    Tampering { name, tamper, found }
}

/// The lines of the fixed history, from 1.
impl Forgery {
    pub fn line(&mut self, number: usize) -> &mut Line {
        &mut self.0[number - 1]
    }

    fn copy(&mut self, number: usize, behind: usize) {
        let line = self.line(number).clone();
        self.0.insert(behind, line);
    }

    fn edit_agent(&mut self, log: &str, seq: u64) {
        let at = self.at(log, seq);
        self.edit(at, |body| body["agent"] = json!("mallory"));
    }

    fn note(&mut self, number: usize) -> &mut String {
        match self.line(number) {
            Line::Checkpoint { note, .. } => note,
            _ => panic!("no checkpoint"),
        }
    }

    /// The lane's note in a receipt of the head.
    pub fn embedded(&mut self, number: usize) -> String {
        self.line(number).body().unwrap()["checkpoint"].as_str().unwrap().to_owned()
    }

    pub fn embed(&mut self, number: usize, note: &str) {
        self.edit(number - 1, |body| body["checkpoint"] = json!(note));
    }

    /// Says of an entry that its row is lost.
    pub fn lose(&mut self, log: &str, seq: u64) {
        let at = self.at(log, seq);
        let Line::Entry { log, index, body } = &self.0[at] else { panic!("no entry") };
        let leaf_hash = leaf_hash(body.as_bytes());
        self.0[at] = Line::Missing { log: log.clone(), index: *index, leaf_hash };
    }

    fn drop_log(&mut self, log: &str) {
        self.0.retain(|line| line.log() != log);
    }
}

/// All of them.
pub fn tamperings() -> impl Iterator<Item = &'static Tampering> {
    [receipts::TAMPERINGS, logs::TAMPERINGS, form::TAMPERINGS].into_iter().flatten()
}

/// What nobody can detect who has only the export: the help of `gateward verify` says so.
pub const UNDETECTED: &[Tampering] = &[
    case(
        "the newest receipts of a lane, of which the head has no checkpoint",
        |it| {
            it.0.drain(81..84);
            it.reseal();
            *it.note(82) = it.embedded(70);
        },
        "",
    ),
    case(
        "a lane of which the head has no checkpoint",
        |it| {
            it.drop_log(&lane(3));
            it.reseal();
        },
        "",
    ),
    case(
        "an older state of the whole database, with its checkpoints",
        |it| {
            it.0.truncate(76);
            let at = |log: &str, it: &Forgery| {
                let edge = it.edge(log, 76);
                checkpoint(log, edge.size(), edge.root(), &[KEY])
            };
            for number in [0, 1, 2, 4095] {
                let (log, note) = (lane(number), at(&lane(number), it));
                it.0.push(Line::Checkpoint { log, note });
            }
            let note = cosigned(&cosigned(&at(&head(), it), 4, 1_795_300_000), 5, 1_795_300_000);
            it.0.push(Line::Checkpoint { log: head(), note });
            it.0.push(Line::End { entries: 0 });
            it.reseal();
        },
        "",
    ),
    case("the head's own oldest receipts", |it| it.prune(&head(), 8), ""),
    case(
        "a lane that only they name",
        |it| {
            it.prune(&head(), 17);
            it.drop_log(&lane(1));
            it.reseal();
        },
        "",
    ),
    case(
        "the content of a registry event",
        |it| {
            let Line::Event { event, .. } = it.line(11) else { panic!("no event") };
            *event = None;
        },
        "",
    ),
];
