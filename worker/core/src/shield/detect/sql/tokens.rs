//! SQL as tokens: what each means for a value that leaves its place.

use crate::shield::detect::{Dictionary, is_word};

/// The kinds of tokens. One letter each, as patterns write them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Before the first token.
    Start,
    End,
    /// A quote that no quote before it opened.
    Opening,
    Closing,
    Number,
    Word,
    /// A word with a bracket right after it.
    Call,
    /// A word after a word.
    Prose,
    Logic,
    /// `&&` and `||`, which code has too.
    Symbol,
    /// `not`, `exists`, `case`: they begin an operand.
    Prefix,
    Compare,
    Operator,
    OpenBracket,
    CloseBracket,
    Comma,
    Semicolon,
    Comment,
    Union,
    All,
    Select,
    /// A keyword that begins a statement.
    Statement,
    /// `begin` and `call`: they begin a statement too, and many sentences.
    Begin,
    /// A keyword after one of these: `table`, `from`, `into`.
    Object,
    Set,
    Where,
    When,
    Order,
    By,
    /// A function that every dialect or language could have.
    Function,
    /// A function or table that only attacks name.
    Telling,
    Into,
    Outfile,
    Waitfor,
    Delay,
    Dot,
    Other,
}

pub const KINDS: usize = Kind::Other as usize + 1;

/// Words with a kind, sorted.
static WORDS: Dictionary<Kind> = Dictionary::new(&[
    ("all", Kind::All),
    ("alter", Kind::Statement),
    ("and", Kind::Logic),
    ("any", Kind::Prefix),
    ("ascii", Kind::Function),
    ("begin", Kind::Begin),
    ("benchmark", Kind::Telling),
    ("between", Kind::Compare),
    ("by", Kind::By),
    ("call", Kind::Begin),
    ("case", Kind::Prefix),
    ("cast", Kind::Function),
    ("char", Kind::Function),
    ("chr", Kind::Function),
    ("concat", Kind::Function),
    ("concat_ws", Kind::Function),
    ("convert", Kind::Function),
    ("create", Kind::Statement),
    ("ctxsys", Kind::Telling),
    ("database", Kind::Object),
    ("dblink_connect", Kind::Telling),
    ("dbms_lock", Kind::Telling),
    ("dbms_pipe", Kind::Telling),
    ("dbms_utility", Kind::Telling),
    ("declare", Kind::Statement),
    ("delay", Kind::Delay),
    ("delete", Kind::Statement),
    ("distinct", Kind::All),
    ("div", Kind::Operator),
    ("drop", Kind::Statement),
    ("dumpfile", Kind::Outfile),
    ("elt", Kind::Function),
    ("except", Kind::Union),
    ("exec", Kind::Statement),
    ("execute", Kind::Statement),
    ("exists", Kind::Prefix),
    ("extractvalue", Kind::Telling),
    ("false", Kind::Number),
    ("from", Kind::Object),
    ("function", Kind::Object),
    ("generate_series", Kind::Telling),
    ("grant", Kind::Statement),
    ("group", Kind::Order),
    ("gtid_subset", Kind::Telling),
    ("having", Kind::Order),
    ("if", Kind::Function),
    ("iif", Kind::Function),
    ("in", Kind::Compare),
    ("information_schema", Kind::Telling),
    ("insert", Kind::Statement),
    ("intersect", Kind::Union),
    ("into", Kind::Into),
    ("is", Kind::Compare),
    ("kill", Kind::Statement),
    ("length", Kind::Function),
    ("like", Kind::Compare),
    ("lo_import", Kind::Telling),
    ("load_file", Kind::Telling),
    ("make_set", Kind::Telling),
    ("master", Kind::Object),
    ("merge", Kind::Statement),
    ("mid", Kind::Function),
    ("mod", Kind::Operator),
    ("name_const", Kind::Telling),
    ("not", Kind::Prefix),
    ("null", Kind::Number),
    ("opendatasource", Kind::Telling),
    ("openrowset", Kind::Telling),
    ("or", Kind::Logic),
    ("ord", Kind::Function),
    ("order", Kind::Order),
    ("outfile", Kind::Outfile),
    ("pg_ls_dir", Kind::Telling),
    ("pg_read_file", Kind::Telling),
    ("pg_sleep", Kind::Telling),
    ("procedure", Kind::Object),
    ("query_to_xml", Kind::Telling),
    ("randomblob", Kind::Telling),
    ("receive_message", Kind::Telling),
    ("regexp", Kind::Compare),
    ("regexp_substring", Kind::Telling),
    ("rlike", Kind::Compare),
    ("row", Kind::Function),
    ("schema", Kind::Object),
    ("select", Kind::Select),
    ("set", Kind::Set),
    ("shutdown", Kind::Statement),
    ("sleep", Kind::Function),
    ("sounds", Kind::Compare),
    ("sp_addlogin", Kind::Telling),
    ("sp_addsrvrolemember", Kind::Telling),
    ("sp_oacreate", Kind::Telling),
    ("sqlite_master", Kind::Telling),
    ("sqlite_version", Kind::Telling),
    ("substr", Kind::Function),
    ("substring", Kind::Function),
    ("sysdate", Kind::Telling),
    ("sysobjects", Kind::Telling),
    ("table", Kind::Object),
    ("true", Kind::Number),
    ("truncate", Kind::Statement),
    ("union", Kind::Union),
    ("update", Kind::Statement),
    ("updatexml", Kind::Telling),
    ("user", Kind::Object),
    ("user_lock", Kind::Telling),
    ("utl_http", Kind::Telling),
    ("utl_inaddr", Kind::Telling),
    ("version", Kind::Function),
    ("view", Kind::Object),
    ("waitfor", Kind::Waitfor),
    ("when", Kind::When),
    ("where", Kind::Where),
    ("xmltype", Kind::Telling),
    ("xor", Kind::Logic),
    ("xp_cmdshell", Kind::Telling),
    ("xp_dirtree", Kind::Telling),
    ("xp_regread", Kind::Telling),
]);

