//! The cost of compiling a schema's pattern, computed before it is compiled.
//!
//! A short pattern can compile to megabytes: `^\p{L}{0,60}$` repeats a class of some 600 ranges sixty times.
//! The library's own limits are far too high and cannot be changed. So the pattern is parsed here, as the
//! library parses it, and the size of its program is computed from the syntax tree.

use std::convert::Infallible;
use std::ops::Range;

use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{
    self, Ast, ClassPerl, ClassPerlKind, ClassSetItem, ErrorKind, GroupKind, Span, Visitor,
};
use regex_syntax::hir::literal::{ExtractKind, Extractor, Literal};
use regex_syntax::hir::translate::Translator;
use regex_syntax::hir::{Class, ClassUnicodeRange, Hir, HirKind, Look};
use regex_syntax::utf8::Utf8Sequences;

/// Bytes of one pattern. Patterns of URLs, dates and identifiers need a tenth.
pub const MAX_PATTERN_BYTES: usize = 512;

/// The largest cost of one pattern. `\p{L}` costs 3,000, `.{1,255}` some 7,000. One unit takes some 0.1 µs to
/// compile, natively and without optimisation, and up to 40 bytes.
pub const MAX_PATTERN_COST: usize = 10_000;

/// Nested groups and classes, which are counted recursively.
const MAX_NESTING: u32 = 32;

/// The least cost of a Unicode class: finding its ranges takes a part of it.
const UNICODE_CLASS: usize = 1_000;

/// The factor for patterns with capturing groups or word boundaries, for which the engine builds another table
/// of up to 1 MB.
const TABLE: usize = 4;

/// The cost of one byte of the literals that a search begins with: up to two rows of a table.
const LITERAL_BYTE: usize = 8;

/// The cost of searching for literals in each part of a pattern that is not anchored.
const PART: usize = 50;

/// The cost of compiling the pattern. For an invalid pattern, it is the cost of parsing: the library rejects
/// such a pattern when it compiles the schema.
///
/// # Errors
///
/// Why the pattern is not compiled, to follow "a pattern".
pub fn cost(pattern: &str) -> Result<usize, &'static str> {
    const TOO_LARGE: &str = "whose compiled form is too large";
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err("of more than 512 bytes");
    }
    // Each parser can be used once.
    let parser = || ParserBuilder::new().nest_limit(MAX_NESTING).build();
    let ast = match parser().parse(pattern) {
        Ok(ast) => ast,
        Err(error) => {
            let span = error.span();
            return match error.kind() {
                ErrorKind::NestLimitExceeded(_) => Err("with too many levels"),
                // The library rewrites these escapes and compiles the result.
                ErrorKind::EscapeUnrecognized if within(pattern, span) == r"\c" => {
                    Err(r"with the escape `\c`")
                }
                _ => Ok(pattern.len()),
            };
        }
    };
    let Ok(found) = ast::visit(&ast, Found::default());
    if found.flags {
        // ECMA-262 has no flags in patterns, and one flag can fold the case of a million characters.
        return Err("with flags");
    }
    // The library parses the pattern again for each class that it rewrites. It does so up to three times,
    // because the meta-schema checks patterns too.
    let translated = found.translate(pattern);
    let readings = (found.perl.len() + 1).saturating_mul(translated.len()).saturating_mul(3) / 2;
    let mut total = readings.saturating_add(found.unicode.saturating_mul(UNICODE_CLASS));
    if total > MAX_PATTERN_COST {
        return Err(TOO_LARGE);
    }
    let ast = if found.perl.is_empty() { Ok(ast) } else { parser().parse(&translated) };
    let hir = ast.ok().and_then(|ast| Translator::new().translate(&translated, &ast).ok());
    let Some(hir) = hir else { return Ok(total) };
    let properties = hir.properties();
    let has_table = properties.explicit_captures_len() > 0 || properties.look_set().contains_word();
    total = total.saturating_add(program(&hir).saturating_mul(if has_table { TABLE } else { 1 }));
    if total <= MAX_PATTERN_COST && !properties.look_set_prefix().contains(Look::Start) {
        total = total.saturating_add(search(&hir, MAX_PATTERN_COST - total));
    }
    if total > MAX_PATTERN_COST { Err(TOO_LARGE) } else { Ok(total) }
}

