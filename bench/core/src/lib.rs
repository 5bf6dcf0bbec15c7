//! What is measured: one list of operations for every driver.
//!
//! The drivers are criterion (`benches/core.rs`), callgrind (`src/bin/instructions.rs`) and workerd
//! (`bench/wasm`). When an operation is prepared, it asserts that its result is the one that its
//! name says. So no driver can measure something else.
//!
//! INVARIANT (lazy): the list costs nothing; only [`Operation::prepare`] builds what an operation
//! needs, which for 10,000 policies takes seconds.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a bench that cannot run stops")]

mod canonical;
mod credentials;
mod decide;
mod limits;
mod metrics;
mod operation;
mod parts;
mod pipeline;
mod plain_cedar;
mod policy;
mod provenance;
mod shield;
mod tlog;
mod velocity;
mod warrants;
pub mod worst_case;

pub use operation::{GATEWARD, Operation, Run};

/// Every operation; the peers of one follow it directly.
#[must_use]
pub fn operations() -> Vec<Operation> {
    let parts = [
        decide::operations,
        policy::operations,
        parts::operations,
        credentials::operations,
        limits::operations,
        velocity::operations,
        shield::operations,
        warrants::operations,
        tlog::operations,
        metrics::operations,
        canonical::operations,
        provenance::operations,
        pipeline::operations,
        worst_case::operations,
    ];
    parts.iter().flat_map(|operations| operations()).collect()
}

/// The operation `name` of `of`.
#[must_use]
pub fn find(name: &str, of: &str) -> Option<Operation> {
    operations().into_iter().find(|operation| operation.name == name && operation.of == of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_comes_to_what_its_name_says() {
        // The largest bundle is left out, because an unoptimised build takes long to compile it.
        for operation in operations().iter().filter(|it| !it.name.contains("10000")) {
            operation.prepare()();
        }
    }

    #[test]
    fn an_operation_is_listed_once_and_its_peers_follow_it() {
        let operations = operations();
        for same_name in operations.chunk_by(|a, b| a.name == b.name) {
            let name = &same_name[0].name;
            assert_eq!(same_name[0].of, GATEWARD, "{name}");
            let all = operations.iter().filter(|it| it.name == *name);
            assert_eq!(all.count(), same_name.len(), "{name}");
        }
    }
}
