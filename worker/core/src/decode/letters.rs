//! Letters that look like others, and characters that nobody sees.

/// The ASCII character that looks like this one; itself if none does; `None` for an invisible character.
#[must_use]
pub fn plain(character: char) -> Option<char> {
    if is_invisible(character) {
        return None;
    }
    Some(compatible(character).unwrap_or_else(|| look_alike(character)))
}

/// The ASCII character that looks like this letter or sign; itself if none does.
const fn look_alike(character: char) -> char {
    match character {
        'А' | 'Α' => 'A',
        'В' | 'Β' => 'B',
        'С' => 'C',
        'Е' | 'Ε' => 'E',
        'Н' | 'Η' => 'H',
        'І' | 'Ι' => 'I',
        'Ј' => 'J',
        'К' | 'Κ' => 'K',
        'М' | 'Μ' => 'M',
        'Ν' => 'N',
        'О' | 'Ο' => 'O',
        'Р' | 'Ρ' => 'P',
        'Ѕ' => 'S',
        'Т' | 'Τ' => 'T',
        'Х' | 'Χ' => 'X',
        'У' | 'Υ' => 'Y',
        'Ζ' => 'Z',
        'а' | 'α' | 'ɑ' => 'a',
        'в' => 'b',
        'с' => 'c',
        'ԁ' => 'd',
        'е' => 'e',
        'ɡ' => 'g',
        'һ' | 'н' => 'h',
        'і' | 'ι' | 'ı' | 'ℹ' => 'i',
        'ј' => 'j',
        'к' | 'κ' => 'k',
        'ӏ' => 'l',
        'м' => 'm',
        'η' => 'n',
        'о' | 'ο' => 'o',
        'р' | 'ρ' => 'p',
        'ԛ' => 'q',
        'ѕ' => 's',
        'т' | 'τ' => 't',
        'υ' => 'u',
        'ν' => 'v',
        'ԝ' => 'w',
        'х' | 'χ' => 'x',
        'у' => 'y',
        'ǃ' => '!',
        '“' | '”' => '"',
        'ʼ' | '’' | '‘' | '′' => '\'',
        '\u{2212}' | '\u{2010}'..='\u{2013}' => '-',
        '\u{3002}' | '\u{2024}' => '.',
        '\u{2215}' | '\u{2044}' => '/',
        '\u{37e}' => ';',
        '˂' | '‹' => '<',
        '˃' | '›' => '>',
        _ => character,
    }
}

/// Whether a character has no glyph of its own.
#[must_use]
pub const fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\0'..='\u{8}'
            | '\u{e}'..='\u{1f}'
            | '\u{7f}'..='\u{84}'
            | '\u{86}'..='\u{9f}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Rows of characters that look like these ones. A space: like none.
const ROWS: [(u32, &str); 8] = [
    // Small capitals.
    (0x1d00, "a   cd e  jk m o        p  tu   vwz"),
    // Raised and lowered letters.
    (0x1d2c, "A B DE GHIJKLMN O PRTUWa a bde   g km o   ptu  v      iruv"),
    // Letters that the mathematical alphabets lack.
    (0x2102, "C       gHHHhhIILl N   PQRRR      Z   Z K BC eEF Mo"),
    // Roman numerals.
    (0x2160, "I   V    X  LCDMi   v    x  lcdm"),
    (0x249c, "abcdefghijklmnopqrstuvwxyz"),
    (0xa730, "fs"),
    (0xfe50, ",,. ;:?!-(){}[]#&*+-<>= \\$%@"),
    (0xff61, "."),
];

/// The letters of the ligatures from U+FB00 on.
const LIGATURES: [&str; 7] = ["ff", "fi", "fl", "ffi", "ffl", "st", "st"];

/// The ASCII character to which Unicode's compatibility form maps this one (UAX #15), for the forms in which
/// whole words can be written: full width, mathematical, circled, raised, and small capitals.
fn compatible(character: char) -> Option<char> {
    let code = u32::from(character);
    let letter = |at: u32| {
        let at = u8::try_from(at % 52).ok()?;
        Some(char::from(if at < 26 { b'A' + at } else { b'a' + at - 26 }))
    };
    let digit = |at: u32| char::from_digit(at, 10);
    match character {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(code - 0xff01 + 0x21),
        '\u{3000}' | '\u{2000}'..='\u{200a}' | '\u{a0}' | '\u{202f}' | '\u{205f}' => Some(' '),
        '\u{1d400}'..='\u{1d6a3}' => letter(code - 0x1d400),
        '\u{1d7ce}'..='\u{1d7ff}' => digit((code - 0x1d7ce) % 10),
        '\u{2460}'..='\u{2468}' => digit(code - 0x2460 + 1),
        '\u{24ea}' => Some('0'),
        '\u{24b6}'..='\u{24e9}' => letter(code - 0x24b6),
        '\u{1f130}'..='\u{1f149}' => letter(code - 0x1f130),
        '\u{1f150}'..='\u{1f169}' => letter(code - 0x1f150),
        '\u{1f170}'..='\u{1f189}' => letter(code - 0x1f170),
        '\u{2070}' | '\u{2080}' => Some('0'),
        '\u{b9}' | '\u{2081}' => Some('1'),
        '\u{b2}' | '\u{2082}' => Some('2'),
        '\u{b3}' | '\u{2083}' => Some('3'),
        '\u{2074}'..='\u{2079}' => digit(code - 0x2070),
        '\u{2084}'..='\u{2089}' => digit(code - 0x2080),
        // Small capitals and raised letters that are alone.
        '\u{262}' => Some('g'),
        '\u{26a}' | '\u{2071}' => Some('i'),
        '\u{274}' | '\u{207f}' => Some('n'),
        '\u{280}' | '\u{2b3}' => Some('r'),
        '\u{28f}' | '\u{2b8}' => Some('y'),
        '\u{299}' => Some('b'),
        '\u{29c}' | '\u{2b0}' => Some('h'),
        '\u{29f}' | '\u{2e1}' => Some('l'),
        '\u{2b2}' => Some('j'),
        '\u{2b7}' => Some('w'),
        '\u{2e2}' => Some('s'),
        '\u{2e3}' => Some('x'),
        _ => {
            let row = ROWS.partition_point(|(first, _)| *first <= code).checked_sub(1)?;
            let (first, row) = ROWS.get(row)?;
            let found = char::from(*row.as_bytes().get((code - first) as usize)?);
            (found != ' ').then_some(found)
        }
    }
}

