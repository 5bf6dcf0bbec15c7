//! What a limit says: the fields of its record, and the rule that they make.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::amount::Amount;
use super::rule::{Calendar, Currency, Measured, Rule};
use super::window::{Day, Hours, Window};
use crate::bucket::{MAX_CAPACITY, MAX_REFILL_PER_S, Rate};
use crate::glob::Glob;
use crate::json::is_pointer;
use crate::text_enum::text_enum;

/// Limits of one agent or credential, and limits of each agent. All of them are checked at each call, so they
/// must be few.
pub const MAX_LIMITS_OF_SUBJECT: usize = 16;

/// Limits of a tenant that its lanes share. All of them are looked at in each call, so they must be few.
pub const MAX_SHARED_LIMITS: usize = 32;

/// Globs of a limit.
pub const MAX_LIMIT_TOOLS: usize = 32;

/// Parts of a day.
const MAX_HOURS: usize = 8;

/// Bytes of a time zone's name. The longest has 32.
const MAX_ZONE_BYTES: usize = 64;

/// Bytes of a currency's code, or of another unit's name.
const MAX_CURRENCY_BYTES: usize = 16;

/// The time zone if a limit names none.
pub const UTC: &str = "UTC";

text_enum! {
    /// What a limit bounds. In the order in which the limits of a call are checked.
    Kind {
        /// When calls are allowed.
        Hours = "hours",
        /// A number in the arguments of one call.
        PerCall = "per_call",
        /// Calls at once and per second (token bucket).
        Rate = "rate",
        /// Forwarded calls in progress.
        Concurrency = "concurrency",
        /// Calls in a window.
        Quota = "quota",
        /// The sum of a number in the arguments over a window.
        Amount = "amount",
        /// The sum of the tools' costs over a window.
        Budget = "budget",
    }
}

text_enum! {
    /// What a limit counts: calls of tools, or all requests of an agent.
    #[derive(Default)]
    Covers {
        /// Calls of tools, once the tool is known.
        #[default]
        Calls = "calls",
        /// All requests of an agent, also those that call no tool.
        Requests = "requests",
    }
}

text_enum! {
    /// Which calls a limit covers.
    Access {
        Read = "read",
        Write = "write",
    }
}

text_enum! {
    /// What becomes of a reservation if nobody knows whether the call had an effect.
    Unclear {
        /// It counts as used.
        Keep = "keep",
        /// It is given back.
        Return = "return",
    }
}

/// The fields of a limit that its kind decides on. A field that the kind does not have must be left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LimitRule)]
pub struct Definition {
    pub kind: Kind,
    /// Only calls that read, or only calls that write. Null: both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Access, required = false)]
    pub access: Option<Access>,
    /// Globs of `server/tool`. Null: all tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<Glob>, required = false, max_items = 32, min_items = 1)]
    pub tools: Option<Vec<Glob>>,
    /// `rate`: calls at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u32, required = false, minimum = 1, maximum = 1_000_000)]
    pub capacity: Option<u32>,
    /// `rate`: calls per second after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = f64, required = false, minimum = 0.001, maximum = 1_000_000)]
    pub refill_per_s: Option<f64>,
    /// The bound of every kind but `hours` and `rate`, as a decimal number in a string. A whole number for
    /// `concurrency` and `quota`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Amount, required = false)]
    pub max: Option<Amount>,
    /// `per_call`, `amount`: where the number is, as a JSON Pointer (RFC 6901) into the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, example = "/amount")]
    pub pointer: Option<String>,
    /// `per_call`, `amount`: calls in any other currency are denied. Null: the currency does not matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Currency, required = false)]
    pub currency: Option<Currency>,
    /// `quota`, `amount`, `budget`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Window, required = false)]
    pub window: Option<Window>,
    /// `hours` and kinds with a window: a name of the IANA database. Null: `UTC`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, example = "Europe/Berlin")]
    pub time_zone: Option<String>,
    /// `hours`: on which days. A part of a day that ends on the next one belongs to the day on which it begins.
    /// Null: every day. An empty list: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<Day>, required = false, max_items = 7)]
    pub days: Option<Vec<Day>>,
    /// `hours`: at which hours. Null: all day. An empty list: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<Hours>, required = false, max_items = 8)]
    pub hours: Option<Vec<Hours>>,
    /// `amount`, `budget`: what becomes of a reservation if a forwarded call neither succeeds nor fails for
    /// certain. Null: `keep`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Unclear, required = false)]
    pub unclear: Option<Unclear>,
}

