//! One operation some number of times, for callgrind: `instructions <name> <of> <times>` prints how
//! often memory was allocated.
//!
//! Run it with `--toggle-collect` on [`measured`], so that neither the preparation nor the first
//! run, which fills caches, is counted (`bench/core/instructions.ts`). Allocations are counted
//! here because callgrind counts calls outside of what it collects too.

use std::alloc::System;
use std::process::ExitCode;

use gateward_bench::{Run, find};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

/// This costs a few instructions for each allocation, the same for Gateward and its peers.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, of, times] = arguments.as_slice() else {
        eprintln!("usage: instructions <name> <of> <times>");
        return ExitCode::FAILURE;
    };
    let (Some(operation), Ok(times)) = (find(name, of), times.parse()) else {
        eprintln!("there is no operation `{name}` of `{of}`, or `{times}` is no number");
        return ExitCode::FAILURE;
    };
    let run = operation.prepare();
    run();
    let allocator = Region::new(ALLOCATOR);
    measured(&run, times);
    let change = allocator.change();
    println!("{}", change.allocations + change.reallocations);
    ExitCode::SUCCESS
}

#[inline(never)]
fn measured(run: &Run, times: u32) {
    for _ in 0..times {
        run();
    }
}
