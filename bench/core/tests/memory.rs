//! The memory of the most expensive schema that is accepted. In Wasm it takes less, because a pointer is half as
//! large.

use std::alloc::System;

use gateward_bench::worst_case::costliest;
use gateward_core::json::Json;
use gateward_core::schema::Schema;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const MAX_BYTES: usize = 4 * 1024 * 1024;

#[test]
fn the_costliest_schema_takes_what_the_cache_counts_for_it_and_at_most_4_mb() {
    // The library makes once what it keeps for all schemas.
    Schema::compile("{}").unwrap();
    for patterns in [false, true] {
        let text = costliest(patterns);
        let region = Region::new(ALLOCATOR);
        let schema = Schema::compile(&text).unwrap();
        let change = region.change();
        let kept = change.bytes_allocated - change.bytes_deallocated;
        assert!(kept <= MAX_BYTES, "{patterns}: it keeps {kept} bytes");
        assert!(kept <= schema.bytes(), "{patterns}: {kept} bytes, and {} counted", schema.bytes());
        assert_eq!(schema.check(&Json::Object(Vec::new())), Ok(()));
    }
}