/// The words that only attacks name.
pub fn telling_words() -> impl Iterator<Item = &'static str> {
    words_of(Kind::Telling).chain(["@@"])
}

/// Functions that every dialect or language could have.
pub fn functions() -> impl Iterator<Item = &'static str> {
    words_of(Kind::Function)
}

fn words_of(kind: Kind) -> impl Iterator<Item = &'static str> {
    WORDS.words().iter().filter(move |(_, of)| *of == kind).map(|(word, _)| *word)
}

/// Reads a text token by token.
pub struct Tokens<'t> {
    text: &'t [u8],
    /// Where the last token ends.
    pub at: usize,
    /// Whether a `'` and a `"` are open.
    quotes: [bool; 2],
    word_before: bool,
}

impl<'t> Tokens<'t> {
    pub const fn new(text: &'t str) -> Self {
        Self { text: text.as_bytes(), at: 0, quotes: [false; 2], word_before: false }
    }

    /// The kind of the next token; `None` at the end.
    pub fn next(&mut self) -> Option<Kind> {
        loop {
            let byte = *self.text.get(self.at)?;
            let after = self.text.get(self.at + 1).copied();
            // MySQL runs the text in some comments. This is the end of such a comment.
            if (byte, after) == (b'*', Some(b'/')) {
                self.at += 2;
                continue;
            }
            // In a URL's query, a plus is a space. SQL Server takes each control character as one.
            if byte <= b' ' || byte == b'+' {
                self.at += 1;
                continue;
            }
            if (byte, after) == (b'/', Some(b'*')) {
                match self.comment() {
                    Some(kind) => return Some(self.token(kind)),
                    None => continue,
                }
            }
            let kind = match byte {
                b'\'' => return Some(self.quote(0)),
                b'"' => return Some(self.quote(1)),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'@' | 0x80.. => return Some(self.word()),
                b'0'..=b'9' => return Some(self.number()),
                b'-' if after == Some(b'-') => {
                    self.at += 1;
                    Kind::Comment
                }
                // Before the first token it is a sign.
                b'-' if self.at == 0
                    && after.is_some_and(|next| next.is_ascii_digit() || next == b'.') =>
                {
                    self.at += 1;
                    return Some(self.number());
                }
                b'#' => Kind::Comment,
                b'(' => Kind::OpenBracket,
                b')' => Kind::CloseBracket,
                b',' => Kind::Comma,
                b';' => Kind::Semicolon,
                b'.' => Kind::Dot,
                b'|' | b'&' if after == Some(byte) => {
                    self.at += 1;
                    Kind::Symbol
                }
                b'=' | b'<' | b'>' | b'!' => {
                    while matches!(self.text.get(self.at + 1), Some(b'=' | b'<' | b'>')) {
                        self.at += 1;
                    }
                    Kind::Compare
                }
                b'-' | b'*' | b'/' | b'%' | b'^' | b'&' | b'|' | b'~' => Kind::Operator,
                _ => Kind::Other,
            };
            self.at += 1;
            return Some(self.token(kind));
        }
    }

