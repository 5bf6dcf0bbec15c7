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

/// Spans that a [`Reader`] remembers, in 2 KiB: enough for four of five spans that a document or a listing of 64 KB
/// repeats.
const MAX_SEEN: usize = 256;

/// Reads the values of texts whose hashes go into one set.
///
/// Most spans occur more than once: as a word and as a field, or in each record of a list. To find that a span was read
/// before costs a hash, and to read it again ten times as much.
pub struct Reader<'k> {
    pub key: &'k ValueKey,
    pub form: Form,
    /// Keyed hashes of spans that were read. A span has one place, and replaces the span that was there.
    seen: [u64; MAX_SEEN],
}

impl<'k> Reader<'k> {
    pub const fn new(key: &'k ValueKey) -> Self {
        Self { key, form: Form::new(), seen: [0; MAX_SEEN] }
    }

    /// Calls `take` with the hash of each value in a text, except for values that this reader took before.
    pub fn text(&mut self, text: &str, take: &mut dyn FnMut(u64)) {
        scan(text, &mut |kind, span| self.value(kind, span, take));
    }

    /// The same for one value.
    pub fn value(&mut self, kind: Kind, span: &str, take: &mut dyn FnMut(u64)) {
        let hash = self.key.hash(span.as_bytes()) ^ kind as u64;
        let Some(seen) = self.seen.get_mut(hash as usize % MAX_SEEN) else { return };
        if std::mem::replace(seen, hash) != hash {
            value(self.key, &mut self.form, kind, span, take);
        }
    }
}

/// The hashes of one value.
pub fn value(key: &ValueKey, form: &mut Form, kind: Kind, span: &str, take: &mut dyn FnMut(u64)) {
    if kind == Kind::Value {
        form.each(span, &mut |form| take(key.hash(form)));
        // After the last word of a name, other punctuation is seldom a part of the name.
        if span.ends_with(['!', '?', '.', '…']) {
            verbatim(key, form, span, take);
        }
        return;
    }
    let mut found = |form: Option<&[u8]>| each_hash(key, form, take);
    found(form.of(span));
    found(form.in_any_case(span));
    let Some(link) = (kind == Kind::Link).then(|| Link::parse(span)).flatten() else { return };
    for place in [Some(link.host), link.place, link.page].into_iter().flatten() {
        found(form.of_place(place));
    }
    // If there is no more than the page, the span has this form, too.
    let page = link.page.filter(|page| page.len() < link.place.map_or(0, str::len));
    found(page.and_then(|page| form.in_any_case(page)));
    // A component is also a value of its own: an account, an identifier.
    for component in link.path.split('/') {
        form.each(component, &mut |form| found(Some(form)));
    }
    link.each_query_pair(&mut |name, value| {
        found(form.of(name));
        found(form.of(value));
    });
    found(form.of(link.host));
    found(form.of(link.fragment));
}

// Inlined, it takes much more code.
#[inline(never)]
fn each_hash(key: &ValueKey, form: Option<&[u8]>, take: &mut dyn FnMut(u64)) {
    form.into_iter().for_each(|form| take(key.hash(form)));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_takes_each_value_that_a_text_has_alone() {
        let key = ValueKey::new([7; 16]);
        let texts = [
            "mail a.b@x.com, or see x.com/Docs/a?b=C#d and x.com",
            "a.b@x.com\nx.com/Docs/a?b=C#d\nDocs",
            "Who is Anna? She is Anna! (Anna)",
            "Anna\nAnna?\n\"Who is Anna?\"",
            &"Émile paid 1,200.50 on 22 Nov 2026.\n".repeat(3),
            // More spans than a reader remembers.
            &(0..400).map(|at| format!("id_{at}, ")).collect::<String>().repeat(2),
        ];
        let (mut reader, mut read, mut alone) = (Reader::new(&key), Vec::new(), Vec::new());
        for said in texts {
            reader.text(said, &mut |hash| read.push(hash));
            text(&key, said, &mut |hash| alone.push(hash));
            let set = |hashes: &[u64]| hashes.iter().copied().collect::<Hashes>();
            assert_eq!(set(&read), set(&alone), "{said}");
        }
        assert!(read.len() < alone.len());
    }
}
