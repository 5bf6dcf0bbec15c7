//! The values that a user's instruction states.

use super::super::joined;
use super::super::key::{Hashes, ValueKey};
use super::super::normal::{Form, month};
use super::super::search::{decimal, has, is_one_of, is_word, lower, trim_end, trim_start};
use super::delimited::each_delimited;
use super::excluded::mentioned;
use super::money::{
    CURRENCIES, amount, beside_currency, counted, currency, in_words, is_amount, money,
};
use super::rights::granted;
use super::scan::{Kind, scan};
use super::text::{Reader, sorted};
use super::words::{NUMBER_SIGNS, Place, bare, beside, place, words};

/// Bytes of an instruction: some 2,500 words.
pub const MAX_INSTRUCTION_BYTES: usize = 16 * 1024;

/// Values of an instruction: all words and word groups of some 1,300 words. Of a longer instruction, the longest groups
/// are missing first.
pub const MAX_INSTRUCTION_VALUES: usize = 8_192;

/// Words of a group that an instruction may name a value with: "q3 budget review final v2 draft.xlsx".
const MAX_GROUP_WORDS: usize = 6;

/// Letters of a word that is a value by itself. "to" or "a" is in every instruction.
const MIN_WORD_LETTERS: usize = 3;

/// The hashes of an instruction's values: what [`text`] finds, single words, and groups of up to six words. A group
/// of digits inside of an account number or a date is not a value, because it would state an amount. Nor is a number
/// that only [counts or orders](counting), nor [`all`](is_all). Of a word that is more than its [name or number](each_part), that is a value
/// too, and it is said which numbers are [amounts of money](money). What the instruction [excludes](mentioned) is not a value.
/// At most [`MAX_INSTRUCTION_VALUES`]; the rest is missing, which can only lower levels. Before them are the hashes of the
/// words that the instruction [joins](joined::stated), because those lower levels.
#[must_use]
pub fn instruction(key: &ValueKey, instruction: &str) -> Vec<u64> {
    let mentioned = mentioned(instruction);
    let mut stated = joined::stated(key, &mentioned, &CURRENCIES);
    let mut hashes = Hashes::default();
    let mut take = |hash| {
        if hashes.len() < MAX_INSTRUCTION_VALUES {
            hashes.insert(hash);
        }
    };
    each_delimited(key, &mentioned, &mut take);
    let instruction = apart(&mentioned);
    read(key, &instruction, &mut take);
    if let Some(spaced) = spaced(&instruction) {
        read(key, &spaced, &mut take);
    }
    stated.append(&mut sorted(hashes));
    stated
}

fn read(key: &ValueKey, instruction: &str, take: &mut dyn FnMut(u64)) {
    let mut form = Form::new();
    let numbers = numbers(instruction, &mut form);
    let counting = counting(instruction);
    let mut reader = Reader::new(key);
    scan(instruction, &mut |kind, span| {
        let place = place(instruction, span);
        let is_quoted = || instruction.get(..place.0).is_some_and(|it| it.ends_with(QUOTES));
        let is_value = !is_all(span) || is_quoted();
        if is_value && !is_part(&numbers, place) && !is_within(&counting, place) {
            reader.value(kind, span, take);
        }
    });
    // A line break inside of a prompt is only where it was wrapped, except between two numbers.
    let flat = flat(instruction);
    let numbers = self::numbers(&flat, &mut form);
    let words = words(&flat);
    let take_money = |form: &[u8], take: &mut dyn FnMut(u64)| {
        take(money(key, form));
        take(money(key, b""));
    };
    let get = |at: Option<usize>| at.and_then(|at| words.get(at)).copied().unwrap_or_default();
    for (at, word) in words.iter().enumerate() {
        let (previous, next) = (get(at.checked_sub(1)), get(Some(at + 1)));
        granted(key, &words, at).into_iter().for_each(&mut *take);
        each_day(&words, at, &mut |date| form.each(date, &mut |form| take(key.hash(form))));
        if let Some(number) = in_words(bare(word)) {
            take(counted(key, number.to_string().as_bytes()));
        }
        if !is_unit(next) && !is_part(&numbers, place(&flat, word)) {
            each_part(word, &mut |part| form.each(part, &mut |form| take(key.hash(form))));
            let amount = amount(previous, word, next);
            if let Some(form) = amount.as_deref().and_then(|amount| form.of(amount)) {
                take(key.hash(form));
                take_money(form, take);
            }
        }
    }
    for count in 1..=MAX_GROUP_WORDS {
        for (at, group) in words.windows(count).enumerate() {
            let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
            let (start, end) = (place(&flat, first).0, place(&flat, last).1);
            let is_value = !is_part(&numbers, (start, end)) && !only_counts(&counting, at, group);
            let Some(span) = flat.get(start..end).filter(|_| is_value) else { continue };
            let letters = span.chars().filter(|letter| letter.is_alphabetic()).count();
            if count == 1
                && letters < MIN_WORD_LETTERS
                && !span.contains(|c: char| c.is_ascii_digit())
            {
                continue;
            }
            let beside = || {
                let (previous, next) = (at.checked_sub(1), at + count);
                beside_currency(get(previous), (first, last), get(Some(next)))
            };
            if count > 1
                && span.bytes().all(|byte| !byte.is_ascii_alphabetic())
                && beside().is_some()
                && let Some(form) = form.of(span)
                && is_amount(str::from_utf8(form).unwrap_or_default())
            {
                take_money(form, take);
            }
            for span in [Some(span), without_possessive(span)].into_iter().flatten() {
                if !is_all(span) {
                    form.each(span, &mut |form| take(key.hash(form)));
                }
            }
        }
    }
}

