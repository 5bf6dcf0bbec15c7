//! The hashes of the values in a text.

use super::super::key::{Hashes, ValueKey};
use super::super::link::Link;
use super::super::normal::{Form, MAX_VALUE_BYTES, is_exact};
use super::scan::{Kind, scan};

/// Calls `take` with the hash of each value in a text. A value may come more than once.
pub fn text(key: &ValueKey, text: &str, take: &mut dyn FnMut(u64)) {
    let mut form = Form::new();
    scan(text, &mut |kind, span| value(key, &mut form, kind, span, take));
}

/// The hashes of one value.
pub fn value(key: &ValueKey, form: &mut Form, kind: Kind, span: &str, take: &mut dyn FnMut(u64)) {
    if let Some(form) = form.of(span) {
        take(key.hash(form));
    }
    if kind == Kind::Value {
        component(key, form, span, take);
        // After the last word of a name, other punctuation is seldom a part of the name.
        if span.ends_with(['!', '?', '.', '…']) {
            verbatim(key, form, span, take);
        }
    }
    let Some(link) = (kind == Kind::Link).then(|| Link::parse(span)).flatten() else { return };
    for place in [Some(link.host), link.place, link.page].into_iter().flatten() {
        if let Some(form) = form.of_place(place) {
            take(key.hash(form));
        }
    }
    for component in link.path.split('/').filter(|component| !component.is_empty()) {
        if let Some(form) = form.of_component(component) {
            take(key.hash(form));
        }
    }
    // A component is also a value of its own: an account, an identifier.
    let parts = link.path.split('/').chain(link.query_values()).chain([link.host, link.fragment]);
    for part in parts.filter(|part| !part.is_empty()) {
        if let Some(form) = form.of(part) {
            take(key.hash(form));
        }
    }
}

/// The hash of a component of a path, which keeps its case.
pub fn component(key: &ValueKey, form: &mut Form, span: &str, take: &mut dyn FnMut(u64)) {
    if span.contains(char::is_uppercase)
        && let Some(form) = form.of_component(span)
    {
        take(key.hash(form));
    }
}

/// The hash of a value that has [more](is_exact) around it than prose could have.
pub fn verbatim(key: &ValueKey, form: &mut Form, span: &str, take: &mut dyn FnMut(u64)) {
    if span.len() <= MAX_VALUE_BYTES && !is_exact(span) && form.of(span).is_some() {
        take(key.verbatim(span));
    }
}

pub fn sorted(hashes: Hashes) -> Vec<u64> {
    let mut hashes: Vec<u64> = hashes.into_iter().collect();
    hashes.sort_unstable();
    hashes
}
