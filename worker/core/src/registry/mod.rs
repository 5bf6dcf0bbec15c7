//! What administrators registered, as a lane reads, keeps and asks for it.

mod bans;
mod cache;
mod definition;
mod records;
mod stored;
pub mod upstream;

pub use bans::{BanKind, Bans};
pub use cache::RegistryCache;
pub use definition::{definition_sha256, instructions_sha256};
pub use records::*;
pub use stored::{LoadedTexts, RecordKind, StoredRecord, needed, stored, stored_listing};
