//! What a scrape answers: the classic text format of Prometheus.

use std::collections::BTreeMap;

use prometheus::TextEncoder;
use prometheus::proto::{
    Bucket, Counter, Gauge, Histogram, LabelPair, Metric as Sample, MetricFamily, MetricType,
};
use serde::Deserialize;
use serde_json::Value;

use super::bounds::{MAX_RENDERED_SERIES, MAX_RENDERED_TENANTS, NO_TENANT, OTHER};
use super::list::{Definition, Kind, Metric};

/// The media type of the format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A row of D1's table `metric_counters`.
#[derive(Debug, Clone, Deserialize)]
pub struct CounterRow {
    pub tenant: String,
    pub metric: String,
    /// The values of the closed labels: a JSON array.
    pub labels: String,
    /// The names: a JSON array.
    pub names: String,
    pub count: u64,
    /// What a histogram observed, in milliseconds; else 0.
    pub sum: u64,
}

/// What the lanes of one tenant reported with their flushes.
#[derive(Debug, Clone, Deserialize)]
pub struct LaneRow {
    pub tenant: String,
    pub lanes: u64,
    pub journal_rows: u64,
    pub journal_rows_max: u64,
    /// This field and the next two are `None` if no lane reported lately.
    pub journal_age_ms: Option<u64>,
    pub epochs_behind: Option<u64>,
    pub alarm_overdue_ms: Option<u64>,
    pub approvals_open: u64,
    pub reservations_open: u64,
    /// Of the lanes whose last flush left rows: the time of the oldest of these flushes.
    pub silent_since_ms: Option<u64>,
    pub last_report_ms: u64,
}

/// What D1 has for one answer.
#[derive(Debug, Clone, Default)]
pub struct Scrape {
    /// One more than [`MAX_RENDERED_SERIES`], if there are so many.
    pub counters: Vec<CounterRow>,
    /// One more than [`MAX_RENDERED_TENANTS`], if there are so many.
    pub lanes: Vec<LaneRow>,
}

