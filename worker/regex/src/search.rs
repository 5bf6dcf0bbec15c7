//! Searching a text.
//!
//! The search follows all paths through the automaton at once. So it visits each state at most a few times per
//! character, without backtracking and without a cache. The visits are counted ([`crate::within`]).

use std::mem;

use crate::budget;
use crate::program::{Id, Look, Program, State};

/// States of a pattern for one visit: the time in which a search is prepared.
const STATES_PER_VISIT: usize = 16;

impl Program {
    /// Whether the pattern matches anywhere in the text. `false` if the budget is spent.
    pub fn is_match(&self, text: &str) -> bool {
        if !budget::take(1 + self.states.len() / STATES_PER_VISIT) {
            return false;
        }
        let mut search = Search {
            program: self,
            visited: vec![0; self.states.len()],
            now: Vec::with_capacity(16),
            next: Vec::with_capacity(16),
        };
        let (mut before, mut rest) = (None, text.chars());
        for place in 1.. {
            let after = rest.next();
            search.now.push(self.start);
            let (matched, visits) = search.step(place, before, after);
            if !budget::take(visits) {
                break;
            }
            if matched || after.is_none() {
                return matched;
            }
            before = after;
            mem::swap(&mut search.now, &mut search.next);
        }
        false
    }
}

struct Search<'p> {
    program: &'p Program,
    /// The place at which each state was visited last. Places are between characters; the first one is 1.
    visited: Vec<u32>,
    /// States to visit at this place.
    now: Vec<Id>,
    /// States to visit at the next place.
    next: Vec<Id>,
}

impl Search<'_> {
    /// Visits the states of a place. Returns whether a match ends there, and the number of visits. A state that reads
    /// the next character counts twice, because it takes as long as two others.
    fn step(&mut self, place: u32, before: Option<char>, after: Option<char>) -> (bool, usize) {
        let mut visits = 0;
        while let Some(mut id) = self.now.pop() {
            let read = loop {
                visits += 1;
                let at = usize::from(id);
                let (Some(state), Some(visited)) =
                    (self.program.states.get(at), self.visited.get_mut(at))
                else {
                    break None;
                };
                if mem::replace(visited, place) == place {
                    break None;
                }
                match *state {
                    State::Either(one, other) => {
                        self.now.push(other);
                        id = one;
                    }
                    State::Look(look, to) if holds(look, before, after) => id = to,
                    State::Look(..) => break None,
                    State::Char(char, to) => break (after == Some(char)).then_some(to),
                    State::Class(class, to) => {
                        let class = self.program.classes.get(usize::from(class));
                        let (Some(class), Some(char)) = (class, after) else { break None };
                        visits += class.visits(char);
                        break class.contains(char).then_some(to);
                    }
                    State::Match => return (true, visits),
                }
            };
            if let Some(to) = read {
                self.next.push(to);
                visits += 1;
            }
        }
        (false, visits)
    }
}

fn holds(look: Look, before: Option<char>, after: Option<char>) -> bool {
    // ECMA-262: words are ASCII.
    let is_word =
        |char: Option<char>| char.is_some_and(|it| it.is_ascii_alphanumeric() || it == '_');
    match look {
        Look::Start => before.is_none(),
        Look::End => after.is_none(),
        Look::Boundary => is_word(before) != is_word(after),
        Look::NoBoundary => is_word(before) == is_word(after),
        Look::WordStart => !is_word(before) && is_word(after),
        Look::WordEnd => is_word(before) && !is_word(after),
        Look::NoWordBefore => !is_word(before),
        Look::NoWordAfter => !is_word(after),
    }
}
