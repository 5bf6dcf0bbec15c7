//! The registry's records, as a lane reads them.

mod bans;
mod definition;
mod event;
mod records;
mod settings;
mod status;
mod stored;
pub mod upstream;
mod warrants;

pub use bans::{BanKind, Bans};
pub use definition::{definition_sha256, instructions_sha256};
pub use event::ChangeEvent;
pub use records::*;
pub use settings::Settings;
pub use status::*;
pub use stored::{LoadedTexts, RecordKind, StoredRecord};
pub use warrants::{WarrantRoot, Warrants};
