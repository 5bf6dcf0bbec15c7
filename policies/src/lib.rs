//! The policies that this build of Gateward decides by.
//!
//! `build.rs` compiles the sources beside this file into constants; a mistake in one of them is
//! a build error. Nothing is parsed here.

use gateward_core::policy::bundle::Bundle;

mod compiled {
    include!(concat!(env!("OUT_DIR"), "/bundle.rs"));
}

/// The compiled policies.
#[must_use]
pub fn bundle() -> &'static Bundle {
    &compiled::BUNDLE
}

/// The schema that the policies were validated against, in Cedar's schema syntax: the file
/// `schema.cedarschema` and an action for each described tool.
#[must_use]
pub fn schema() -> &'static str {
    include_str!(concat!(env!("OUT_DIR"), "/schema.cedarschema"))
}
