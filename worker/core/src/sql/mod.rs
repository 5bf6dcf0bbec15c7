//! Every SQL statement, in one place, so that a test can prepare each of them against the real schema
//! (`tests/sql.rs`).

/// The columns of a tenant's settings, each passed to the macro `$each`, separated by commas.
macro_rules! settings {
    ($each:ident) => {
        concat!(
            $each!("rate_capacity"),
            ", ",
            $each!("rate_refill_per_s"),
            ", ",
            $each!("quota_per_day"),
            ", ",
            $each!("risk_denials"),
            ", ",
            $each!("risk_window_s"),
            ", ",
            $each!("risk_quiet_s"),
            ", ",
            $each!("taint_s"),
            ", ",
            $each!("grace_read_s"),
            ", ",
            $each!("grace_write_s"),
            ", ",
            $each!("grace_high_risk_s"),
        )
    };
}

/// A column as a member of `json_object`.
macro_rules! member {
    ($column:literal) => {
        concat!("'", $column, "', ", $column)
    };
}

pub mod administration;
pub mod d1;
pub mod lane;
