//! The windows of limits: parts of the calendar of a time zone.
//!
//! A window has a number: that of its minute, hour, day, week or month in local time. Numbers never go back
//! while the clock goes forward, except for the hour that is there twice when daylight saving ends; a limit
//! keeps the larger number.

use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::openapi::{Object, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::text_enum::text_enum;

/// Seconds that local time is ahead of UTC, in a time zone of the IANA database at a time in milliseconds.
/// `None` if there is no such zone. The runtime has the database, the Wasm has none.
pub type OffsetS = fn(&str, u64) -> Option<i32>;

/// An [`OffsetS`] that knows only UTC, for tests and benches.
#[must_use]
pub fn utc_only(zone: &str, _: u64) -> Option<i32> {
    (zone == "UTC").then_some(0)
}

const MINUTE_S: i64 = 60;
const HOUR_S: i64 = 60 * MINUTE_S;
pub const DAY_S: i64 = 24 * HOUR_S;

/// Monday, 5 January 1970, in seconds since 1970.
const FIRST_MONDAY_S: i64 = 4 * DAY_S;

text_enum! {
    /// A window that begins with the calendar's: weeks on Monday, months on the first day.
    Window {
        Minute = "minute",
        Hour = "hour",
        Day = "day",
        Week = "week",
        Month = "month",
    }
}

impl Window {
    /// Seconds of the longest window of this kind.
    #[must_use]
    pub const fn longest_s(self) -> u64 {
        let seconds = match self {
            Self::Minute => MINUTE_S,
            Self::Hour => HOUR_S,
            Self::Day => DAY_S,
            Self::Week => 7 * DAY_S,
            Self::Month => 31 * DAY_S,
        };
        seconds.unsigned_abs()
    }
}

/// One window: its number, and when it ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Period {
    pub number: u64,
    pub ends_at_ms: u64,
}

/// An instant in the local time of a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Local {
    /// As if local time were UTC.
    pub seconds: i64,
}

impl Local {
    /// `None` if the zone is unknown.
    #[must_use]
    pub fn at(zone: &str, now_ms: u64, offset_s: OffsetS) -> Option<Self> {
        let seconds = i64::try_from(now_ms / 1_000).ok()?;
        Some(Self { seconds: seconds + i64::from(offset_s(zone, now_ms)?) })
    }

    /// Days since Monday: 0 to 6.
    #[must_use]
    pub fn weekday(self) -> usize {
        let days = (self.seconds - FIRST_MONDAY_S).div_euclid(DAY_S);
        usize::try_from(days.rem_euclid(7)).unwrap_or_default()
    }

    /// Minutes since midnight.
    #[must_use]
    pub fn minute_of_day(self) -> u16 {
        u16::try_from(self.seconds.rem_euclid(DAY_S) / MINUTE_S).unwrap_or_default()
    }

    /// The number of the window, and the local second at which the next one begins.
    fn window(self, window: Window) -> (i64, i64) {
        let fixed = |width: i64, origin: i64| {
            let number = (self.seconds - origin).div_euclid(width);
            (number, (number + 1) * width + origin)
        };
        match window {
            Window::Minute => fixed(MINUTE_S, 0),
            Window::Hour => fixed(HOUR_S, 0),
            Window::Day => fixed(DAY_S, 0),
            Window::Week => fixed(7 * DAY_S, FIRST_MONDAY_S),
            Window::Month => {
                let (year, month) = year_and_month(self.seconds.div_euclid(DAY_S));
                let number = (year - 1970) * 12 + month;
                let next = number + 1;
                (number, first_day(1970 + next.div_euclid(12), next.rem_euclid(12)) * DAY_S)
            }
        }
    }
}

/// The window that contains an instant. `None` if the zone is unknown.
#[must_use]
pub fn period(window: Window, zone: &str, now_ms: u64, offset_s: OffsetS) -> Option<Period> {
    // Minutes are the same in every time zone, and no minute occurs twice.
    let zone = if window == Window::Minute { "UTC" } else { zone };
    let local = Local::at(zone, now_ms, offset_s)?;
    let (number, next_s) = local.window(window);
    let ends_at_ms = instant(next_s, zone, now_ms, offset_s)?;
    Some(Period { number: u64::try_from(number).ok()?, ends_at_ms })
}

/// The first instant from now on at which the clocks of a zone show a local time or a later one.
fn instant(local_s: i64, zone: &str, now_ms: u64, offset_s: OffsetS) -> Option<u64> {
    let ms = |offset: i32| u64::try_from((local_s - i64::from(offset)) * 1_000).ok();
    let now = ms(offset_s(zone, now_ms)?)?;
    // The offset may change before then.
    let then = ms(offset_s(zone, now)?)?;
    let shows =
        |at_ms: u64| Local::at(zone, at_ms, offset_s).is_some_and(|it| it.seconds >= local_s);
    let first = [now.min(then), now.max(then)].into_iter().find(|at_ms| shows(*at_ms));
    Some(first.unwrap_or(now.max(then)).max(now_ms + 1))
}

/// Of a day since 1970: the year, and the month from 0. The algorithm is Howard Hinnant's `civil_from_days`
/// (<https://howardhinnant.github.io/date_algorithms.html>).
fn year_and_month(day: i64) -> (i64, i64) {
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let day_of_era = day.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 2 } else { from_march - 10 };
    (era * 400 + year_of_era + i64::from(month < 2), month)
}

