//! The list of all metrics. The page, the dashboard and the alert rules are tested against it.

/// What a metric's value means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    /// The upper bounds of its buckets in milliseconds, except for the last, which has none.
    Histogram(&'static [u64]),
}

/// A metric as it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Definition {
    /// The name in D1 and in journal rows. Persisted.
    pub key: &'static str,
    /// The name for Prometheus.
    pub name: &'static str,
    pub kind: Kind,
    pub help: &'static str,
    /// Labels whose values are closed lists. The label `tenant` is in addition.
    pub labels: &'static [&'static str],
    /// Labels whose values are names.
    pub names: &'static [&'static str],
}

/// How long forwarded calls take: most are local services or web APIs. The longest time limit of a server is far
/// above the last bound, but such a call is an exception in any case.
const PROXIED_MS: &[u64] = &[10, 50, 100, 250, 500, 1_000, 2_500, 10_000, 60_000];

/// How long people take: from a minute to a day. An approval waits for a week at most.
const APPROVAL_MS: &[u64] =
    &[60_000, 300_000, 900_000, 1_800_000, 3_600_000, 4 * 3_600_000, 24 * 3_600_000];

/// Defines [`Metric`] from a list, so that a metric exists once.
macro_rules! metrics {
    ($($metric:ident = $key:literal, $name:literal, $kind:expr, [$($label:literal),*], [$($of_name:literal),*], $help:literal;)+) => {
        /// A metric.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Metric {
            $($metric,)+
        }

        impl Metric {
            pub const ALL: &[Self] = &[$(Self::$metric,)+];

            /// [`Definition::key`].
            #[must_use]
            pub const fn key(self) -> &'static str {
                match self {
                    $(Self::$metric => $key,)+
                }
            }

            #[must_use]
            pub const fn definition(self) -> Definition {
                match self {
                    $(Self::$metric => Definition {
                        key: $key,
                        name: $name,
                        kind: $kind,
                        help: $help,
                        labels: &[$($label),*],
                        names: &[$($of_name),*],
                    },)+
                }
            }
        }
    };
}

metrics! {
    Decisions = "decisions", "gateward_decisions_total", Kind::Counter, ["decision", "reason"], ["server", "tool"],
        "Decisions that were written down.";
    CredentialDecisions = "credential_decisions", "gateward_credential_decisions_total", Kind::Counter, ["decision"], ["credential"],
        "Decisions by the keyed hash of the credential's key id.";
    DegradedDecisions = "degraded_decisions", "gateward_degraded_decisions_total", Kind::Counter, [], [],
        "Decisions that a lane made by records that the database had not confirmed in time.";
    Writes = "writes", "gateward_writes_total", Kind::Counter, ["decision", "tainted", "provenance"], [],
        "Decisions on calls that write, by taint and by the lowest level of their destinations.";
    LimitsHit = "limits_hit", "gateward_limits_hit_total", Kind::Counter, ["kind"], ["limit"],
        "Calls that a limit stopped.";
    Reservations = "reservations", "gateward_reservations_total", Kind::Counter, ["event"], [],
        "Parts of limits that calls held until their outcome: how they began and ended.";
    Approvals = "approvals", "gateward_approval_events_total", Kind::Counter, ["event"], [],
        "Steps of approvals.";
    ApprovalSeconds = "approval_ms", "gateward_approval_duration_seconds", Kind::Histogram(APPROVAL_MS), ["event"], [],
        "Time from the request of an approval until it was approved, rejected, cancelled or expired.";
    ProxiedSeconds = "proxied_ms", "gateward_proxied_request_duration_seconds", Kind::Histogram(PROXIED_MS), ["outcome"], ["server"],
        "Forwarded calls: time until the server's answer ended.";
    Events = "events", "gateward_events_total", Kind::Counter, ["event"], [],
        "Events that lanes count without writing each down.";
    FailedAuthentications = "failed_authentications", "gateward_failed_authentications_total", Kind::Counter, ["reason"], [],
        "Requests with a credential that was refused, or with a warrant and no credential that did not say who calls.";
    WebhookAttempts = "webhook_attempts", "gateward_webhook_attempts_total", Kind::Counter, ["outcome"], [],
        "Attempts to deliver a message to the webhook.";
    DeadLetters = "dead_letters", "gateward_dead_letters_total", Kind::Counter, [], [],
        "Messages to the webhook that were given up.";
    FlushErrors = "flush_errors", "gateward_flush_errors_total", Kind::Counter, [], [],
        "Flushes of lanes that failed.";
    Lanes = "lanes", "gateward_lanes", Kind::Gauge, [], [],
        "Lanes that have flushed.";
    JournalRows = "journal_rows", "gateward_journal_rows", Kind::Gauge, [], [],
        "Rows that the last flushes left in the journals of all lanes.";
    JournalRowsMax = "journal_rows_max", "gateward_journal_rows_max", Kind::Gauge, [], [],
        "The same of the lane that had the most.";
    JournalAge = "journal_age", "gateward_journal_age_seconds", Kind::Gauge, [], [],
        "Age of the oldest row when it was flushed, in the lane that was last; of the last 15 minutes.";
    EpochsBehind = "epochs_behind", "gateward_epochs_behind", Kind::Gauge, [], [],
        "Changes of the registry that a lane did not have when it flushed, the most of any lane; of the last 15 minutes.";
    AlarmOverdue = "alarm_overdue", "gateward_alarm_overdue_seconds", Kind::Gauge, [], [],
        "How late an alarm ran, the most of any lane; of the last 15 minutes.";
    ApprovalsOpen = "approvals_open", "gateward_approvals_open", Kind::Gauge, [], [],
        "Approvals that are pending, or approved and not used yet, at the last flush of each lane.";
    ReservationsOpen = "reservations_open", "gateward_reservations_open", Kind::Gauge, [], [],
        "Reservations whose outcome is not known, at the last flush of each lane.";
    LaneSilence = "lane_silence", "gateward_lane_silence_seconds", Kind::Gauge, [], [],
        "Time since the last flush of a lane that had left rows, the longest of any lane; 0 if none had.";
    LastReport = "last_report", "gateward_last_flush_timestamp_seconds", Kind::Gauge, [], [],
        "When a lane last flushed, as Unix time.";
    Truncated = "truncated", "gateward_metrics_truncated", Kind::Gauge, [], [],
        "1 if this answer left out series because there are too many; else 0. It has no tenant.";
}

impl Metric {
    /// The metric with this key.
    #[must_use]
    pub fn find(key: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|metric| metric.key() == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_names_are_unique_and_follow_the_conventions_of_prometheus() {
        for (at, metric) in Metric::ALL.iter().enumerate() {
            let Definition { key, name, kind, labels, names, help } = metric.definition();
            assert_eq!(Metric::find(key), Some(*metric));
            assert!(Metric::ALL.iter().skip(at + 1).all(|it| it.definition().name != name));
            assert!(name.starts_with("gateward_") && help.ends_with('.'), "{name}");
            assert_eq!(name.ends_with("_total"), kind == Kind::Counter, "{name}");
            assert!(matches!(kind, Kind::Counter) || !name.ends_with("_count"), "{name}");
            let own: Vec<_> = labels.iter().chain(names).collect();
            assert!(own.iter().all(|label| !["tenant", "le"].contains(*label)), "{name}");
            if let Kind::Histogram(bounds) = kind {
                assert!(bounds.is_sorted() && name.ends_with("_seconds"), "{name}");
            }
        }
        assert_eq!(Metric::find("unknown"), None);
    }
}