/// Words between the first and the last day of a time.
const TO: &str = "- – a al and au bis et through till to until";

/// The days of a time that has the month and the year only once: `3 May 2027` of "3 to 5 May 2027", both days of "May 3-5,
/// 2027".
fn each_day(words: &[&str], at: usize, found: &mut dyn FnMut(&str)) {
    let word = |at: usize| words.get(at).map_or("", |word| bare(word));
    let is_month = |word: &str| month(word.to_lowercase().as_bytes()).is_some();
    let is_day = |word: &str| decimal(word).is_some_and(|day| DAYS.contains(&day));
    let days =
        word(at).split_once(['-', '–']).filter(|(first, last)| is_day(first) && is_day(last));
    if days.is_none() && !words.get(at).is_some_and(|word| is_word(TO, word)) {
        return;
    }
    let (two, one) = (at.checked_sub(2).map_or("", word), at.checked_sub(1).map_or("", word));
    // "5 de marzo de 2027".
    let after = (at + 1..at + 6).map(word).filter(|word| !matches!(*word, "de" | "of"));
    let after: Vec<&str> = after.take(3).collect();
    let Some(year) = after.iter().find(|word| word.len() == 4 && decimal(word).is_some()) else {
        return;
    };
    let later = after.iter().copied().find(|word| is_month(word)).unwrap_or(one);
    let mut add = |day: &str, month: &str| {
        if is_day(day) && is_month(month) {
            found(&[day, " ", month, " ", year].concat());
        }
    };
    match days {
        Some((first, last)) => [first, last].into_iter().for_each(|day| add(day, later)),
        // "3 May to", "May 3 to", "3 to".
        None if is_month(one) => add(two, one),
        None => add(one, if is_month(two) { two } else { later }),
    }
}

/// What stands before a number that is no part of the next one: "flat 3 450 EUR".
const NUMBERED: &str = "apartment flat house invoice issue no nr number pr rechnung room suite ticket unit wohnung zimmer";

/// Whether a gap between two words can stand for thousands: `3 450`.
fn is_thousands(first: &str, second: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let first = bare(first);
    matches!(first.len(), 1..=3) && digits(first) == first.len() && digits(bare(second)) == 3
}

/// The text with a line break after a number that [names something](NUMBERED), if the gap could stand for thousands.
fn apart(text: &str) -> String {
    let (words, mut apart, mut copied) = (words(text), String::new(), 0);
    for three in words.windows(3) {
        let [name, first, second] = three else { continue };
        if (is_word(NUMBERED, bare(name)) || first.starts_with('#')) && is_thousands(first, second)
        {
            let (end, start) = (place(text, first).1, place(text, second).0);
            apart.extend([text.get(copied..end).unwrap_or_default(), "\n"]);
            copied = start;
        }
    }
    apart.push_str(text.get(copied..).unwrap_or_default());
    apart
}

/// The words with a space between them, or with a line break if it is between two numbers that would be one.
fn flat(text: &str) -> String {
    let (mut flat, mut previous) = (String::with_capacity(text.len()), "");
    for word in words(text) {
        let gap = || text.get(place(text, previous).1..place(text, word).0).unwrap_or_default();
        if !previous.is_empty() {
            flat.push(if is_thousands(previous, word) && has(gap(), '\n') { '\n' } else { ' ' });
        }
        flat.push_str(word);
        previous = word;
    }
    flat
}

/// Words that many tools take for each record or person. "Summarize all others" does not name `all`; only a quoted one
/// does.
const ALL: &str =
    "all any anybody anyone both entire every everybody everyone everything others rest whole";

#[inline(never)]
fn is_all(text: &str) -> bool {
    is_word(ALL, bare(text))
}