/// The first day of a month from 0, in days since 1970: Hinnant's `days_from_civil`.
fn first_day(year: i64, month: i64) -> i64 {
    let year = if month < 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let from_march = if month >= 2 { month - 2 } else { month + 10 };
    let day_of_year = (153 * from_march + 2) / 5;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

text_enum! {
    Day {
        Monday = "mon",
        Tuesday = "tue",
        Wednesday = "wed",
        Thursday = "thu",
        Friday = "fri",
        Saturday = "sat",
        Sunday = "sun",
    }
}

/// A part of a day, `HH:MM-HH:MM` in local time: from the first minute on, up to before the second one. If it
/// ends before it begins, it ends on the next day. `00:00-24:00` is the whole day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hours {
    from: u16,
    to: u16,
}

const DAY_MINUTES: u16 = 24 * 60;

impl PartialSchema for Hours {
    fn schema() -> RefOr<Schema> {
        let time = "([01][0-9]|2[0-4]):[0-5][0-9]";
        Object::builder()
            .schema_type(Type::String)
            .pattern(Some(format!("^{time}-{time}$")))
            .examples([json!("22:00-06:00")])
            .into()
    }
}

impl ToSchema for Hours {}

impl Hours {
    /// Whether it contains a minute of a day: as a part that began on this day, or on the day before.
    #[must_use]
    pub const fn contains(self, minute: u16) -> (bool, bool) {
        if self.from < self.to {
            (self.from <= minute && minute < self.to, false)
        } else {
            (self.from <= minute, minute < self.to)
        }
    }
}

/// Whether a time is on one of the days and in one of the parts. `None`: every day, all day.
#[must_use]
pub fn is_open(local: Local, days: Option<&[Day]>, hours: Option<&[Hours]>) -> bool {
    let today = local.weekday();
    let is_day =
        |weekday: usize| days.is_none_or(|days| days.iter().any(|day| *day as usize == weekday));
    let (is_today, was_yesterday) = (is_day(today), is_day((today + 6) % 7));
    let Some(hours) = hours else { return is_today };
    hours.iter().any(|hours| {
        let (since_today, since_yesterday) = hours.contains(local.minute_of_day());
        (since_today && is_today) || (since_yesterday && was_yesterday)
    })
}

/// How many clock changes of a time zone [`opens_at`] looks at. Two changes are weeks apart, and the next opening is
/// at most a week after the last change.
const MAX_CHANGES: usize = 4;

/// The first time from now on, on one of the days and in one of the parts. Returns `None` if no such time comes, or if the
/// zone is unknown.
#[must_use]
pub fn opens_at(
    zone: &str,
    now_ms: u64,
    (days, hours): (Option<&[Day]>, Option<&[Hours]>),
    offset_s: OffsetS,
) -> Option<u64> {
    let mut at_ms = now_ms / 1_000 * 1_000;
    for _ in 0..MAX_CHANGES {
        let local = Local::at(zone, at_ms, offset_s)?;
        if is_open(local, days, hours) {
            return Some(at_ms.max(now_ms));
        }
        let opens_ms = at_ms + 1_000 * until_open(local, days, hours)?;
        let offset = offset_s(zone, at_ms);
        if offset_s(zone, opens_ms) == offset {
            return Some(opens_ms);
        }
        // The clocks change before that. Find the second of the change, and continue the search from there.
        let (mut before, mut after) = (at_ms, opens_ms);
        while after - before > 1_000 {
            let middle = before + (after - before) / 2_000 * 1_000;
            match offset_s(zone, middle) == offset {
                true => before = middle,
                false => after = middle,
            }
        }
        at_ms = after;
    }
    None
}

/// Seconds until a part of a day begins, by clocks that are not changed.
fn until_open(local: Local, days: Option<&[Day]>, hours: Option<&[Hours]>) -> Option<u64> {
    let midnight = local.seconds - local.seconds.rem_euclid(DAY_S);
    // The part that was missed today begins again in a week.
    (0..=7).find_map(|day| {
        let begins = midnight + day * DAY_S;
        let wait_s = |minute: u16| {
            let start = begins + i64::from(minute) * MINUTE_S;
            let is_later = start > local.seconds && is_open(Local { seconds: start }, days, hours);
            is_later.then_some((start - local.seconds).unsigned_abs())
        };
        match hours {
            None => wait_s(0),
            Some(hours) => hours.iter().filter_map(|hours| wait_s(hours.from)).min(),
        }
    })
}

impl TryFrom<String> for Hours {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        const EXPECTED: &str =
            "must be `HH:MM-HH:MM`, from 00:00 to 24:00, with two different times";
        let minute = |text: &str| {
            let (hour, minute) = text.split_once(':')?;
            let two = |text: &str| {
                let is_two = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
                text.parse::<u16>().ok().filter(|_| is_two)
            };
            let minute = two(hour)? * 60 + two(minute).filter(|minute| *minute < 60)?;
            (minute <= DAY_MINUTES).then_some(minute)
        };
        let times = text.split_once('-').and_then(|(from, to)| Some((minute(from)?, minute(to)?)));
        match times {
            Some((from, to)) if from != to && from < DAY_MINUTES => Ok(Self { from, to }),
            _ => Err(EXPECTED),
        }
    }
}

impl From<Hours> for String {
    fn from(Hours { from, to }: Hours) -> Self {
        format!("{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)
    }
}

#[cfg(test)]
mod tests;
