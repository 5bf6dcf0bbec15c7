//! Values from the results and instructions of a run to the level of a call's sinks.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests only")]

mod instructions;
mod random;
mod results;
mod sinks;
mod texts;

use std::collections::HashMap;

use gateward_core::json::{self, Json};
use gateward_core::provenance::extract;
use gateward_core::provenance::lookup::{self, Found};
use gateward_core::provenance::part::Part;
use gateward_core::provenance::{Destinations, Level, ValueKey};

const KEY: ValueKey = ValueKey::new([7; 16]);

/// What a run knows, by hash. A value that was seen untrusted is not raised by a trusted result.
#[derive(Default)]
struct Run {
    levels: HashMap<u64, Level>,
    allowed: Destinations,
}

impl Run {
    fn add(mut self, level: Level, hashes: impl IntoIterator<Item = u64>) -> Self {
        hashes.into_iter().for_each(|hash| {
            let known = self.levels.entry(hash).or_insert(level);
            *known = if level == Level::Instruction { level } else { *known };
        });
        self
    }

    fn instruction(self, text: &str) -> Self {
        self.add(Level::Instruction, extract::instruction(&KEY, text))
    }

    fn trusted(self, text: &str) -> Self {
        self.add(Level::Trusted, extract::result(&KEY, &[Part::whole(text)], None, true).trusted)
    }

    fn untrusted(self, text: &str) -> Self {
        self.add(
            Level::Untrusted,
            extract::result(&KEY, &[Part::whole(text)], None, false).untrusted,
        )
    }

    fn known(&self) -> impl Fn(u64) -> Option<Found> {
        |hash| self.levels.get(&hash).map(|level| Found { level: *level, source: None })
    }

    fn sink(&self, value: &Json) -> Option<Level> {
        lookup::sink(&KEY, (value, false), &self.allowed, &self.known()).map(|found| found.level)
    }

    fn text(&self, value: &str) -> Level {
        self.sink(&Json::String(value.to_owned())).unwrap()
    }

    fn links(&self, content: &str) -> Option<Level> {
        let content = Json::String(content.to_owned());
        lookup::links(&KEY, &content, &self.allowed, &self.known()).map(|found| found.level)
    }
}

fn parse(text: &str) -> Json {
    json::parse(text.as_bytes()).unwrap()
}