/// Whether a character is a mark on the letter before it.
const fn is_mark(character: char) -> bool {
    matches!(character, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{20d0}'..='\u{20ff}')
}

/// The text without invisible characters and marks on letters of ASCII, and with look-alikes in words that have letters
/// of ASCII replaced. A word all in another script is kept, so that phrases of that script are found in it. Letters that
/// are not ASCII become lower case. ASCII keeps its case, because the text can be base64.
#[must_use]
pub fn folded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut word_at = 0;
    let mut seen = Word::default();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        // Most texts have rows of letters of ASCII, and rows of its other characters.
        let is_letter = character.is_ascii_alphabetic();
        let is_control = is_invisible(character);
        let is_alike = |byte: &u8| {
            byte.is_ascii()
                && byte.is_ascii_alphabetic() == is_letter
                && is_invisible(char::from(*byte)) == is_control
        };
        let row = rest.bytes().take_while(is_alike).count().max(character.len_utf8());
        let (row, after) = rest.split_at_checked(row).unwrap_or((rest, ""));
        rest = after;
        if is_letter {
            seen.ascii = true;
            out.push_str(row);
            continue;
        }
        if is_control {
            continue;
        }
        if character.is_ascii() {
            seen.close(&mut out, word_at);
            out.push_str(row);
            word_at = out.len();
            continue;
        }
        let ligature = u32::from(character).checked_sub(0xfb00);
        if let Some(letters) = ligature.and_then(|at| LIGATURES.get(at as usize)) {
            seen.ascii = true;
            out.push_str(letters);
            continue;
        }
        let character = compatible(character).unwrap_or(character);
        if is_mark(character) {
            let after = out.chars().next_back();
            if after.is_some_and(|it| !it.is_ascii_alphabetic()) {
                out.push(character);
            }
            continue;
        }
        if !character.is_alphabetic() {
            seen.close(&mut out, word_at);
            out.push(plain(character).unwrap_or(character));
            word_at = out.len();
            continue;
        }
        seen.ascii |= character.is_ascii();
        seen.other |= !character.is_ascii();
        if character.is_ascii() {
            out.push(character);
        } else {
            out.extend(character.to_lowercase());
        }
    }
    seen.close(&mut out, word_at);
    out
}

/// Which letters the current word has.
#[derive(Default)]
struct Word {
    ascii: bool,
    other: bool,
    /// Its letters, while they are replaced.
    letters: String,
}

impl Word {
    /// Ends the word that begins at `word_at`.
    fn close(&mut self, out: &mut String, word_at: usize) {
        if self.ascii && self.other {
            self.letters.clear();
            self.letters.push_str(out.get(word_at..).unwrap_or_default());
            out.truncate(word_at);
            out.extend(self.letters.chars().filter_map(plain));
        }
        self.ascii = false;
        self.other = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_folded_to_what_people_read() {
        for (text, expected) in [
            ("Ｉｇｎｏｒｅ", "Ignore"),
            ("\u{feff}QUJ\u{200b}j", "QUJj"),
            ("ÀΩ A", "àω A"),
            ("𝐢𝑔𝒏𝓸𝔯𝕖", "ignore"),
            ("ⓘⓖⓝⓞⓡⓔ", "ignore"),
            ("ig\u{200b}no\u{ad}re", "ignore"),
            ("i\u{301}gnore", "ignore"),
            ("ignоrе", "ignore"),
            ("Игнорируй", "игнорируй"),
            ("١٢", "١٢"),
            ("①②⑦", "127"),
            ("ignore\u{3000}all", "ignore all"),
            ("naïve", "naïve"),
            ("ig\0no\u{8}r\u{1b}e\tall", "ignore\tall"),
            ("s\u{210e}ow 𝑠ℎ𝑜𝑤 ⅼocal", "show show local"),
            ("ɪɢɴᴏʀᴇ ᵃˡˡ ⒜⒧⒧", "ignore all all"),
            ("ﬁle ﹤img src﹦x﹥", "file <img src=x>"),
            ("4111\u{2013}1", "4111-1"),
            ("ig\u{2800}nore", "ignore"),
        ] {
            assert_eq!(folded(text), expected, "{text}");
        }
    }
}
