//! What the windows of policies cost: reading three windows of an agent, and counting a call in them.
//!
//! INVARIANT (open): time goes on with the runs, so the windows slide and their size stays the same.

use std::cell::RefCell;
use std::hint::black_box;

use gateward_core::velocity::SlidingWindow;
use gateward_core::velocity::window::PARTS_IN_STATE;

use crate::decide::NOW_MS;
use crate::operation::{GATEWARD, Operation};

/// A minute, ten minutes and an hour.
const WIDTHS_MS: [u64; 3] = [60_000, 600_000, 3_600_000];

/// Calls of one agent, a second apart: all three windows are full.
const STEP_MS: u64 = 1_000;

pub fn operations() -> Vec<Operation> {
    vec![
        Operation::new("velocity_check", GATEWARD, || {
            let (windows, now_ms) = full();
            move || -> u64 {
                let counted = |(window, width_ms): (&SlidingWindow, &u64)| {
                    window.counted(black_box(now_ms), *width_ms).count
                };
                windows.iter().zip(&WIDTHS_MS).map(counted).sum()
            }
        }),
        Operation::new("velocity_count", GATEWARD, || {
            let state = RefCell::new(full());
            move || {
                let (windows, now_ms) = &mut *state.borrow_mut();
                *now_ms += STEP_MS;
                for (window, width_ms) in windows.iter_mut().zip(&WIDTHS_MS) {
                    window.add(*now_ms, *width_ms, None, PARTS_IN_STATE);
                }
            }
        }),
    ]
}

/// Three windows after an hour of calls, and the time of the last one.
fn full() -> ([SlidingWindow; 3], u64) {
    let mut windows = [const { SlidingWindow::new() }; 3];
    let calls = WIDTHS_MS[2] / STEP_MS;
    let now_ms = NOW_MS + calls * STEP_MS;
    for call in 1..=calls {
        for (window, width_ms) in windows.iter_mut().zip(&WIDTHS_MS) {
            window.add(NOW_MS + call * STEP_MS, *width_ms, None, PARTS_IN_STATE);
        }
    }
    // The count is never too low, and includes at most one part of the window too much.
    for (window, width_ms) in windows.iter().zip(&WIDTHS_MS) {
        let (count, calls) = (window.counted(now_ms, *width_ms).count, width_ms / STEP_MS);
        assert!((calls..=calls + calls / PARTS_IN_STATE as u64 + 1).contains(&count), "{count}");
    }
    (windows, now_ms)
}