/// Names of labels with their values.
type Labels = Vec<(&'static str, String)>;

/// The series of one histogram while its buckets are collected.
#[derive(Default)]
struct Observed {
    /// By upper bound; the last bucket has none.
    buckets: BTreeMap<u64, u64>,
    count: u64,
    sum_ms: u64,
}

impl Scrape {
    /// The answer's text.
    ///
    /// # Errors
    ///
    /// A sentence for the log.
    pub fn render(&self, now_ms: u64) -> Result<String, String> {
        let mut samples: BTreeMap<Metric, Vec<Sample>> = BTreeMap::new();
        let mut histograms: BTreeMap<(Metric, Labels), Observed> = BTreeMap::new();
        for row in self.counters.iter().take(MAX_RENDERED_SERIES) {
            // A newer version may have written it.
            let Some(metric) = Metric::find(&row.metric) else { continue };
            let definition = metric.definition();
            let (labels, bucket) = row.labels(&definition)?;
            if let Kind::Histogram(_) = definition.kind {
                let observed = histograms.entry((metric, labels)).or_default();
                observed.count = observed.count.saturating_add(row.count);
                observed.sum_ms = observed.sum_ms.saturating_add(row.sum);
                if let Some(bound_ms) = bucket {
                    *observed.buckets.entry(bound_ms).or_default() += row.count;
                }
            } else {
                let mut counter = Counter::default();
                counter.set_value(row.count as f64);
                let mut sample = sample(labels);
                sample.set_counter(counter);
                samples.entry(metric).or_default().push(sample);
            }
        }
        for ((metric, labels), observed) in histograms {
            let mut sample = sample(labels);
            sample.set_histogram(observed.histogram(metric));
            samples.entry(metric).or_default().push(sample);
        }
        for row in self.lanes.iter().take(MAX_RENDERED_TENANTS) {
            for (metric, value) in row.gauges(now_ms) {
                let labels = vec![("tenant", row.tenant.clone())];
                samples.entry(metric).or_default().push(gauge(labels, value));
            }
        }
        let truncated =
            self.counters.len() > MAX_RENDERED_SERIES || self.lanes.len() > MAX_RENDERED_TENANTS;
        let truncated = f64::from(truncated);
        samples.entry(Metric::Truncated).or_default().push(gauge(Vec::new(), truncated));
        let families: Vec<MetricFamily> = samples.into_iter().map(family).collect();
        let mut text = String::new();
        TextEncoder::new().encode_utf8(&families, &mut text).map_err(|error| error.to_string())?;
        Ok(text)
    }
}

impl CounterRow {
    /// The row's labels with their values, and the bucket's upper bound if it has one.
    fn labels(&self, definition: &Definition) -> Result<(Labels, Option<u64>), String> {
        let values = |text: &str| -> Result<Vec<Value>, String> {
            serde_json::from_str(text).map_err(|_| format!("a series of `{}`", self.metric))
        };
        let tenant = if self.tenant.is_empty() { NO_TENANT } else { &self.tenant };
        let (closed, names) = (values(&self.labels)?, values(&self.names)?);
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let mut labels = vec![("tenant", tenant.to_owned())];
        for (at, label) in definition.labels.iter().enumerate() {
            labels.push((label, text(closed.get(at)).unwrap_or_default()));
        }
        for (at, label) in definition.names.iter().enumerate() {
            // Series beyond the bound are stored with one name for all.
            labels.push((label, text(names.get(at)).unwrap_or_else(|| OTHER.to_owned())));
        }
        let bucket = closed.get(definition.labels.len()).and_then(Value::as_u64);
        Ok((labels, bucket))
    }
}

impl LaneRow {
    fn gauges(&self, now_ms: u64) -> impl Iterator<Item = (Metric, f64)> {
        let seconds = |ms: u64| ms as f64 / 1_000.0;
        let silence_ms = self.silent_since_ms.map_or(0, |at| now_ms.saturating_sub(at));
        [
            (Metric::Lanes, Some(self.lanes as f64)),
            (Metric::JournalRows, Some(self.journal_rows as f64)),
            (Metric::JournalRowsMax, Some(self.journal_rows_max as f64)),
            (Metric::JournalAge, self.journal_age_ms.map(seconds)),
            (Metric::EpochsBehind, self.epochs_behind.map(|epochs| epochs as f64)),
            (Metric::AlarmOverdue, self.alarm_overdue_ms.map(seconds)),
            (Metric::ApprovalsOpen, Some(self.approvals_open as f64)),
            (Metric::ReservationsOpen, Some(self.reservations_open as f64)),
            (Metric::LaneSilence, Some(seconds(silence_ms))),
            (Metric::LastReport, Some(seconds(self.last_report_ms))),
        ]
        .into_iter()
        .filter_map(|(metric, value)| Some((metric, value?)))
    }
}

impl Observed {
    fn histogram(&self, metric: Metric) -> Histogram {
        let bounds = match metric.definition().kind {
            Kind::Histogram(bounds) => bounds,
            Kind::Counter | Kind::Gauge => &[],
        };
        let mut cumulative = 0_u64;
        let buckets = bounds.iter().map(|bound_ms| {
            cumulative += self.buckets.get(bound_ms).copied().unwrap_or_default();
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(*bound_ms as f64 / 1_000.0);
            bucket.set_cumulative_count(cumulative);
            bucket
        });
        let mut histogram = Histogram::default();
        histogram.set_bucket(buckets.collect());
        histogram.set_sample_count(self.count);
        histogram.set_sample_sum(self.sum_ms as f64 / 1_000.0);
        histogram
    }
}

fn gauge(labels: Labels, value: f64) -> Sample {
    let mut gauge = Gauge::default();
    gauge.set_value(value);
    let mut sample = sample(labels);
    sample.set_gauge(gauge);
    sample
}

fn sample(labels: Labels) -> Sample {
    let pair = |(name, value): (&str, String)| {
        let mut pair = LabelPair::default();
        pair.set_name(name.to_owned());
        pair.set_value(value);
        pair
    };
    Sample::from_label(labels.into_iter().map(pair).collect())
}

fn family((metric, samples): (Metric, Vec<Sample>)) -> MetricFamily {
    let definition = metric.definition();
    let mut family = MetricFamily::default();
    family.set_name(definition.name.to_owned());
    family.set_help(definition.help.to_owned());
    family.set_field_type(match definition.kind {
        Kind::Counter => MetricType::COUNTER,
        Kind::Gauge => MetricType::GAUGE,
        Kind::Histogram(_) => MetricType::HISTOGRAM,
    });
    family.set_metric(samples);
    family
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(
        tenant: &str,
        metric: &str,
        labels: &str,
        names: &str,
        count: u64,
        sum: u64,
    ) -> CounterRow {
        CounterRow {
            tenant: tenant.to_owned(),
            metric: metric.to_owned(),
            labels: labels.to_owned(),
            names: names.to_owned(),
            count,
            sum,
        }
    }

    #[test]
    fn buckets_become_cumulative_and_names_beyond_the_bound_are_one() {
        let counters = vec![
            row("", "failed_authentications", r#"["unauthorized"]"#, "[]", 2, 0),
            row("demo", "decisions", r#"["allow","policy_allow"]"#, r#"["git","a\"b"]"#, 3, 0),
            row("demo", "decisions", r#"["deny","policy_forbid"]"#, r#"["_other"]"#, 1, 0),
            row("demo", "from_the_future", "[]", "[]", 1, 0),
            row("demo", "proxied_ms", r#"["answered",50]"#, r#"["crm"]"#, 2, 60),
            row("demo", "proxied_ms", r#"["answered",10]"#, r#"["crm"]"#, 1, 5),
            row("demo", "proxied_ms", r#"["answered",null]"#, r#"["crm"]"#, 1, 70_000),
        ];
        let lane = LaneRow {
            tenant: "demo".to_owned(),
            lanes: 2,
            journal_rows: 5,
            journal_rows_max: 4,
            journal_age_ms: Some(1_500),
            epochs_behind: None,
            alarm_overdue_ms: Some(0),
            approvals_open: 3,
            reservations_open: 1,
            silent_since_ms: Some(1_000),
            last_report_ms: 61_000,
        };
        let text = Scrape { counters, lanes: vec![lane] }.render(61_000).unwrap();
        let expected = r#"# HELP gateward_decisions_total Decisions that were written down.
# TYPE gateward_decisions_total counter
gateward_decisions_total{tenant="demo",decision="allow",reason="policy_allow",server="git",tool="a\"b"} 3
gateward_decisions_total{tenant="demo",decision="deny",reason="policy_forbid",server="_other",tool="_other"} 1
# HELP gateward_proxied_request_duration_seconds Forwarded calls: time until the server's answer ended.
# TYPE gateward_proxied_request_duration_seconds histogram
gateward_proxied_request_duration_seconds_bucket{tenant="demo",outcome="answered",server="crm",le="0.01"} 1
gateward_proxied_request_duration_seconds_bucket{tenant="demo",outcome="answered",server="crm",le="0.05"} 3
"#;
        assert!(text.starts_with(expected), "{text}");
        for line in [
            r#"gateward_proxied_request_duration_seconds_bucket{tenant="demo",outcome="answered",server="crm",le="+Inf"} 4"#,
            r#"gateward_proxied_request_duration_seconds_sum{tenant="demo",outcome="answered",server="crm"} 70.065"#,
            r#"gateward_failed_authentications_total{tenant="_none",reason="unauthorized"} 2"#,
            r#"gateward_journal_age_seconds{tenant="demo"} 1.5"#,
            r#"gateward_approvals_open{tenant="demo"} 3"#,
            r#"gateward_lane_silence_seconds{tenant="demo"} 60"#,
            "gateward_metrics_truncated 0",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
        assert!(!text.contains("epochs_behind") && !text.contains("from_the_future"));
    }

    #[test]
    fn an_answer_that_leaves_series_out_says_so() {
        let counters = (0..=MAX_RENDERED_SERIES)
            .map(|at| row("demo", "limits_hit", r#"["rate"]"#, &format!(r#"["l{at}"]"#), 1, 0))
            .collect();
        let text = Scrape { counters, lanes: Vec::new() }.render(0).unwrap();
        assert_eq!(text.matches("gateward_limits_hit_total{").count(), MAX_RENDERED_SERIES);
        assert!(text.contains("\ngateward_metrics_truncated 1\n"));
    }

    #[test]
    fn a_row_that_cannot_be_read_fails_the_answer() {
        let counters = vec![row("demo", "dead_letters", "[", "[]", 1, 0)];
        assert!(Scrape { counters, lanes: Vec::new() }.render(0).is_err());
    }
}