    fn token(&mut self, kind: Kind) -> Kind {
        self.word_before = false;
        kind
    }

    fn quote(&mut self, which: usize) -> Kind {
        self.at += 1;
        self.word_before = false;
        match self.quotes.get_mut(which) {
            Some(open) => {
                *open = !*open;
                if *open { Kind::Opening } else { Kind::Closing }
            }
            None => Kind::Other,
        }
    }

    /// A comment between tokens is a space. One that does not end, or that MySQL runs, is a token.
    fn comment(&mut self) -> Option<Kind> {
        let rest = self.text.get(self.at + 2..).unwrap_or_default();
        if rest.first() == Some(&b'!') {
            self.at += 3;
            self.at += rest.iter().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
            return None;
        }
        match rest.windows(2).position(|pair| pair == b"*/") {
            Some(end) => {
                self.at += end + 4;
                None
            }
            None => {
                self.at = self.text.len();
                Some(Kind::Comment)
            }
        }
    }

    fn number(&mut self) -> Kind {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let bytes = number_bytes(rest);
        let after = rest.get(bytes..).unwrap_or_default();
        let word = after.iter().take_while(|byte| is_word(**byte)).count();
        // A keyword can follow without a space: `1e0union`. Other letters belong to the number: `5kg`.
        let is_keyword = kind_of_word(after.get(..word).unwrap_or_default()) != Kind::Word;
        self.at += if is_keyword {
            bytes
        } else {
            rest.iter().take_while(|byte| is_word(**byte) || **byte == b'.').count()
        };
        self.token(Kind::Number)
    }

    /// Where the line ends in which the last token is; `None` if no other line follows.
    pub fn line_end(&self) -> Option<usize> {
        let rest = self.text.get(self.at..)?;
        Some(self.at + rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'))?)
    }

    fn word(&mut self) -> Kind {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let is_part = |byte: &&u8| is_word(**byte) || matches!(**byte, b'@' | b'$' | 0x80..);
        let bytes = rest.iter().take_while(is_part).count();
        self.at += bytes;
        let kind = rest.get(..bytes).map_or(Kind::Other, kind_of_word);
        if kind != Kind::Word {
            return self.token(kind);
        }
        let prose = self.word_before;
        self.word_before = true;
        if rest.get(bytes) == Some(&b'(') {
            return Kind::Call;
        }
        if prose { Kind::Prose } else { Kind::Word }
    }
}

/// The bytes of the number with which a text begins: digits with a point and an exponent, or hexadecimal digits.
fn number_bytes(text: &[u8]) -> usize {
    let count = |at: usize, is: fn(&u8) -> bool| {
        text.get(at..).unwrap_or_default().iter().take_while(|byte| is(byte)).count()
    };
    if let [b'0', b'x' | b'X', ..] = text {
        return 2 + count(2, u8::is_ascii_hexdigit);
    }
    let mut at = count(0, u8::is_ascii_digit);
    if text.get(at) == Some(&b'.') {
        at += 1;
        at += count(at, u8::is_ascii_digit);
    }
    if text.get(at).is_some_and(|byte| byte.eq_ignore_ascii_case(&b'e')) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let digits = count(at + 1 + sign, u8::is_ascii_digit);
        at += if digits > 0 { 1 + sign + digits } else { 0 };
    }
    at
}

pub fn kind_of_word(word: &[u8]) -> Kind {
    if word.starts_with(b"@@") {
        return Kind::Telling;
    }
    WORDS.get(word).unwrap_or(Kind::Word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_found_in_its_list() {
        for (word, kind) in WORDS.words() {
            assert_eq!(kind_of_word(word.to_uppercase().as_bytes()), *kind, "{word}");
        }
    }
}
