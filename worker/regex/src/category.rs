//! The general categories of Unicode, such as `\p{Lu}`.

use std::ops::Range;

/// The categories in the order of Unicode's standard, and unions of neighbours. Each has its names, the number of its
/// first category, and the number after its last one. The names are as [`plain`] returns them.
const NAMES: [(&str, u8, u8); 39] = [
    ("lu uppercaseletter", 0, 1),
    ("ll lowercaseletter", 1, 2),
    ("lt titlecaseletter", 2, 3),
    ("lc casedletter", 0, 3),
    ("lm modifierletter", 3, 4),
    ("lo otherletter", 4, 5),
    ("l letter", 0, 5),
    ("mn nonspacingmark", 5, 6),
    ("mc spacingmark", 6, 7),
    ("me enclosingmark", 7, 8),
    ("m mark combiningmark", 5, 8),
    ("nd decimalnumber digit", 8, 9),
    ("nl letternumber", 9, 10),
    ("no othernumber", 10, 11),
    ("n number", 8, 11),
    ("pc connectorpunctuation", 11, 12),
    ("pd dashpunctuation", 12, 13),
    ("ps openpunctuation", 13, 14),
    ("pe closepunctuation", 14, 15),
    ("pi initialpunctuation", 15, 16),
    ("pf finalpunctuation", 16, 17),
    ("po otherpunctuation", 17, 18),
    ("p punctuation punct", 11, 18),
    ("sm mathsymbol", 18, 19),
    ("sc currencysymbol", 19, 20),
    ("sk modifiersymbol", 20, 21),
    ("so othersymbol", 21, 22),
    ("s symbol", 18, 22),
    ("zs spaceseparator", 22, 23),
    ("zl lineseparator", 23, 24),
    ("zp paragraphseparator", 24, 25),
    ("z separator", 22, 25),
    ("cc control cntrl", 25, 26),
    ("cf format", 26, 27),
    ("co privateuse", 27, 28),
    ("cn unassigned", 28, 29),
    ("c other", 25, 29),
    ("any", 0, 29),
    ("assigned", 0, 28),
];

/// The category of each code point of Unicode 16, as runs of equal categories. The first byte of a run has the category
/// in its upper five bits, and the length minus one in its lower three bits. If these three bits are 7, the rest of the
/// length follows, seven bits per byte, the lowest first; each byte except the last one has its highest bit set.
/// Surrogates have the category 29.
///
/// A test compares the table with that of `regex-syntax`, and can write it (`worker/core/tests/patterns.rs`).
const TABLE: &[u8] = include_bytes!("category.bin");

/// A category, or a union of categories. `None` if there is no such name.
pub fn find(name: &str) -> Option<Range<u8>> {
    let name = plain(name);
    let found = NAMES.iter().find(|(names, ..)| names.split(' ').any(|one| one == name));
    found.map(|(_, first, end)| *first..*end)
}

/// Whether a property's values are the general categories.
pub fn is_property(name: &str) -> bool {
    matches!(plain(name).as_str(), "gc" | "generalcategory")
}

/// Without case, spaces, hyphens and underscores, which Unicode ignores in names.
fn plain(name: &str) -> String {
    name.to_ascii_lowercase().replace([' ', '-', '_'], "")
}

/// The code points of these categories.
pub fn ranges(categories: &Range<u8>) -> Vec<(u32, u32)> {
    let (mut found, mut code, mut bytes) = (Vec::new(), 0, TABLE.iter());
    while let Some(byte) = bytes.next() {
        let mut last = code + u32::from(byte & 7);
        if byte & 7 == 7 {
            let mut shift = 0;
            for byte in bytes.by_ref() {
                last += u32::from(byte & 127) << shift;
                shift += 7;
                if *byte < 128 {
                    break;
                }
            }
        }
        if categories.contains(&(byte >> 3)) {
            found.push((code, last));
        }
        code = last + 1;
    }
    found
}
