//! Calendar windows in time zones.
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

/// The only zone that everybody knows, for tests and benches: [`OffsetS`].
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    pub number: u64,
    pub ends_at_ms: u64,
}

/// An instant as the clocks on the walls of a zone show it.
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
    // Minutes are the same everywhere, and none is there twice.
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

/// How many changes of a zone's clocks [`opens_at`] gets past. There are weeks between two of them, and without one
/// the next opening is at most a week away.
const MAX_CHANGES: usize = 4;

/// The first time from now on that is on one of the days and in one of the parts. `None` if there is none, or if the
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
        // The clocks are changed before. Finds the second, from which the search goes on.
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Central European Time: one hour ahead, and two from the last Sunday in March to the last in October,
    /// 01:00 UTC.
    fn berlin(zone: &str, now_ms: u64) -> Option<i32> {
        if zone != "Europe/Berlin" {
            return utc_only(zone, now_ms);
        }
        let seconds = (now_ms / 1_000) as i64;
        let (year, _) = year_and_month(seconds.div_euclid(DAY_S));
        let last_sunday = |month: i64| {
            let next = first_day(year, month + 1);
            let back = Local { seconds: (next - 1) * DAY_S }.weekday() as i64 + 1;
            (next - 1 - back % 7) * DAY_S + HOUR_S
        };
        let summer = (last_sunday(2)..last_sunday(9)).contains(&seconds);
        Some(if summer { 7_200 } else { 3_600 })
    }

    fn ms(text: &str) -> u64 {
        text.parse::<jiff::Timestamp>().unwrap().as_millisecond() as u64
    }

    #[test]
    fn a_window_ends_where_the_next_one_of_the_zones_calendar_begins() {
        for (window, zone, now, ends) in [
            (Window::Minute, "UTC", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"),
            (Window::Hour, "UTC", "2026-01-01T00:59:59.999Z", "2026-01-01T01:00:00Z"),
            (Window::Day, "UTC", "2026-12-31T23:59:59Z", "2027-01-01T00:00:00Z"),
            (Window::Week, "UTC", "2026-11-22T12:00:00Z", "2026-11-23T00:00:00Z"),
            (Window::Week, "UTC", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"),
            (Window::Month, "UTC", "2026-12-05T00:00:00Z", "2027-01-01T00:00:00Z"),
            (Window::Month, "UTC", "2028-02-29T23:00:00Z", "2028-03-01T00:00:00Z"),
            (Window::Day, "Europe/Berlin", "2026-11-22T22:59:59Z", "2026-11-22T23:00:00Z"),
            (Window::Day, "Europe/Berlin", "2026-11-22T23:00:00Z", "2026-11-23T23:00:00Z"),
            // A day of 23 hours, and one of 25.
            (Window::Day, "Europe/Berlin", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"),
            (Window::Day, "Europe/Berlin", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"),
            (Window::Month, "Europe/Berlin", "2026-03-01T00:00:00Z", "2026-03-31T22:00:00Z"),
            // The hour that does not exist, and the one that is there twice.
            (Window::Hour, "Europe/Berlin", "2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z"),
            (Window::Hour, "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T02:00:00Z"),
            (Window::Hour, "Europe/Berlin", "2026-10-25T01:30:00Z", "2026-10-25T02:00:00Z"),
        ] {
            let found = period(window, zone, ms(now), berlin).unwrap();
            assert_eq!(found.ends_at_ms, ms(ends), "{window:?} {zone} {now}");
        }
        assert_eq!(period(Window::Day, "Europe/Nowhere", 0, berlin), None);
    }

    #[test]
    fn hours_may_end_on_the_next_day() {
        let hours = |text: &str| Hours::try_from(text.to_owned());
        let (day, night) = (hours("09:00-17:30").unwrap(), hours("22:00-06:00").unwrap());
        assert_eq!(
            [539, 540, 1_049, 1_050].map(|at| day.contains(at).0),
            [false, true, true, false]
        );
        assert_eq!(
            [1_319, 1_320, 0, 359, 360].map(|at| night.contains(at)),
            [(false, false), (true, false), (false, true), (false, true), (false, false)]
        );
        assert_eq!(hours("00:00-24:00").unwrap().contains(1_439), (true, false));
        for text in [
            "",
            "9:00-17:00",
            "09:00",
            "09:00-09:00",
            "24:00-24:00",
            "24:00-06:00",
            "09:60-10:00",
            "25:00-26:00",
            "09:00-17:00 ",
            "+9:00-17:00",
        ] {
            assert!(hours(text).is_err(), "{text}");
        }
        assert_eq!(String::from(night), "22:00-06:00");
    }

    fn parts(texts: &[&str]) -> Vec<Hours> {
        texts.iter().map(|text| Hours::try_from((*text).to_owned()).unwrap()).collect()
    }

    #[test]
    fn a_limit_that_is_closed_says_when_it_opens() {
        use Day::{Friday, Monday, Sunday, Thursday};
        let (office, night) = (&["09:00-17:00"][..], &["22:00-06:00"][..]);
        // 23 November 2026 is a Monday. In Berlin, the clocks skip 02:00 to 03:00 on 29 March, and go through it
        // twice on 25 October; both are Sundays.
        for (days, hours, zone, now, opens) in [
            (None, Some(office), "UTC", "2026-11-23T08:59:59.999Z", Some("2026-11-23T09:00:00Z")),
            (
                None,
                Some(office),
                "UTC",
                "2026-11-23T09:00:00.500Z",
                Some("2026-11-23T09:00:00.500Z"),
            ),
            (None, Some(office), "UTC", "2026-11-23T17:00:00Z", Some("2026-11-24T09:00:00Z")),
            (
                None,
                Some(office),
                "Europe/Berlin",
                "2026-11-23T17:00:00Z",
                Some("2026-11-24T08:00:00Z"),
            ),
            (
                Some(&[Monday][..]),
                Some(office),
                "UTC",
                "2026-11-23T17:00:00Z",
                Some("2026-11-30T09:00:00Z"),
            ),
            (
                Some(&[Monday, Friday][..]),
                None,
                "UTC",
                "2026-11-24T00:00:00Z",
                Some("2026-11-27T00:00:00Z"),
            ),
            // Across midnight: the part belongs to the day on which it begins.
            (None, Some(night), "UTC", "2026-11-23T06:00:00Z", Some("2026-11-23T22:00:00Z")),
            (
                Some(&[Monday][..]),
                Some(night),
                "UTC",
                "2026-11-24T06:00:00Z",
                Some("2026-11-30T22:00:00Z"),
            ),
            (
                Some(&[Monday][..]),
                Some(night),
                "UTC",
                "2026-11-23T05:00:00Z",
                Some("2026-11-23T22:00:00Z"),
            ),
            (
                None,
                Some(&["12:00-13:00", "09:00-10:00"][..]),
                "UTC",
                "2026-11-23T10:00:00Z",
                Some("2026-11-23T12:00:00Z"),
            ),
            // The clocks are put forward.
            (
                None,
                Some(office),
                "Europe/Berlin",
                "2026-03-28T16:00:00Z",
                Some("2026-03-29T07:00:00Z"),
            ),
            (
                None,
                Some(&["02:30-04:00"][..]),
                "Europe/Berlin",
                "2026-03-29T00:00:00Z",
                Some("2026-03-29T01:00:00Z"),
            ),
            (
                Some(&[Sunday][..]),
                Some(&["02:00-03:00"][..]),
                "Europe/Berlin",
                "2026-03-22T03:00:00Z",
                Some("2026-04-05T00:00:00Z"),
            ),
            (
                Some(&[Sunday, Thursday][..]),
                Some(&["02:00-03:00"][..]),
                "Europe/Berlin",
                "2026-03-28T12:00:00Z",
                Some("2026-04-02T00:00:00Z"),
            ),
            // The clocks are put back.
            (
                None,
                Some(office),
                "Europe/Berlin",
                "2026-10-24T15:00:00Z",
                Some("2026-10-25T08:00:00Z"),
            ),
            (
                None,
                Some(&["01:00-02:30"][..]),
                "Europe/Berlin",
                "2026-10-25T00:30:00Z",
                Some("2026-10-25T01:00:00Z"),
            ),
            (
                None,
                Some(&["02:15-02:30"][..]),
                "Europe/Berlin",
                "2026-10-25T00:30:00Z",
                Some("2026-10-25T01:15:00Z"),
            ),
            // Never.
            (Some(&[][..]), None, "UTC", "2026-11-23T00:00:00Z", None),
            (Some(&[][..]), Some(office), "UTC", "2026-11-23T00:00:00Z", None),
            (None, Some(&[][..]), "UTC", "2026-11-23T00:00:00Z", None),
            (None, Some(office), "Europe/Nowhere", "2026-11-23T00:00:00Z", None),
        ] {
            let of = hours.map(parts);
            let found = opens_at(zone, ms(now), (days, of.as_deref()), berlin);
            assert_eq!(found, opens.map(ms), "{days:?} {hours:?} {zone} {now}");
        }
    }

    fn day() -> impl Strategy<Value = Day> {
        prop::sample::select(Day::ALL.to_vec())
    }

    fn part() -> impl Strategy<Value = Hours> {
        let minutes =
            (0..DAY_MINUTES, 0..=DAY_MINUTES).prop_filter("two times", |(from, to)| from != to);
        minutes.prop_map(|(from, to)| Hours { from, to })
    }

    proptest! {
        /// Near the days on which clocks are changed, it is open from the time that was said, and at no minute before.
        #[test]
        fn an_opening_is_the_first_one(
            (begins, minute) in (prop::sample::select(&["2026-03-20T00:00:00Z", "2026-10-16T00:00:00Z"][..]), 0..12 * 1_440_u64),
            days in prop::option::of(prop::collection::vec(day(), 0..4)),
            hours in prop::option::weighted(0.9, prop::collection::vec(part(), 0..4)),
        ) {
            const LONGEST: u64 = 16 * 1_440;
            let now_ms = ms(begins) + minute * 60_000;
            let (days, hours) = (days.as_deref(), hours.as_deref());
            let is_open = |at_ms: u64| {
                is_open(Local::at("Europe/Berlin", at_ms, berlin).unwrap(), days, hours)
            };
            let found = opens_at("Europe/Berlin", now_ms, (days, hours), berlin);
            let first = (0..LONGEST).map(|minutes| now_ms + minutes * 60_000).find(|at_ms| is_open(*at_ms));
            prop_assert_eq!(found, first);
        }

        /// Whatever the zone does, each instant is in exactly one window, and its number changes when it ends.
        #[test]
        fn windows_follow_each_other(
            now_ms in ms("2020-01-01T00:00:00Z")..ms("2040-01-01T00:00:00Z"),
            window in prop::sample::select(&[Window::Day, Window::Week, Window::Month][..]),
        ) {
            let of = |at_ms: u64| period(window, "Europe/Berlin", at_ms, berlin).unwrap();
            let found = of(now_ms);
            prop_assert!(found.ends_at_ms > now_ms);
            prop_assert_eq!(of(found.ends_at_ms - 1).number, found.number);
            prop_assert_eq!(of(found.ends_at_ms).number, found.number + 1);
        }
    }
}
