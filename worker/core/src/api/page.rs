//! Pages of lists.

use serde::Serialize;
use utoipa::ToSchema;

/// Records of a page, unless the caller asks for fewer or more.
pub const DEFAULT_PAGE: u32 = 50;
/// The largest page: 200 decisions are some 300 KB.
pub const MAX_PAGE: u32 = 200;
/// The newest decision of a lane that lists have.
#[derive(Debug, Serialize, ToSchema)]
pub struct FlushedThrough {
    pub lane: u16,
    pub seq: u64,
    #[schema(format = DateTime)]
    pub at: String,
}
