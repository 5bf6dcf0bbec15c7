//! Shows on a terminal how much of an export is written.

use std::io::{self, IsTerminal as _, Stderr, Write};
use std::time::{Duration, Instant};

/// How often the bar is drawn.
const INTERVAL: Duration = Duration::from_millis(250);

/// Cells of the bar.
const CELLS: u64 = 30;

/// A bar in one line of a terminal.
pub(super) struct Progress<W: Write = Stderr> {
    /// `None` if it is not a terminal.
    terminal: Option<W>,
    drawn_at: Option<Instant>,
}

impl Progress {
    pub fn on_stderr() -> Self {
        Self::on(io::stderr(), io::stderr().is_terminal())
    }
}

impl<W: Write> Progress<W> {
    pub fn on(terminal: W, is_terminal: bool) -> Self {
        Self { terminal: is_terminal.then_some(terminal), drawn_at: None }
    }

    /// Draws the bar, unless it was drawn a moment ago. The last receipt is always shown.
    pub fn show(&mut self, now: Instant, done: u64, of: u64) {
        let Some(terminal) = &mut self.terminal else { return };
        let is_recent = |at| now.duration_since(at) < INTERVAL;
        if done < of && self.drawn_at.is_some_and(is_recent) {
            return;
        }
        self.drawn_at = Some(now);
        let full = (done * CELLS).checked_div(of).unwrap_or(0).min(CELLS);
        let bar: String = (0..CELLS).map(|cell| if cell < full { '#' } else { '.' }).collect();
        // An export goes on if its progress cannot be shown.
        let _ = write!(terminal, "\r[{bar}] {done} of {of} receipts");
    }
}

/// Ends the line, so that what is printed next is not behind the bar.
impl<W: Write> Drop for Progress<W> {
    fn drop(&mut self) {
        if let Some(terminal) = &mut self.terminal
            && self.drawn_at.is_some()
        {
            let _ = writeln!(terminal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many receipts are written, and of how many, with the time in milliseconds.
    type Shown = [(u64, u64, u64)];

    fn drawn(is_terminal: bool, shown: &Shown) -> String {
        let mut written = Vec::new();
        let begun = Instant::now();
        let mut progress = Progress::on(&mut written, is_terminal);
        for (at_ms, done, of) in shown {
            progress.show(begun + Duration::from_millis(*at_ms), *done, *of);
        }
        drop(progress);
        String::from_utf8(written).unwrap()
    }

    #[test]
    fn a_terminal_shows_how_many_of_how_many_receipts_are_written() {
        let cases: [(&str, &Shown, &str); 6] = [
            ("nothing is written yet", &[], ""),
            (
                "the first receipt",
                &[(0, 1, 60)],
                "\r[..............................] 1 of 60 receipts\n",
            ),
            (
                "a while later",
                &[(0, 1, 60), (249, 30, 60), (250, 31, 60)],
                "\r[..............................] 1 of 60 receipts\
                 \r[###############...............] 31 of 60 receipts\n",
            ),
            (
                "the last receipt, a moment later",
                &[(0, 1, 60), (1, 60, 60)],
                "\r[..............................] 1 of 60 receipts\
                 \r[##############################] 60 of 60 receipts\n",
            ),
            (
                "another lane begins",
                &[(0, 10, 20), (300, 11, 44)],
                "\r[###############...............] 10 of 20 receipts\
                 \r[#######.......................] 11 of 44 receipts\n",
            ),
            (
                "more than was known",
                &[(0, 3, 2)],
                "\r[##############################] 3 of 2 receipts\n",
            ),
        ];
        for (what, shown, expected) in cases {
            assert_eq!(drawn(true, shown), expected, "{what}");
        }
    }

    #[test]
    fn nothing_is_written_to_what_is_not_a_terminal() {
        assert_eq!(drawn(false, &[(0, 1, 60), (300, 60, 60)]), "");
    }
}
