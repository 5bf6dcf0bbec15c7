//! Every SQL statement, in one place, so that a test can prepare each of them against the real schema
//! (`tests/sql.rs`).

/// The columns of a tenant's settings, separated by commas. Each is passed to the macro `$each`; those that are true or
/// false, to `$flag`; those that hold JSON, to `$json`.
macro_rules! settings {
    ($each:ident, $flag:ident, $json:ident) => {
        concat!(
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
            ", ",
            $each!("warrant_max_links"),
            ", ",
            $each!("warrant_proof_windows"),
            ", ",
            $flag!("warrant_reads_once"),
            ", ",
            $flag!("warrant_required"),
            ", ",
            $each!("warrant_alone_trust"),
            ", ",
            $flag!("log_public"),
            ", ",
            $json!("shield"),
        )
    };
}

/// A column as a member of `json_object`.
macro_rules! member {
    ($column:literal) => {
        concat!("'", $column, "', ", $column)
    };
}

/// The same of a column that is 0, 1 or NULL: as `false`, `true` or `null`.
macro_rules! flag_member {
    ($column:literal) => {
        concat!(
            "'",
            $column,
            "', json(iif(",
            $column,
            " IS NULL, 'null', iif(",
            $column,
            ", 'true', 'false')))"
        )
    };
}

/// The same of a column that holds JSON text or NULL.
macro_rules! json_member {
    ($column:literal) => {
        concat!("'", $column, "', json(", $column, ")")
    };
}

pub mod administration;
pub mod d1;
pub mod lane;