fn within<'p>(pattern: &'p str, span: &Span) -> &'p str {
    pattern.get(span.start.offset..span.end.offset).unwrap_or_default()
}

/// What the syntax tree of a pattern contains.
#[derive(Default)]
struct Found {
    /// The Perl classes with the text by which the library replaces them: in ECMA-262 they are ASCII.
    perl: Vec<(Range<usize>, &'static str)>,
    unicode: usize,
    flags: bool,
}

impl Found {
    fn perl(&mut self, class: &ClassPerl) {
        let written = match (&class.kind, class.negated) {
            (ClassPerlKind::Digit, false) => "[0-9]",
            (ClassPerlKind::Digit, true) => "[^0-9]",
            (ClassPerlKind::Word, false) => "[A-Za-z0-9_]",
            (ClassPerlKind::Word, true) => "[^A-Za-z0-9_]",
            (ClassPerlKind::Space, false) => {
                "[ \t\n\r\u{000b}\u{000c}\u{00a0}\u{feff}\u{2003}\u{2029}]"
            }
            (ClassPerlKind::Space, true) => {
                "[^ \t\n\r\u{000b}\u{000c}\u{00a0}\u{feff}\u{2003}\u{2029}]"
            }
        };
        self.perl.push((class.span.start.offset..class.span.end.offset, written));
    }

    /// The pattern as the library rewrites it.
    fn translate(&self, pattern: &str) -> String {
        let (mut translated, mut at) = (String::new(), 0);
        for (span, written) in &self.perl {
            translated.push_str(pattern.get(at..span.start).unwrap_or_default());
            translated.push_str(written);
            at = span.end;
        }
        translated.push_str(pattern.get(at..).unwrap_or_default());
        translated
    }
}

impl Visitor for Found {
    type Output = Self;
    type Err = Infallible;

    fn finish(self) -> Result<Self, Infallible> {
        Ok(self)
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Infallible> {
        match ast {
            Ast::Flags(_) => self.flags = true,
            Ast::Group(group) => {
                if let GroupKind::NonCapturing(flags) = &group.kind {
                    self.flags |= !flags.items.is_empty();
                }
            }
            Ast::ClassPerl(class) => self.perl(class),
            Ast::ClassUnicode(_) => self.unicode += 1,
            _ => {}
        }
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), Infallible> {
        match item {
            ClassSetItem::Perl(class) => self.perl(class),
            ClassSetItem::Unicode(_) => self.unicode += 1,
            _ => {}
        }
        Ok(())
    }
}

/// The number of states and transitions of the program, which matches bytes of UTF-8.
fn program(hir: &Hir) -> usize {
    let sum = |parts: &[Hir]| {
        parts.iter().map(|part| program(part).saturating_add(1)).fold(0, usize::saturating_add)
    };
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(Class::Bytes(class)) => 1 + class.ranges().len(),
        HirKind::Class(Class::Unicode(class)) => {
            let transitions = |range: &ClassUnicodeRange| match range.end().is_ascii() {
                true => 1,
                false => Utf8Sequences::new(range.start(), range.end())
                    .map(|sequence| sequence.as_slice().len())
                    .sum::<usize>(),
            };
            1 + class.ranges().iter().map(transitions).sum::<usize>()
        }
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min.saturating_add(1)).max(1);
            let once = program(&repetition.sub).saturating_add(1);
            once.saturating_mul(usize::try_from(times).unwrap_or(usize::MAX))
        }
        HirKind::Capture(capture) => program(&capture.sub).saturating_add(2),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => sum(parts),
    }
}

