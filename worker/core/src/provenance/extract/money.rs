//! Amounts of money in an instruction.

use super::super::key::ValueKey;
use super::super::search::{has, is_one_of, is_same};
use super::words::{bare, beside};

/// Currencies (ISO 4217) that are written directly beside a number.
#[rustfmt::skip]
pub const CURRENCIES: [&str; 28] = [
    "AED", "AUD", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HKD", "HUF", "ILS", "INR",
    "JPY", "KRW", "MXN", "MYR", "NOK", "NZD", "PLN", "RON", "SEK", "SGD", "THB", "TRY", "USD", "ZAR",
];

/// Currencies by their signs and names. A `$` of another currency has letters before it.
const SIGNS: [(char, &str); 4] = [('€', "EUR"), ('$', "USD"), ('£', "GBP"), ('¥', "JPY")];
const NAMES: [(&str, &str); 5] =
    [("euro", "EUR"), ("dollar", "USD"), ("pound", "GBP"), ("yen", "JPY"), ("franc", "CHF")];

/// Currencies of countries that write a point before thousands.
const POINTED: [&str; 6] = ["BRL", "DKK", "EUR", "NOK", "RON", "TRY"];

/// The currency that a word names, and what else is in the word: `EUR` and `1200` of `EUR1200`, `EUR` and `45` of `45€`,
/// `EUR` of `euros`.
pub fn currency(word: &str) -> Option<(&'static str, &str)> {
    let text = bare(word);
    if !word.contains(char::is_alphabetic)
        && let Some((_, currency)) = SIGNS.iter().find(|(sign, _)| has(word, *sign))
    {
        return Some((*currency, text));
    }
    let one = text.strip_suffix('s').unwrap_or(text);
    if let Some((_, currency)) = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(one)) {
        return Some((*currency, ""));
    }
    CURRENCIES.iter().find_map(|currency| {
        let number = text.strip_prefix(*currency).or_else(|| text.strip_suffix(*currency))?;
        (number.is_empty() || is_amount(number)).then_some((*currency, number))
    })
}

/// Numbers in words: from 1 to 12, and the tens from 20 on. Each in four languages.
const NUMBERS: &str = "one ein un uno two zwei deux dos three drei trois tres four vier quatre cuatro five fünf cinq cinco six sechs \
    six seis seven sieben sept siete eight acht huit ocho nine neun neuf nueve ten zehn dix diez eleven elf onze once \
    twelve zwölf douze doce twenty zwanzig vingt veinte thirty dreißig trente treinta forty vierzig quarante cuarenta fifty \
    fünfzig cinquante cincuenta sixty sechzig soixante sesenta seventy siebzig soixante-dix setenta eighty achtzig \
    quatre-vingts ochenta ninety neunzig quatre-vingt-dix noventa";

/// The number that a word is.
pub fn in_words(word: &str) -> Option<usize> {
    match word {
        "couple" | "pair" => return Some(2),
        "docena" | "douzaine" | "dozen" | "dutzend" => return Some(12),
        _ => {}
    }
    let at = NUMBERS.split(' ').position(|number| is_same(number, word))? / 4;
    Some(if at < 12 { at + 1 } else { (at - 10) * 10 })
}

/// The hash that says that an instruction counts something with a number: 2 of "two tickets". No value has such a hash.
#[must_use]
pub fn counted(key: &ValueKey, form: &[u8]) -> u64 {
    key.of_kind(b"\xff+", form)
}

/// The number of a word that has a currency in it or beside it, as other texts write it: `1200` of `€1.200` and of "1.200
/// EUR", `50` of "50,- EUR", `1.5` of "1,5 EUR", `5000` of "5k EUR", `1500` of "1.5k EUR", `5` of "five euros". `None` for any other word.
pub fn amount(previous: &str, word: &str, next: &str) -> Option<String> {
    let number = currency(word).map_or_else(|| bare(word), |(_, number)| number);
    if number.is_empty() {
        return None;
    }
    let (before, after) = beside(word, number);
    if before.contains('-') || after.starts_with('%') {
        return None;
    }
    let currency = beside_currency(previous, (word, word), next)?;
    let is_number =
        |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_pointed = is_one_of(&POINTED, currency);
    let parts = number.split_once(['.', ',']).filter(|(it, rest)| is_number(it) && is_number(rest));
    // "1.5k".
    let thousand = number.strip_suffix(['k', 'K']).and_then(|thousand| {
        let (whole, rest) = thousand.split_once(['.', ',']).unwrap_or((thousand, "0"));
        let is_short = is_number(whole) && is_number(rest) && rest.len() == 1;
        is_short.then(|| [whole, rest, "00"].concat())
    });
    Some(match (parts, thousand) {
        (Some((whole, rest)), _) if rest.len() == 3 && has(number, '.') => {
            match is_pointed && whole.len() <= 3 && !whole.starts_with('0') {
                true => [whole, rest].concat(),
                false => number.to_owned(),
            }
        }
        (Some((whole, rest)), _) if rest.len() == 1 => [whole, ".", rest].concat(),
        (_, Some(thousands)) => thousands,
        _ if is_amount(number) => number.to_owned(),
        // "Two hundred and five euros" has other words before.
        _ => in_words(number)
            .filter(|_| !is_one_of(&["and", "hundred", "und"], previous))?
            .to_string(),
    })
}

/// The currency in the first or the last word of a number, or beside it.
pub fn beside_currency(
    previous: &str,
    (first, last): (&str, &str),
    next: &str,
) -> Option<&'static str> {
    let ends = |word: &str| word.ends_with(['.', ',', ';', ':', '!', '?', ')']);
    // A currency with another number belongs to that.
    let is_beside = |it: &str, number: &str| it == first || it == last || !is_amount(number);
    let places = [(first, ""), (last, ""), (next, last), (previous, previous)];
    let found = places.into_iter().find_map(|(it, before)| {
        currency(it).filter(|(_, number)| !ends(before) && is_beside(it, number))
    });
    found.map(|(currency, _)| currency)
}

/// The hash that says that an instruction has a number beside a currency, by its normal form. Of an empty form, it says that
/// there are some. No value has such a hash.
#[must_use]
pub fn money(key: &ValueKey, form: &[u8]) -> u64 {
    key.of_kind(b"\xff\xe2\x82\xac", form)
}

/// Whether a text is a number, with or without separators.
pub fn is_amount(text: &str) -> bool {
    let ends = |end: Option<&u8>| end.is_some_and(u8::is_ascii_digit);
    let bytes = text.as_bytes();
    ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_digit() || b".,'".contains(byte))
}
