//! When windows end and limits open, also where a zone's clocks are changed.

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
    crate::field::parse_time(text).unwrap()
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
    assert_eq!([539, 540, 1_049, 1_050].map(|at| day.contains(at).0), [false, true, true, false]);
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
        (None, Some(office), "UTC", "2026-11-23T09:00:00.500Z", Some("2026-11-23T09:00:00.500Z")),
        (None, Some(office), "UTC", "2026-11-23T17:00:00Z", Some("2026-11-24T09:00:00Z")),
        (None, Some(office), "Europe/Berlin", "2026-11-23T17:00:00Z", Some("2026-11-24T08:00:00Z")),
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
        (None, Some(office), "Europe/Berlin", "2026-03-28T16:00:00Z", Some("2026-03-29T07:00:00Z")),
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
        (None, Some(office), "Europe/Berlin", "2026-10-24T15:00:00Z", Some("2026-10-25T08:00:00Z")),
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