/// The cost of finding where a match can begin. The engine searches for literals at the beginning, at the end
/// and in each part of the pattern, and builds a table of those that it chooses. The computation stops soon
/// after the cost exceeds `most`.
fn search(hir: &Hir, most: usize) -> usize {
    let literals = |kind: ExtractKind, hir: &Hir| {
        let found = Extractor::new().kind(kind).extract(hir);
        found.literals().map_or(0, |found| found.iter().map(Literal::len).sum())
    };
    let mut chosen: usize = literals(ExtractKind::Prefix, hir);
    let at_end = literals(ExtractKind::Suffix, hir);
    let mut looked = 2 * PART + chosen + at_end;
    chosen = chosen.max(at_end);
    let mut whole = hir;
    while let HirKind::Capture(capture) = whole.kind() {
        whole = &capture.sub;
    }
    if let HirKind::Concat(parts) = whole.kind() {
        for at in 1..parts.len() {
            let rest = parts.get(at..).unwrap_or_default();
            let found = literals(ExtractKind::Prefix, &Hir::concat(rest.to_vec()));
            let own = rest.first().map_or(0, |part| literals(ExtractKind::Prefix, part));
            looked += PART + rest.len() + found + own;
            chosen = chosen.max(found).max(own);
            if looked > most {
                break;
            }
        }
    }
    looked.saturating_add(chosen.saturating_mul(LITERAL_BYTE))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::RegexBuilder;

    use super::*;

    #[test]
    fn ordinary_patterns_are_cheap_and_bombs_are_not_compiled() {
        for (pattern, expected) in [
            ("", Ok(200)),
            ("^[a-z]+/[a-z]+$", Ok(100)),
            (r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$", Ok(3_000)),
            (r"\d{4}-\d{2}-\d{2}", Ok(6_000)),
            ("^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", Ok(500)),
            (r"^arn:aws[a-z-]*:[a-z0-9]+:[a-z0-9-]*:\d{12}:[\w+=,.@/-]{1,512}$", Ok(6_000)),
            ("^https?://[^\\s/$.?#].[^\\s]*$", Ok(3_000)),
            ("^(main|dev|release/.*)$", Ok(1_000)),
            (r"^\p{L}[\p{L}\p{N} ]*$", Ok(10_000)),
            (r"^.{1,255}$", Ok(10_000)),
            // An invalid pattern is rejected when the schema is compiled.
            ("(?=a)b", Ok(6)),
            ("**/*.rs", Ok(7)),
            (r"^\p{L}{0,60}$", Err("whose compiled form is too large")),
            ("^(((a{100}){100}){100}){100}$", Err("whose compiled form is too large")),
            // Repeating an empty group costs nothing.
            ("(?:){4294967295}", Ok(200)),
            ("(?:a?){4294967295}", Err("whose compiled form is too large")),
            ("^(?:a{0,1000}){0,1000}$", Err("whose compiled form is too large")),
            (".{1000}", Err("whose compiled form is too large")),
            ("[a-j][a-j](?:abcdefghij){9}", Err("whose compiled form is too large")),
            ("x*[a-j][a-j](?:abcdefghij){9}y*", Err("whose compiled form is too large")),
            ("^(.{200})$", Err("whose compiled form is too large")),
            (&r"\d".repeat(128), Err("whose compiled form is too large")),
            (&r"\pL".repeat(20), Err("whose compiled form is too large")),
            (r"(?i)[\x00-\u{10FFFF}]", Err("with flags")),
            (r"(?i:a)", Err("with flags")),
            (r"\cA{10000}", Err(r"with the escape `\c`")),
            (&["(".repeat(40), ")".repeat(40)].concat(), Err("with too many levels")),
            (&"a".repeat(513), Err("of more than 512 bytes")),
        ] {
            match (cost(pattern), expected) {
                (Ok(found), Ok(most)) => assert!(found <= most, "{pattern}: {found}"),
                (found, expected) => {
                    assert_eq!(found.map(drop), expected.map(drop), "{pattern}");
                }
            }
        }
    }

    /// Whether the library's engine needs at most this many bytes for the program.
    fn compiles_within(pattern: &str, bytes: usize) -> bool {
        let found = ParserBuilder::new().build().parse(pattern);
        let Ok(found) = found else { return true };
        let Ok(found) = ast::visit(&found, Found::default());
        let translated = found.translate(pattern);
        let built = RegexBuilder::new(&translated).size_limit(bytes).build();
        !matches!(built, Err(regex::Error::CompiledTooBig(_)))
    }

    proptest! {
        #[test]
        fn the_cost_of_a_pattern_bounds_the_size_of_its_program(
            pattern in r"(([a-c.^$|]|\\d|\\S|\\pL|\[a-j\]|\[\^x\]|\(a\)|\(\?:b[ac]\)|é)([*+?]|\{[0-9],[1-9][0-9]?\})?){1,12}",
        ) {
            if let Ok(cost) = cost(&pattern) {
                // One state needs up to 40 bytes, and the engine adds some states of its own.
                prop_assert!(compiles_within(&pattern, 4_096 + 64 * cost), "{} {}", pattern, cost);
            }
        }
    }
}
