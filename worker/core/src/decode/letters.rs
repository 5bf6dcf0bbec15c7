//! Letters that look like others, and characters that nobody sees.

/// The ASCII character that looks like this one; itself if none does; `None` for an invisible character.
#[must_use]
pub fn plain(character: char) -> Option<char> {
    if is_invisible(character) {
        return None;
    }
    if character.is_ascii() {
        return Some(character);
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
        'в' | 'ь' => 'b',
        'с' => 'c',
        'ԁ' => 'd',
        'е' | 'ҽ' | 'ε' => 'e',
        'ɡ' => 'g',
        'һ' | 'н' | 'հ' => 'h',
        'і' | 'ι' | 'ı' | 'ℹ' | 'ɩ' | 'Ꭵ' | 'ꭵ' => 'i',
        'ј' => 'j',
        'к' | 'κ' => 'k',
        'ӏ' => 'l',
        'м' => 'm',
        'η' | 'п' | 'ո' => 'n',
        'о' | 'ο' | 'σ' | 'օ' => 'o',
        'р' | 'ρ' => 'p',
        'ԛ' => 'q',
        'г' => 'r',
        'ѕ' | 'ſ' => 's',
        'т' | 'τ' => 't',
        'υ' | 'ս' => 'u',
        'ν' => 'v',
        'ԝ' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'ү' => 'y',
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
#[inline]
#[must_use]
pub const fn is_invisible(character: char) -> bool {
    // Most characters are letters.
    let is_letter =
        matches!(character, '\u{c0}'..='\u{34e}' | '\u{370}'..='\u{61b}' | '\u{4e00}'..='\u{d7ff}');
    !is_letter
        && matches!(
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
        // Most characters are letters of these scripts.
        '\u{c0}'..='\u{24f}'
        | '\u{370}'..='\u{1cff}'
        | '\u{3001}'..='\u{a6ff}'
        | '\u{ac00}'..='\u{d7ff}' => None,
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
        '\u{1d9c}' => Some('c'),
        '\u{1da0}' => Some('f'),
        '\u{1dbb}' => Some('z'),
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

/// A letter of a script with one form for each case, or with no case, in lower case. `None` for other characters, some
/// of which are letters too: Unicode's tables say that, and take longer.
const fn common_letter(character: char) -> Option<char> {
    let below = match character {
        '\u{c0}'..='\u{d6}'
        | '\u{d8}'..='\u{de}'
        | '\u{391}'..='\u{3a1}'
        | '\u{3a3}'..='\u{3a9}'
        | '\u{410}'..='\u{42f}' => 0x20,
        '\u{400}'..='\u{40f}' => 0x50,
        // Vietnamese: each capital is followed by its small letter.
        '\u{1ea0}'..='\u{1ef9}' => (character as u32 + 1) % 2,
        // Latin, Greek, Cyrillic, Hebrew, Arabic, Hindi, Thai, Japanese, Chinese, and Korean letters.
        '\u{df}'..='\u{f6}'
        | '\u{f8}'..='\u{ff}'
        | '\u{3b1}'..='\u{3c9}'
        | '\u{430}'..='\u{45f}'
        | '\u{5d0}'..='\u{5ea}'
        | '\u{621}'..='\u{64a}'
        | '\u{904}'..='\u{939}'
        | '\u{93e}'..='\u{94c}'
        | '\u{e01}'..='\u{e39}'
        | '\u{e40}'..='\u{e46}'
        | '\u{3041}'..='\u{3096}'
        | '\u{30a1}'..='\u{30fa}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}' => 0,
        _ => return None,
    };
    char::from_u32(character as u32 + below)
}

/// The text in lower case, except for ASCII, and for letters that have another length then.
#[must_use]
pub fn lower(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let row = rest.bytes().take_while(u8::is_ascii).count();
        let (row, after) = rest.split_at_checked(row).unwrap_or_default();
        out.push_str(row);
        let mut characters = after.chars();
        if let Some(character) = characters.next() {
            out.push(common_letter(character).unwrap_or_else(|| {
                let lower = character.to_lowercase().next().unwrap_or(character);
                if lower.len_utf8() == character.len_utf8() { lower } else { character }
            }));
        }
        rest = characters.as_str();
    }
    out
}

/// The text without invisible characters and marks on letters of ASCII, and with look-alikes in words that have letters
/// of ASCII replaced. A word all in another script is kept, so that phrases of that script are found in it. Letters that
/// are not ASCII become lower case. ASCII keeps its case, because the text can be base64.
#[must_use]
pub fn folded(text: &str) -> String {
    Folding::of(text).out
}

/// The same; `None` if it differs from the text at most in what [`lower`] changes.
#[must_use]
pub fn folded_beyond_case(text: &str) -> Option<String> {
    let folding = Folding::of(text);
    folding.has_changed.then_some(folding.out)
}

/// A text while it is folded.
#[derive(Default)]
struct Folding {
    out: String,
    /// Whether more than the case has changed.
    has_changed: bool,
    /// Where the current word begins in `out`, and which letters it has.
    word_at: usize,
    has_ascii: bool,
    has_other: bool,
    /// The letters of a word, while they are replaced.
    letters: String,
}

impl Folding {
    fn of(text: &str) -> Self {
        let mut folding = Self { out: String::with_capacity(text.len()), ..Self::default() };
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
                folding.has_ascii = true;
                folding.out.push_str(row);
            } else if is_control {
                folding.has_changed = true;
            } else if character.is_ascii() {
                folding.close();
                folding.out.push_str(row);
                folding.word_at = folding.out.len();
            } else {
                folding.other(character);
            }
        }
        folding.close();
        folding
    }

    /// Adds a character that is not ASCII.
    fn other(&mut self, character: char) {
        if let Some(lower) = common_letter(character) {
            // No letter of Latin-1 looks like one of ASCII.
            self.has_other |= character > '\u{ff}';
            self.out.push(lower);
            return;
        }
        let ligature = u32::from(character).checked_sub(0xfb00);
        if let Some(letters) = ligature.and_then(|at| LIGATURES.get(at as usize)) {
            self.has_ascii = true;
            self.has_changed = true;
            self.out.push_str(letters);
            return;
        }
        let found = compatible(character);
        self.has_changed |= found.is_some();
        let character = found.unwrap_or(character);
        if is_mark(character) {
            if self.out.chars().next_back().is_some_and(|it| !it.is_ascii_alphabetic()) {
                self.out.push(character);
            } else {
                self.has_changed = true;
            }
        } else if !character.is_alphabetic() {
            self.close();
            let plain = plain(character).unwrap_or(character);
            self.has_changed |= plain != character;
            self.out.push(plain);
            self.word_at = self.out.len();
        } else if character.is_ascii() {
            self.has_ascii = true;
            self.out.push(character);
        } else {
            self.has_other = true;
            let before = self.out.len();
            self.out.extend(character.to_lowercase());
            self.has_changed |= self.out.len() - before != character.len_utf8();
        }
    }

    /// Ends the current word.
    fn close(&mut self) {
        if self.has_ascii && self.has_other {
            self.letters.clear();
            self.letters.push_str(self.out.get(self.word_at..).unwrap_or_default());
            self.out.truncate(self.word_at);
            self.out.extend(self.letters.chars().filter_map(plain));
            self.has_changed |= self.out.get(self.word_at..) != Some(self.letters.as_str());
        }
        self.has_ascii = false;
        self.has_other = false;
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
            ("unıon ſelect", "union select"),
            ("ⁱⁿˢᵗʳᵘᶜᵗⁱᵒⁿˢ ᶠᶻ", "instructions fz"),
            ("гule пote taьle ҽat toү", "rule note table eat toy"),
            ("nσte dεlete nօte rսle ոote հint", "note delete note rule note hint"),
            ("Ꭵgnore ɩgnore оделение", "ignore ignore оделение"),
        ] {
            assert_eq!(folded(text), expected, "{text}");
        }
    }

    #[test]
    fn only_a_change_beyond_case_makes_another_form() {
        for (text, lower_text) in [
            ("Über ÄRGER naïve", "über äRGER naïve"),
            ("Игнорируй ЁЛКУ", "игнорируй ёлку"),
            ("ΚΑΛΗΜΕΡΑ Հայ", "καλημερα հայ"),
            ("تجاهل 无视 テスト 무시", "تجاهل 无视 テスト 무시"),
            ("Plain ASCII", "Plain ASCII"),
        ] {
            assert_eq!(lower(text), lower_text, "{text}");
            assert_eq!(folded_beyond_case(text), None, "{text}");
        }
        // In lower case these have another length.
        assert_eq!(lower("İ\u{212a}ẞ"), "İ\u{212a}ẞ");
        for text in
            ["İ", "\u{212a}", "ignоre", "i\u{301}", "ig\u{ad}nore", "1\u{a0}000", "ﬁ", "a\0b"]
        {
            assert_eq!(folded_beyond_case(text), Some(folded(text)), "{text}");
        }
    }

    /// The ranges that are told without Unicode's tables agree with the tables.
    #[test]
    fn ranges_agree_with_the_tables() {
        for character in (0x80..=0x10_ffff).filter_map(char::from_u32) {
            if let Some(lower) = common_letter(character) {
                assert!(character.is_alphabetic() && !is_invisible(character), "{character:?}");
                assert!(character.to_lowercase().eq([lower]), "{character:?}");
                assert_eq!(compatible(character), None);
                assert_eq!(lower.len_utf8(), character.len_utf8());
            }
        }
    }
}
