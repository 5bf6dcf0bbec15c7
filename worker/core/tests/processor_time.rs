//! Attacks that took seconds of processor time; the bounds are far above what they take now, and far
//! below what they took. The benches `worst_case_*` measure closely.

use std::time::{Duration, Instant};

use gateward_core::bounds::MAX_RAW_PARTS;
use gateward_core::json;
use gateward_core::mcp::raw::RawObject;
use gateward_core::schema::{Schemas, check, cost::MAX_COST};

#[test]
fn a_schema_with_two_hundred_regex_bombs_takes_no_time() {
    let bomb = |at| format!(r#""p{at}":{{"type":"string","pattern":"^\\p{{L}}{{0,60}}$"}}"#);
    let bombs = (0..200).map(bomb).collect::<Vec<_>>().join(",");
    let schema = format!(r#"{{"properties":{{{bombs}}}}}"#);
    let began = Instant::now();
    assert!(check(&schema, &mut { MAX_COST }).is_err());
    assert!(Schemas::default().check(&schema, &json::parse(b"{}").unwrap()).is_err());
    // It took 2.4 s.
    assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
}

#[test]
fn an_object_with_many_fields_takes_linear_time() {
    let object = |fields: usize| {
        let fields = (0..fields).map(|at| format!(r#""key{at}":{at}"#)).collect::<Vec<_>>();
        format!("{{{}}}", fields.join(","))
    };
    let (most, beyond) = (object(MAX_RAW_PARTS), object(80_000));
    let began = Instant::now();
    for _ in 0..20 {
        assert!(RawObject::parse(&most).is_some());
        assert!(RawObject::parse(&beyond).is_none());
    }
    // They took 10 s and more.
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}
