//! Entity tags: a record's revision in the headers `ETag` and `If-Match`.

/// A revision as an entity tag.
#[must_use]
pub fn etag(revision: u64) -> String {
    format!("\"{revision}\"")
}

/// Whether an `If-Match` header matches the revision (RFC 9110, section 13.1.1).
#[must_use]
pub fn matches_etag(header: &str, revision: u64) -> bool {
    let own = etag(revision);
    header.split(',').map(str::trim).any(|tag| tag == "*" || tag == own)
}