/// A field that is wrong, and what it must be.
pub type Refused = (&'static str, String);

impl Definition {
    /// The rule that the fields make.
    ///
    /// # Errors
    ///
    /// The first field that is missing, does not belong to the kind, or is out of bounds.
    pub fn rule(&self) -> Result<Rule, Refused> {
        self.check_fields()?;
        let max = || self.max.ok_or_else(|| self.missing("max"));
        let time_zone = || self.time_zone.clone().unwrap_or_else(|| UTC.to_owned());
        let calendar = || {
            let window = self.window.ok_or_else(|| self.missing("window"))?;
            Ok(Calendar { window, time_zone: time_zone() })
        };
        let measured = || {
            let pointer = self.pointer.clone().ok_or_else(|| self.missing("pointer"))?;
            Ok(Measured { pointer, currency: self.currency.clone() })
        };
        Ok(match self.kind {
            Kind::Hours => Rule::Hours {
                days: self.days.clone(),
                hours: self.hours.clone(),
                time_zone: time_zone(),
            },
            Kind::PerCall => Rule::PerCall { max: max()?, measured: measured()? },
            Kind::Rate => {
                let capacity = self.capacity.ok_or_else(|| self.missing("capacity"))?;
                let refill = self.refill_per_s.ok_or_else(|| self.missing("refill_per_s"))?;
                Rule::Rate(Rate::new(capacity, refill))
            }
            Kind::Concurrency => Rule::Concurrency { max: whole(max()?)? },
            Kind::Quota => {
                whole(max()?)?;
                Rule::Quota { max: max()?, calendar: calendar()? }
            }
            Kind::Amount => {
                Rule::Amount { max: max()?, measured: measured()?, calendar: calendar()? }
            }
            Kind::Budget => Rule::Budget { max: max()?, calendar: calendar()? },
        })
    }

    fn missing(&self, field: &'static str) -> Refused {
        (field, format!("a limit of the kind `{}` needs it", self.kind.as_str()))
    }

    /// Whether every field that is present belongs to the kind, and is in its bounds.
    fn check_fields(&self) -> Result<(), Refused> {
        use Kind::{Amount, Budget, Concurrency, Hours, PerCall, Quota, Rate};
        let fields: [(&'static str, bool, &[Kind]); 10] = [
            ("capacity", self.capacity.is_some(), &[Rate]),
            ("refill_per_s", self.refill_per_s.is_some(), &[Rate]),
            ("max", self.max.is_some(), &[PerCall, Concurrency, Quota, Amount, Budget]),
            ("pointer", self.pointer.is_some(), &[PerCall, Amount]),
            ("currency", self.currency.is_some(), &[PerCall, Amount]),
            ("window", self.window.is_some(), &[Quota, Amount, Budget]),
            ("time_zone", self.time_zone.is_some(), &[Hours, Quota, Amount, Budget]),
            ("days", self.days.is_some(), &[Hours]),
            ("hours", self.hours.is_some(), &[Hours]),
            ("unclear", self.unclear.is_some(), &[Amount, Budget]),
        ];
        for (field, present, kinds) in fields {
            if present && !kinds.contains(&self.kind) {
                let why = format!("a limit of the kind `{}` does not have it", self.kind.as_str());
                return Err((field, why));
            }
        }
        if self.kind == Hours && self.days.is_none() && self.hours.is_none() {
            return Err((
                "hours",
                "a limit of the kind `hours` needs `hours`, `days` or both".into(),
            ));
        }
        let pointers = [
            ("pointer", self.pointer.as_ref()),
            ("currency.pointer", self.currency.as_ref().map(|it| &it.pointer)),
        ];
        for (field, pointer) in pointers {
            if pointer.is_some_and(|pointer| pointer.is_empty() || !is_pointer(pointer)) {
                return Err((field, "must be a JSON Pointer, such as `/amount`".to_owned()));
            }
        }
        let bounds = [
            (
                "tools",
                self.tools.as_ref().is_none_or(|it| (1..=MAX_LIMIT_TOOLS).contains(&it.len())),
                "must have 1 to 32 globs; leave it out for all tools",
            ),
            (
                "capacity",
                self.capacity.is_none_or(|it| (1..=MAX_CAPACITY).contains(&it)),
                "must be from 1 to 1000000",
            ),
            (
                "refill_per_s",
                self.refill_per_s.is_none_or(|it| (0.001..=MAX_REFILL_PER_S).contains(&it)),
                "must be from 0.001 to 1000000",
            ),
            (
                "currency.is",
                self.currency.as_ref().is_none_or(|it| is_label(&it.is, MAX_CURRENCY_BYTES)),
                "must be a text of 1 to 16 bytes",
            ),
            (
                "time_zone",
                self.time_zone.as_ref().is_none_or(|it| is_label(it, MAX_ZONE_BYTES)),
                "must be a name of the IANA database, such as `Europe/Berlin`",
            ),
            (
                "days",
                self.days.as_ref().is_none_or(|it| it.len() <= Day::ALL.len()),
                "must have at most 7 days",
            ),
            (
                "hours",
                self.hours.as_ref().is_none_or(|it| it.len() <= MAX_HOURS),
                "must have at most 8 parts of a day",
            ),
        ];
        match bounds.into_iter().find(|(_, within, _)| !within) {
            Some((field, _, must)) => Err((field, must.to_owned())),
            None => Ok(()),
        }
    }
}

fn is_label(text: &str, max: usize) -> bool {
    (1..=max).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn whole(max: Amount) -> Result<u64, Refused> {
    max.as_whole().ok_or_else(|| ("max", "must be a whole number for this kind".to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(definition: serde_json::Value) -> Option<String> {
        let definition: Definition = match serde_json::from_value(definition) {
            Ok(definition) => definition,
            Err(error) => return Some(error.to_string()),
        };
        definition.rule().err().map(|(field, _)| field.to_owned())
    }

    #[test]
    fn each_kind_has_its_own_fields() {
        let zone = "Europe/Berlin";
        for (definition, expected) in [
            (json!({"kind": "hours", "days": ["mon"], "time_zone": zone}), None),
            (json!({"kind": "hours", "days": [], "hours": []}), None),
            (json!({"kind": "hours"}), Some("hours")),
            (json!({"kind": "hours", "hours": ["09:00-17:00"], "max": "1"}), Some("max")),
            (json!({"kind": "per_call", "max": "10.5", "pointer": "/a"}), None),
            (json!({"kind": "per_call", "max": "10.5"}), Some("pointer")),
            (json!({"kind": "per_call", "max": "1", "pointer": "a"}), Some("pointer")),
            (json!({"kind": "per_call", "max": "1", "pointer": ""}), Some("pointer")),
            (json!({"kind": "rate", "capacity": 5, "refill_per_s": 0.5}), None),
            (json!({"kind": "rate", "capacity": 5}), Some("refill_per_s")),
            (json!({"kind": "rate", "capacity": 0, "refill_per_s": 1}), Some("capacity")),
            (json!({"kind": "concurrency", "max": "3"}), None),
            (json!({"kind": "concurrency", "max": "2.5"}), Some("max")),
            (json!({"kind": "quota", "max": "3", "window": "week"}), None),
            (json!({"kind": "quota", "max": "0", "window": "week"}), None),
            (json!({"kind": "quota", "max": "3"}), Some("window")),
            (
                json!({"kind": "quota", "max": "3", "window": "day", "unclear": "keep"}),
                Some("unclear"),
            ),
            (
                json!({"kind": "amount", "max": "3", "window": "day", "pointer": "/a",
                       "currency": {"pointer": "/c", "is": "EUR"}, "unclear": "return"}),
                None,
            ),
            (
                json!({"kind": "amount", "max": "3", "window": "day", "pointer": "/a",
                       "currency": {"pointer": "/c", "is": ""}}),
                Some("currency.is"),
            ),
            (json!({"kind": "budget", "max": "3", "window": "month", "tools": []}), Some("tools")),
            (json!({"kind": "budget", "max": "3", "window": "month"}), None),
        ] {
            let text = definition.to_string();
            assert_eq!(refused(definition).as_deref(), expected, "{text}");
        }
        for definition in [
            json!({"kind": "quota", "max": 3, "window": "day"}),
            json!({"kind": "quota", "max": "-3", "window": "day"}),
            json!({"kind": "quota", "max": "3", "window": "year"}),
            json!({"kind": "fair", "max": "3"}),
            json!({"kind": "quota", "max": "3", "window": "day", "burst": 3}),
        ] {
            let text = definition.to_string();
            assert!(refused(definition).is_some(), "{text}");
        }
    }
}
