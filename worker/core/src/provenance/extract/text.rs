//! The hashes of the values in a text.

use super::super::key::{Hashes, ValueKey};
use super::super::link::Link;
use super::super::normal::{Form, MAX_VALUE_BYTES, Stripped, is_exact, stripped};
use super::scan::{Kind, scan};

/// Calls `take` with the hash of each value in a text. A value may come more than once.
pub fn text(key: &ValueKey, text: &str, take: &mut dyn FnMut(u64)) {
    Reader::new(key).text(text, take);
}

/// Spans that a [`Reader`] remembers, in 2 KiB: enough for four of five spans that a document or a listing of 64 KB
/// repeats.
const MAX_SEEN: usize = 256;

/// As what a span was read. The first ones are those of [`Kind`].
type ReadAs = u64;
const COMPONENT: ReadAs = 3;
const HOST: ReadAs = 4;
const ABOVE: ReadAs = 5;

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
        if kind == Kind::Value {
            self.plain(span, take);
            return;
        }
        if self.is_new(kind as ReadAs, span).is_some() {
            let mut found = |form: Option<&[u8]>| each_hash(self.key, form, take);
            found(self.form.of(span));
            found(self.form.in_any_case(span));
            if kind == Kind::Link
                && let Some(link) = Link::parse(span)
            {
                self.link(&link, take);
            }
        }
    }

    /// Neither a mail address nor a link.
    fn plain(&mut self, span: &str, take: &mut dyn FnMut(u64)) {
        let Some(hash) = self.is_new(Kind::Value as ReadAs, span) else { return };
        let (text, is_above) = stripped(span);
        // Most spans with something around them were read before without it.
        let hash = match text.len() < span.len() {
            true => self.is_new(if is_above { ABOVE } else { Kind::Value as ReadAs }, text),
            false => Some(hash),
        };
        let key = self.key;
        if let Some(hash) = hash {
            self.form.each_of(&Stripped::new((text, is_above)), &mut |form| {
                // One of the forms is often the text itself.
                take(if form == text.as_bytes() { hash } else { key.hash(form) });
            });
        }
        // After the last word of a name, other punctuation is seldom a part of the name.
        if span.ends_with(['!', '?', '.', '…']) {
            verbatim(key, &mut self.form, span, take);
        }
    }

    /// The parts of a URL.
    fn link(&mut self, link: &Link<'_>, take: &mut dyn FnMut(u64)) {
        let key = self.key;
        let mut found = |form: Option<&[u8]>| each_hash(key, form, take);
        let is_new_host = self.is_new(HOST, link.host).is_some();
        if is_new_host {
            found(self.form.of_place(link.host));
        }
        // If there is no more than the host, the place is the host, and the page is the place if there is no more than the
        // page. The span has the form of the page in any case, too.
        if let Some(place) = link.place.filter(|place| place.len() > link.host.len()) {
            found(self.form.of_place(place));
        }
        if let Some(page) = link.page.filter(|page| page.len() < link.place.map_or(0, str::len)) {
            found(self.form.of_place(page));
            found(self.form.in_any_case(page));
        }
        // A component is also a value of its own: an account, an identifier.
        for component in link.path.split('/') {
            if self.is_new(COMPONENT, component).is_some() {
                self.form.each(component, &mut |form| found(Some(form)));
            }
        }
        if !link.query.is_empty() {
            link.each_query_pair(&mut |name, value| {
                found(self.form.of(name));
                found(self.form.of(value));
            });
        }
        if is_new_host {
            found(self.form.of(link.host));
        }
        if !link.fragment.is_empty() {
            found(self.form.of(link.fragment));
        }
    }

    /// Remembers a span, and returns its hash. `None` if it was remembered already.
    // Inlined, it takes much more code.
    #[inline(never)]
    fn is_new(&mut self, read_as: ReadAs, span: &str) -> Option<u64> {
        let hash = self.key.hash(span.as_bytes());
        let now = hash ^ read_as;
        let seen = self.seen.get_mut(now as usize % MAX_SEEN)?;
        (std::mem::replace(seen, now) != now).then_some(hash)
    }
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
            scan(said, &mut |kind, span| {
                Reader::new(&key).value(kind, span, &mut |hash| alone.push(hash));
            });
            let set = |hashes: &[u64]| hashes.iter().copied().collect::<Hashes>();
            assert_eq!(set(&read), set(&alone), "{said}");
        }
        assert!(read.len() < alone.len());
    }
}
