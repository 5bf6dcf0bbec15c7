//! Phrases that have begun in a text: which of their steps matched, and how far from each other.

use std::ops::Range;

use crate::shield::matcher::PhraseStep;

/// The phrases that have begun in a text.
pub struct Phrases<'t> {
    last: &'t mut Last,
    /// The number of the text.
    text: u32,
    bytes: &'t [u8],
    runs: Option<Runs>,
}

/// Where a phrase began, and where its last step ended.
#[derive(Debug, Clone, Copy, Default)]
struct Reached {
    /// The number of the text; zero: none.
    text: u32,
    begin: u32,
    end: u32,
}

/// Where each step of each phrase matched last, and before that. Most texts have few of the steps, so only those take space
/// that some text had.
#[derive(Debug)]
pub struct Last {
    /// The number of places for steps.
    places: usize,
    /// For each place the position in `all`, from 1 on; zero: none.
    at: Vec<u16>,
    all: Vec<[Reached; 2]>,
}

impl Last {
    pub const fn new(places: usize) -> Self {
        Self { places, at: Vec::new(), all: Vec::new() }
    }

    fn get(&self, place: usize) -> Option<&[Reached; 2]> {
        self.all.get(usize::from(*self.at.get(place)?).checked_sub(1)?)
    }

    fn get_mut(&mut self, place: usize) -> Option<&mut [Reached; 2]> {
        if self.at.is_empty() {
            self.at.resize(self.places, 0);
        }
        let at = self.at.get_mut(place)?;
        if *at == 0 {
            self.all.push(Default::default());
            *at = self.all.len() as u16;
        }
        self.all.get_mut(usize::from(*at).checked_sub(1)?)
    }
}

impl<'t> Phrases<'t> {
    pub const fn new(last: &'t mut Last, text: u32, bytes: &'t [u8]) -> Self {
        Self { last, text, bytes, runs: None }
    }

    /// Where the phrase began whose later step has this match, by a literal of so many bytes.
    ///
    /// Only the last match of the step before counts: it is the nearest. If that one overlaps, the one before it does. Most
    /// matches are of first steps, and do not come here.
    #[inline(never)]
    pub fn go_on(
        &mut self,
        step: &PhraseStep,
        at: Range<usize>,
        literal_bytes: usize,
    ) -> Option<usize> {
        let before = self.last.get((step.place as usize).checked_sub(1)?)?;
        let is_before = |it: &&Reached| it.text == self.text && it.end as usize <= at.start;
        let Reached { begin, end, .. } = *before.iter().find(is_before)?;
        let is_near = self.are_near(end as usize, &at, literal_bytes, step.within.into());
        is_near.then_some(begin as usize)
    }

    /// Notes that a step matched, which is not the last one of its phrase.
    pub fn reach(&mut self, step: &PhraseStep, phrase: Range<usize>) {
        let (begin, end) = (phrase.start as u32, phrase.end as u32);
        if let Some(last) = self.last.get_mut(step.place as usize) {
            *last = [Reached { text: self.text, begin, end }, last[0]];
        }
    }

    /// Whether at most so many bytes are between two steps. A run of white space counts as one byte, so that padding puts
    /// no distance between them.
    fn are_near(
        &mut self,
        before: usize,
        at: &Range<usize>,
        literal_bytes: usize,
        within: usize,
    ) -> bool {
        if at.start - before <= within {
            return true;
        }
        let runs = self.runs.get_or_insert_with(|| Runs::of(self.bytes));
        let squeezed = |at: usize| at - runs.before(at);
        squeezed(at.end).saturating_sub(literal_bytes + squeezed(before)) <= within
    }
}

/// The white space in a text that follows other white space.
struct Runs {
    /// For each 64 bytes: how many bytes before them are such white space, and a bit for each of them that is.
    blocks: Vec<(usize, u64)>,
}

impl Runs {
    fn of(bytes: &[u8]) -> Self {
        let mut blocks = Vec::with_capacity(bytes.len() / 64 + 1);
        let (mut before, mut last) = (0, b'a');
        for block in bytes.chunks(64) {
            let mut bits = 0;
            let mut at = 0;
            for part in block.chunks(8) {
                if may_have_run(part, last) {
                    for (byte, at) in part.iter().zip(at..) {
                        let follows = byte.is_ascii_whitespace() && last.is_ascii_whitespace();
                        bits |= u64::from(follows) << at;
                        last = *byte;
                    }
                }
                last = part.last().copied().unwrap_or(last);
                at += 8;
            }
            blocks.push((before, bits));
            before += bits.count_ones() as usize;
        }
        blocks.push((before, 0));
        Self { blocks }
    }

    /// How many bytes before an offset are such white space.
    fn before(&self, at: usize) -> usize {
        let (before, bits) = self.blocks.get(at / 64).copied().unwrap_or_default();
        before + (bits & ((1 << (at % 64)) - 1)).count_ones() as usize
    }
}

/// Whether bytes, or the one before and the first of them, may be white space in a row. Most bytes are not.
fn may_have_run(bytes: &[u8], last: u8) -> bool {
    const LOW: u64 = u64::from_ne_bytes([b' ' + 1; 8]);
    const HIGH_BITS: u64 = u64::from_ne_bytes([1 << 7; 8]);
    let Ok(bytes) = <[u8; 8]>::try_from(bytes) else { return true };
    let bytes = u64::from_le_bytes(bytes);
    // The high bit of each byte that is at most a space. A borrow can add one, and leaves none out.
    let low = bytes.wrapping_sub(LOW) & !bytes & HIGH_BITS;
    let before = low << 8 | u64::from(last <= b' ') << 7;
    low & before != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_white_space_counts_as_one_byte() {
        let long = ["a", &" ".repeat(150), "b"].concat();
        for (text, expected) in [
            ("", 0),
            ("ab", 2),
            ("a  b", 3),
            ("a \t\n b  ", 4),
            ("  é", 3),
            ("{{   x", 4),
            (&long, 3),
            (&" ".repeat(64), 1),
        ] {
            let runs = Runs::of(text.as_bytes());
            assert_eq!(text.len() - runs.before(text.len()), expected, "{text:?}");
        }
        let runs = Runs::of(long.as_bytes());
        let before: Vec<usize> = [0, 1, 2, 3, 64, 128, 151, 152].map(|at| runs.before(at)).into();
        assert_eq!(before, [0, 0, 0, 1, 62, 126, 149, 149]);
    }
}