const QUOTES: [char; 10] = ['"', '\'', '`', '“', '”', '„', '«', '»', '‘', '’'];

/// Chinese, Japanese and Korean, and their punctuation.
fn has_no_gaps(character: char) -> bool {
    matches!(
        character,
        '\u{1100}'..='\u{11ff}'
            | '\u{2e80}'..='\u{a4cf}'
            | '\u{ac00}'..='\u{d7ff}'
            | '\u{f900}'..='\u{faff}'
            | '\u{ff00}'..='\u{ffef}'
            | '\u{20000}'..='\u{3ffff}'
    )
}

/// The text with a gap between ASCII and a script that has none there: `删除report.txt`. `None` if there is no such place.
fn spaced(text: &str) -> Option<String> {
    let mut spaced = String::with_capacity(text.len());
    for character in text.chars() {
        let before = spaced.chars().next_back().unwrap_or(' ');
        if (before.is_ascii_graphic() && has_no_gaps(character))
            || (has_no_gaps(before) && character.is_ascii_graphic())
        {
            spaced.push(' ');
        }
        spaced.push(character);
    }
    (spaced.len() > text.len()).then_some(spaced)
}

/// Calls `found` with the names and numbers in a word: `acme/shop`, `shop` and `7` of `acme/shop#7`, `5` of `x=5`, `1200`
/// and `EUR` of `EUR1200`, `EUR` of `45€` and of `euros`, `10` of `10%`. The number of `100%` is left out, because it is
/// seldom meant: "I am 100% sure".
fn each_part<'t>(word: &'t str, found: &mut dyn FnMut(&'t str)) {
    for (at, sign) in word.match_indices(['#', '=']) {
        let after = word.get(at + 1..).unwrap_or_default();
        let rest = after.trim_start_matches(|first: char| first.is_ascii_digit());
        let digits = after.get(..after.len() - rest.len()).unwrap_or_default();
        if digits.is_empty() || !is_end(rest) {
            continue;
        }
        found(digits);
        let before = word.get(..at).filter(|_| sign == "#").unwrap_or_default();
        let is_edge = |c: char| !c.is_alphanumeric() && !matches!(c, '/' | '-' | '_' | '.');
        let name = before.rsplit(is_edge).next().unwrap_or_default();
        for name in [name, name.rsplit('/').next().unwrap_or_default()] {
            if name.len() > 1 {
                found(name);
            }
        }
    }
    let with_currency = currency(word).map(|(currency, number)| {
        found(currency);
        number
    });
    let bare = bare(word);
    let is_percent = beside(word, bare).1.starts_with('%');
    let percent = Some(bare).filter(|number| is_percent && *number != "100");
    for number in [with_currency, percent].into_iter().flatten().filter(|number| is_amount(number))
    {
        found(number);
    }
}

/// Whether a number ends before this text. `#7-8`, `#7.1` and `#7a` are none.
fn is_end(after: &str) -> bool {
    let rest = after.strip_prefix(['.', ',', '-', ':', '/', '\'', '+']).unwrap_or(after);
    let is_sign = rest.len() < after.len();
    !rest.starts_with(|next: char| next.is_alphanumeric() || (next == '_' && !is_sign))
}

/// Where numbers and dates of several words are, in order: their normal form has no gaps.
#[inline(never)]
fn numbers(text: &str, form: &mut Form) -> Vec<Place> {
    let mut places = Vec::new();
    scan(text, &mut |kind, span| {
        if kind == Kind::Value
            && has(span.trim(), ' ')
            && form.of(span).is_some_and(|form| !form.contains(&b' '))
        {
            insert(&mut places, place(text, span));
        }
    });
    places
}

/// Adds to a sorted list. A sort takes more code, and most items come in order.
// Inlined into each caller, it takes more code.
#[inline(never)]
fn insert<T: Ord>(list: &mut Vec<T>, item: T) {
    list.insert(list.partition_point(|other| *other < item), item);
}

/// Whether a span begins in one of these places, and does not cover the whole.
fn is_part(numbers: &[Place], (start, end): Place) -> bool {
    let after = numbers.partition_point(|(from, _)| *from <= start);
    let before = numbers.get(..after).unwrap_or_default();
    before
        .iter()
        .rev()
        .take(MAX_GROUP_WORDS)
        .any(|(from, to)| start < *to && (start > *from || end < *to))
}

/// A word by its number among the words, and its place.
type Word = (usize, Place);

/// Whether a span is in one of these words.
fn is_within(counting: &[Word], (start, end): Place) -> bool {
    let after = counting.partition_point(|(_, (from, _))| *from <= start);
    let before = after.checked_sub(1).and_then(|at| counting.get(at));
    before.is_some_and(|(_, (_, to))| end <= *to)
}

