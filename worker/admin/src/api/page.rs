//! Pages of lists.

use serde::Serialize;
use utoipa::ToSchema;

/// Records of a page if the caller sets no limit.
pub const DEFAULT_PAGE: u32 = 50;
/// The largest page: 200 decisions are some 300 KB.
pub const MAX_PAGE: u32 = 200;
/// The newest decision of a lane that is in lists.
#[derive(Debug, Serialize, ToSchema)]
pub struct FlushedThrough {
    pub lane: u16,
    pub seq: u64,
    #[schema(format = DateTime)]
    pub at: String,
}
