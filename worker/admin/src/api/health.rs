//! Whether the worker runs, and what is deployed.

use serde::Serialize;
use utoipa::ToSchema;

/// The worker runs, or is ready.
#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    /// `ok` or `ready`.
    pub status: &'static str,
}

/// What is deployed.
#[derive(Debug, Serialize, ToSchema)]
pub struct Version<'a> {
    pub version: &'a str,
    pub commit: &'a str,
    /// The digest of the policies.
    pub bundle: &'a str,
    /// How many policies the bundle has.
    pub policies: usize,
    /// How many tools the bundle describes.
    pub tools: usize,
}