/// Whether a group of words is one of these words, with nothing but punctuation beside it.
fn only_counts(counting: &[Word], first: usize, group: &[&str]) -> bool {
    let mut words = group.iter().enumerate().filter(|(_, word)| !bare(word).is_empty());
    let mut only = None;
    let is_one = words.all(|(at, _)| only.replace(at).is_none());
    let is_counting = |at| counting.binary_search_by_key(&(first + at), |(word, _)| *word).is_ok();
    is_one && only.is_some_and(is_counting)
}

/// What a number counts if one of these words follows it.
const UNITS: &str = "billion bn day days hour hours hr hrs milliarden million millionen min mins minute minutes mio month months \
    mrd night nights seconds tausend thousand tsd week weeks year years";

/// The same in Chinese, Japanese and Korean, where the next word follows without a gap. A large number, such as `万`, is one
/// too: `5万` is not 5. `、` follows the number of an item.
const UNITS_WITHOUT_GAPS: &str = "小时 小時 时 時 点 點 分 秒 天 日 月 年 周 週 星期 晚 泊 个小时 個小時 个月 個月 个星期 個星期 ヶ月 か月 カ月 ヵ月 万 萬 千 百 亿 億 、 시 분 초 일 월 년 주 개월 달 만 천 억";

#[inline(never)]
fn is_unit(word: &str) -> bool {
    is_word(UNITS, bare(word)) || UNITS_WITHOUT_GAPS.split(' ').any(|unit| word.starts_with(unit))
}

/// What can be before the number of a list item.
const OPENING: [char; 8] = ['(', '[', '{', '"', '\'', '«', '“', '‘'];

/// Hours of the clock, and what follows them.
const HOURS: std::ops::RangeInclusive<u32> = 1..=12;
const OF_THE_CLOCK: [&str; 3] = ["am", "pm", "o'clock"];

const DAYS: std::ops::RangeInclusive<u32> = 1..=31;

/// The places of numbers that identify nothing, in order: the numbers of list items, durations, times, and
/// days of a month. A short id could be equal to such a number by accident.
fn counting(text: &str) -> Vec<Word> {
    let words = words(text);
    let mut counting: Vec<Word> = Vec::new();
    // The items of the list that the text is in, from 1 on. One item alone is no list.
    let (mut items, mut first_item) = (0, None);
    for (at, word) in words.iter().enumerate() {
        let bare = bare(word);
        if !is_amount(bare) {
            continue;
        }
        let (opening, after) = beside(word, bare);
        // A currency or a `#` makes it the number of something.
        if !trim_start(opening, &OPENING).is_empty() {
            continue;
        }
        let found = (at, place(text, word));
        let previous = at.checked_sub(1).and_then(|at| words.get(at)).copied().unwrap_or_default();
        let next = words.get(at + 1).copied().unwrap_or_default();
        // Nothing stands between the number and its unit or month.
        let next = if after.is_empty() { next } else { "" };
        let is_counted = is_unit(next);
        let Some(number) = decimal(bare) else {
            // The half of a large number: `1.5亿`.
            if is_counted {
                insert(&mut counting, found);
            }
            continue;
        };
        if matches!(after, "." | ")") && begins_item(text, found.1, previous) {
            match number {
                1 => (items, first_item) = (1, Some(found)),
                _ if number == items + 1 => {
                    items = number;
                    first_item.take().into_iter().for_each(|it| insert(&mut counting, it));
                    insert(&mut counting, found);
                }
                _ => {}
            }
        }
        let next = self::bare(next);
        let is_day = DAYS.contains(&number) && (is_month(previous) || is_month(next));
        let is_hour = HOURS.contains(&number) && is_one_of(&OF_THE_CLOCK, next);
        if is_day || is_hour || is_counted {
            insert(&mut counting, found);
        }
    }
    counting
}

/// Whether an item of a list can begin at a place: at the beginning of a line, or after a sentence. The
/// `13.` in `No. 13.` does not begin one.
fn begins_item(text: &str, (start, _): Place, previous: &str) -> bool {
    let before = trim_end(text.get(..start).unwrap_or_default(), &[' ', '\t']);
    (before.is_empty() || before.ends_with(['\n', '.', ':', ';', '?', '!']))
        && !is_one_of(&NUMBER_SIGNS, bare(previous))
}

/// Whether a word is the name of a month. It begins with a capital, unlike the verb `may`.
fn is_month(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_uppercase())
        && month(lower(word).as_bytes()).is_some()
}

/// `Alice` of `Alice's`.
fn without_possessive(word: &str) -> Option<&str> {
    let word = trim_end(word, &['.', ',', ';', ':', '!', '?']);
    word.strip_suffix("'s").or_else(|| word.strip_suffix("’s"))
}
