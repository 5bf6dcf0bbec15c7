//! The operations under criterion: `<name>/<of>`.

use std::cell::OnceCell;

use criterion::{Criterion, criterion_group, criterion_main};
use gateward_bench::operations;

fn core(c: &mut Criterion) {
    for same_name in operations().chunk_by(|a, b| a.name == b.name) {
        let Some(first) = same_name.first() else { continue };
        let mut group = c.benchmark_group(&first.name);
        for operation in same_name {
            // Prepared only if the command line asks for it.
            let run = OnceCell::new();
            group.bench_function(operation.of, |b| b.iter(run.get_or_init(|| operation.prepare())));
        }
        group.finish();
    }
}

criterion_group!(benches, core);
criterion_main!(benches);
