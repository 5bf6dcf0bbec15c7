//! The members of a JSON object whose form is fixed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gateward_core::field::parse_time;
use gateward_core::json::Json;
use gateward_core::tlog::Hash;

/// An object whose members are taken one by one. An unknown member is left over, which [`Members::end`] refuses.
pub struct Members(Vec<(String, Json)>);

impl Members {
    pub fn of(value: Json) -> Result<Self, String> {
        match value {
            Json::Object(members) => Ok(Self(members)),
            other => Err(format!("it must be an object, not {}", other.kind())),
        }
    }

    pub fn take(&mut self, name: &str) -> Result<Json, String> {
        let at = self.0.iter().position(|(member, _)| member == name);
        let at = at.ok_or_else(|| format!("the member `{name}` is missing"))?;
        Ok(self.0.swap_remove(at).1)
    }

    pub fn text(&mut self, name: &str) -> Result<String, String> {
        match self.take(name)? {
            Json::String(text) => Ok(text),
            other => Err(format!("`{name}` must be a string, not {}", other.kind())),
        }
    }

    pub fn text_or_null(&mut self, name: &str) -> Result<Option<String>, String> {
        match self.take(name)? {
            Json::Null => Ok(None),
            Json::String(text) => Ok(Some(text)),
            other => Err(format!("`{name}` must be a string or null, not {}", other.kind())),
        }
    }

    /// An integer that is not negative. [`Json`] holds none above 2^53, so two of them can be added.
    pub fn number(&mut self, name: &str) -> Result<u64, String> {
        let number = match self.take(name)? {
            Json::Integer(number) => u64::try_from(number).ok(),
            _ => None,
        };
        number.ok_or_else(|| format!("`{name}` must be an integer that is not negative"))
    }

    pub fn time(&mut self, name: &str) -> Result<(), String> {
        let time = parse_time(&self.text(name)?);
        time.map(|_| ()).ok_or_else(|| format!("`{name}` must be an RFC 3339 time"))
    }

    /// A hash in lower-case hex, as bodies link to each other.
    pub fn hex_hash(&mut self, name: &str) -> Result<String, String> {
        let text = self.text(name)?;
        match is_hex_hash(&text) {
            true => Ok(text),
            false => Err(format!("`{name}` must be a SHA-256 hash in lower-case hex")),
        }
    }

    /// A hash in base64, as trees are written.
    pub fn hash(&mut self, name: &str) -> Result<Hash, String> {
        hash(name, &self.text(name)?)
    }

    /// A list of hashes in base64.
    pub fn hashes(&mut self, name: &str) -> Result<Vec<Hash>, String> {
        let items = match self.take(name)? {
            Json::Array(items) => items,
            other => return Err(format!("`{name}` must be an array, not {}", other.kind())),
        };
        let hashes = items.iter().map(|item| hash(name, item.as_str().unwrap_or_default()));
        hashes.collect()
    }

    /// Refuses a member that was not taken.
    pub fn end(self) -> Result<(), String> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(format!("there must be no member `{name}`")),
        }
    }
}

/// Whether a text is a SHA-256 hash in lower-case hex.
pub fn is_hex_hash(text: &str) -> bool {
    text.len() == 2 * size_of::<Hash>()
        && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn hash(name: &str, text: &str) -> Result<Hash, String> {
    let bytes = STANDARD.decode(text).ok().and_then(|bytes| Hash::try_from(bytes).ok());
    bytes.ok_or_else(|| format!("`{name}` must have a SHA-256 hash in base64"))
}
