//! The cost of compiling a schema's pattern, computed before it is compiled.
//!
//! A short pattern can compile to many states: `(?:(?:a{1,99}b){1,99}c){1,99}` to almost two million. So the pattern is
//! parsed here, as the library parses it, and its states are counted in the syntax tree.

use std::convert::Infallible;

use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{
    self, Ast, ClassPerl, ClassPerlKind, ClassSetItem, ClassUnicode, ErrorKind, GroupKind, Span,
    Visitor,
};

/// Bytes of one pattern. Patterns of URLs, dates and identifiers need a tenth.
pub const MAX_PATTERN_BYTES: usize = 512;

/// The largest cost of one pattern. `\p{L}` costs some 1,000, `.{1,255}` some 600. One unit takes up to 0.1 µs to
/// compile natively, and up to 64 bytes.
pub const MAX_PATTERN_COST: usize = regex::MAX_SIZE;

/// Nested groups and classes, which are counted recursively.
const MAX_NESTING: u32 = 32;

/// The cost of any pattern: the library reads it, and passes it on.
const PATTERN: usize = 40;

/// The cost of a Unicode class, whose ranges are read from a table.
const UNICODE_CLASS: usize = 1_000;

const NO_CATEGORY: &str = "with a property of Unicode that is not a general category";

/// The cost of compiling the pattern. For an invalid pattern, it is the cost of parsing: the library rejects
/// such a pattern when it compiles the schema.
///
/// # Errors
///
/// Why the pattern is not compiled, to follow "a pattern".
pub fn cost(pattern: &str) -> Result<usize, &'static str> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err("of more than 512 bytes");
    }
    let ast = match ParserBuilder::new().nest_limit(MAX_NESTING).build().parse(pattern) {
        Ok(ast) => ast,
        Err(error) => {
            let span = error.span();
            return match error.kind() {
                ErrorKind::NestLimitExceeded(_) => Err("with too many levels"),
                // The library rewrites these escapes and compiles the result.
                ErrorKind::EscapeUnrecognized if within(pattern, span) == r"\c" => {
                    Err(r"with the escape `\c`")
                }
                _ => Ok(PATTERN + pattern.len()),
            };
        }
    };
    let Ok(found) = ast::visit(&ast, Found::default());
    if found.flags {
        // ECMA-262 has no flags in patterns.
        return Err("with flags");
    }
    if found.properties {
        return Err(NO_CATEGORY);
    }
    // The library rewrites each Perl class, and parses the pattern again after each. It does so up to three times,
    // because the meta-schema checks patterns too.
    let rewritten = pattern.len() + found.longer;
    let readings = (found.perl + 1).saturating_mul(rewritten).saturating_mul(3) / 2;
    let total = PATTERN
        .saturating_add(readings)
        .saturating_add(found.unicode.saturating_mul(UNICODE_CLASS))
        .saturating_add(regex::size(&ast));
    if total > MAX_PATTERN_COST { Err("whose compiled form is too large") } else { Ok(total) }
}

fn within<'p>(pattern: &'p str, span: &Span) -> &'p str {
    pattern.get(span.start.offset..span.end.offset).unwrap_or_default()
}

/// What the syntax tree of a pattern contains.
#[derive(Default)]
struct Found {
    /// The number of Perl classes, and how many bytes longer the pattern is when the library has rewritten them.
    perl: usize,
    longer: usize,
    /// The number of Unicode classes.
    unicode: usize,
    /// Whether one of them is not supported.
    properties: bool,
    flags: bool,
}

impl Found {
    fn perl(&mut self, class: &ClassPerl) {
        self.perl += 1;
        // In ECMA-262 they are ASCII: `[0-9]`, `[A-Za-z0-9_]`, and a list of spaces.
        self.longer += usize::from(class.negated)
            + match class.kind {
                ClassPerlKind::Digit => 3,
                ClassPerlKind::Word => 10,
                ClassPerlKind::Space => 17,
            };
    }

    fn unicode(&mut self, class: &ClassUnicode) {
        self.unicode += 1;
        self.properties |= !regex::is_supported(class);
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
            Ast::ClassUnicode(class) => self.unicode(class),
            _ => {}
        }
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), Infallible> {
        match item {
            ClassSetItem::Perl(class) => self.perl(class),
            ClassSetItem::Unicode(class) => self.unicode(class),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_patterns_are_cheap_and_bombs_are_not_compiled() {
        let deep = ["(".repeat(40), ")".repeat(40)].concat();
        for (pattern, expected) in [
            ("", Ok(50)),
            ("^[a-z]+/[a-z]+$", Ok(100)),
            (r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$", Ok(1_000)),
            (r"\d{4}-\d{2}-\d{2}", Ok(300)),
            ("^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", Ok(300)),
            (r"^arn:aws[a-z-]*:[a-z0-9]+:[a-z0-9-]*:\d{12}:[\w+=,.@/-]{1,512}$", Ok(2_000)),
            ("^https?://[^\\s/$.?#].[^\\s]*$", Ok(400)),
            ("^(main|dev|release/.*)$", Ok(200)),
            (r"^\p{L}[\p{L}\p{N} ]*$", Ok(4_000)),
            (r"^\p{L}{0,60}$", Ok(2_000)),
            (r"^.{1,255}$", Ok(1_000)),
            (".{1,4000}", Ok(10_000)),
            // An invalid pattern is rejected when the schema is compiled.
            ("(?=a)b", Ok(50)),
            ("**/*.rs", Ok(50)),
            ("^(((a{100}){100}){100}){100}$", Err("whose compiled form is too large")),
            ("(?:a?){4294967295}", Err("whose compiled form is too large")),
            ("(?:){4294967295}", Err("whose compiled form is too large")),
            ("^(?:a{0,1000}){0,1000}$", Err("whose compiled form is too large")),
            (".{10000}", Err("whose compiled form is too large")),
            (&r"\d".repeat(128), Err("whose compiled form is too large")),
            (&r"\pL".repeat(20), Err("whose compiled form is too large")),
            (r"(?i)[\x00-\u{10FFFF}]", Err("with flags")),
            (r"(?i:a)", Err("with flags")),
            (r"^[a\p{Greek}]$", Err(NO_CATEGORY)),
            (r"\p{Script=Greek}", Err(NO_CATEGORY)),
            (r"\p{Alphabetic}{0}", Err(NO_CATEGORY)),
            (r"\cA{10000}", Err(r"with the escape `\c`")),
            (&deep, Err("with too many levels")),
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
}
