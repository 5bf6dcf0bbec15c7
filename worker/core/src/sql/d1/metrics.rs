//! Metrics: counting them, and reading them.

/// Makes rows for the series with names that a tenant's metrics have room for. [`COUNT_ROWS`] and [`COUNT_TOTALS`] count
/// the others under one name. Tenant, a JSON array of series.
///
/// A name is new if no series of the metric has it yet. There is no room for it if the metric already has as many names as
/// it can have, and none for any series if the metric has as many series as it can have ([`crate::metrics::BOUNDS`]).
///
/// A series that D1 has is found by its key. Only if a metric has a new series, all series of this metric are read, once.
/// Preparing this statement takes longer than counting a batch, so it is sent only for series that a lane did not send before.
pub const ADD_SERIES: &str = "WITH asked AS (SELECT DISTINCT value->>0 AS metric, value->1 AS labels, \
         value->2 AS names FROM json_each(?2)), \
     missing AS MATERIALIZED (SELECT * FROM asked WHERE NOT EXISTS (SELECT 1 FROM metric_counters AS c \
         WHERE c.tenant = ?1 AND c.metric = asked.metric AND c.labels = asked.labels AND c.names = asked.names)), \
     bounds (metric, names_max, series_max) AS (VALUES ('decisions', 300, 1000), \
       ('credential_decisions', 200, 1000), ('limits_hit', 300, 500), ('proxied_ms', 50, 1500)), \
     held AS MATERIALIZED (SELECT metric, names, count(*) AS series FROM metric_counters \
       WHERE tenant = ?1 AND metric IN (SELECT metric FROM missing) \
         AND names <> json_array('_other') GROUP BY metric, names), \
     room AS (SELECT b.metric, names_max - count(h.names) AS names_left, \
         series_max - coalesce(sum(h.series), 0) AS series_left \
       FROM bounds AS b LEFT JOIN held AS h ON h.metric = b.metric GROUP BY b.metric), \
     placed AS (SELECT m.*, h.names IS NULL AS has_new_names, \
         dense_rank() OVER (PARTITION BY m.metric, h.names IS NULL ORDER BY m.names) AS names_place, \
         row_number() OVER (PARTITION BY m.metric ORDER BY h.names IS NULL, m.names, m.labels) AS series_place \
       FROM missing AS m LEFT JOIN held AS h ON h.metric = m.metric AND h.names = m.names) \
     INSERT INTO metric_counters (tenant, metric, labels, names, count) \
     SELECT ?1, metric, labels, names, 0 FROM placed JOIN room USING (metric) \
     WHERE series_place <= series_left AND (NOT has_new_names OR names_place <= names_left)";

/// Adds a batch's rows to metrics. It comes before [`FLUSHED_THROUGH`](super::FLUSHED_THROUGH) of the same transaction:
/// rows up to the number there were added before. Tenant, lane, three JSON arrays with an entry for each series ([`crate::metrics::BatchMetrics`]):
/// the series, how many rows it has, their sequence numbers; the first row's sequence number; the receipt before the rows
/// or null: if D1 lacks it, the rows are not counted yet, because [`FLUSH_ROWS`](super::FLUSH_ROWS) writes nothing.
///
/// Only if D1 has some of the rows, their sequence numbers are read.
pub const COUNT_ROWS: &str = "INSERT INTO metric_counters (tenant, metric, labels, names, count, sum) \
     SELECT ?1, metric, labels, iif(names = '[]' OR EXISTS (SELECT 1 FROM metric_counters AS c \
         WHERE c.tenant = ?1 AND c.metric = added.metric AND c.labels = added.labels AND c.names = added.names), \
       names, json_array('_other')), more, coalesce(observed, 0) * more \
     FROM (SELECT entry.value->>0 AS metric, entry.value->1 AS labels, entry.value->2 AS names, \
         entry.value->>3 AS observed, iif(f.seq IS NULL OR f.seq < ?6, ?4->>entry.key, \
           (SELECT count(*) FROM json_each(?5->entry.key) AS row WHERE row.value > f.seq)) AS more \
       FROM json_each(?3) AS entry LEFT JOIN lane_flushes AS f ON f.tenant = ?1 AND f.lane = ?2) AS added \
     WHERE more > 0 AND (?7 IS NULL OR EXISTS (SELECT 1 FROM receipts \
       WHERE tenant = ?1 AND lane = ?2 AND seq = ?7)) \
     ON CONFLICT (tenant, metric, labels, names) DO UPDATE \
       SET count = count + excluded.count, sum = sum + excluded.sum, counted_day = excluded.counted_day";

/// Adds to metrics by how much a lane's totals are higher than those in its report. It comes before
/// [`FLUSHED_THROUGH`](super::FLUSHED_THROUGH) of the same transaction, which replaces the report. Tenant, lane, a JSON object of totals by series.
pub const COUNT_TOTALS: &str = "INSERT INTO metric_counters (tenant, metric, labels, names, count) \
     SELECT ?1, metric, labels, iif(names = '[]' OR EXISTS (SELECT 1 FROM metric_counters AS c \
         WHERE c.tenant = ?1 AND c.metric = added.metric AND c.labels = added.labels AND c.names = added.names), \
       names, json_array('_other')), more \
     FROM (SELECT total.key->>0 AS metric, total.key->1 AS labels, total.key->2 AS names, \
         total.value - coalesce(known.value, 0) AS more \
       FROM json_each(?3) AS total LEFT JOIN \
         (SELECT key, value FROM json_each((SELECT report FROM lane_flushes \
            WHERE tenant = ?1 AND lane = ?2), '$.totals')) AS known ON known.key = total.key) AS added \
     WHERE more > 0 \
     ON CONFLICT (tenant, metric, labels, names) DO UPDATE \
       SET count = count + excluded.count, counted_day = excluded.counted_day";

/// Adds to a metric without names that no lane counts. Tenant, or '' if it belongs to none; the series as JSON, how many
/// more.
pub const COUNT_METRIC: &str = "INSERT INTO metric_counters (tenant, metric, labels, names, count) \
     VALUES (?1, ?2->>0, ?2->1, ?2->2, ?3) \
     ON CONFLICT (tenant, metric, labels, names) DO UPDATE SET count = count + excluded.count";

/// The counters of one answer. Tenant, limit.
pub const METRICS: &str = "SELECT tenant, metric, labels, names, count, sum FROM metric_counters \
     WHERE tenant = ?1 LIMIT ?2";

/// The same of all tenants. If D1 has more series than the limit, the first series of each tenant come before the second of
/// any, so no tenant takes the place of others. Limit.
///
/// To order all series by their place in their tenant would read all of them. So each tenant gets an equal share of four
/// times the limit. Then the table's first series beyond the shares are added, so fewer rows than the limit are returned
/// only if D1 has no more.
pub const METRICS_OF_ALL: &str = "WITH RECURSIVE held (tenant) AS (SELECT min(tenant) FROM metric_counters \
       UNION ALL SELECT (SELECT min(c.tenant) FROM metric_counters AS c WHERE c.tenant > held.tenant) \
         FROM held WHERE tenant IS NOT NULL LIMIT ?1), \
     share (series) AS (SELECT CAST(4 * ?1 AS INTEGER) / count(*) FROM held), \
     placed AS (SELECT held.tenant, value->>0 AS metric, value->>1 AS labels, value->>2 AS names, \
         value->>3 AS count, value->>4 AS sum, key + 1 AS place \
       FROM held, json_each((SELECT json_group_array(json_array(metric, labels, names, count, sum)) \
         FROM (SELECT metric, labels, names, count, sum FROM metric_counters AS c WHERE c.tenant = held.tenant \
           ORDER BY metric, labels, names LIMIT (SELECT series FROM share)))) \
       UNION ALL SELECT * FROM (SELECT tenant, metric, labels, names, count, sum, \
           row_number() OVER (PARTITION BY tenant ORDER BY metric, labels, names) AS place \
         FROM (SELECT tenant, metric, labels, names, count, sum FROM metric_counters \
           ORDER BY tenant, metric, labels, names LIMIT ?1)) \
         WHERE place > (SELECT series FROM share)) \
     SELECT tenant, metric, labels, names, count, sum FROM placed ORDER BY place, tenant LIMIT ?1";

/// What a tenant's lanes reported, added up. What a lane said about its lag counts only if it is newer than a time,
/// because a lane without work reports nothing. A lane with rows is silent since its last flush, or since the oldest row of
/// its report if that is later.
macro_rules! lane_reports {
    ($which:literal, $since:literal) => {
        concat!(
            "SELECT tenant, count(*) AS lanes, sum(coalesce(report->>'journal_rows', 0)) AS journal_rows, \
               max(coalesce(report->>'journal_rows', 0)) AS journal_rows_max, \
               max(iif(reported_at_ms > ", $since, ", report->>'journal_age_ms', NULL)) AS journal_age_ms, \
               max(iif(reported_at_ms > ", $since, ", report->>'epochs_behind', NULL)) AS epochs_behind, \
               max(iif(reported_at_ms > ", $since, ", report->>'alarm_overdue_ms', NULL)) AS alarm_overdue_ms, \
               sum(coalesce(report->>'approvals_open', 0)) AS approvals_open, \
               sum(coalesce(report->>'reservations_open', 0)) AS reservations_open, \
               min(iif(report->>'journal_rows' > 0, \
                 max(flushed_at_ms, reported_at_ms - (report->>'journal_age_ms')), NULL)) AS silent_since_ms, \
               max(flushed_at_ms) AS last_report_ms \
             FROM (SELECT *, coalesce(report->>'at_ms', flushed_at_ms) AS reported_at_ms FROM lane_flushes ",
            $which,
            ") GROUP BY tenant"
        )
    };
}

/// The reports of one tenant. Tenant, a time.
pub const LANE_REPORTS: &str = lane_reports!("WHERE tenant = ?1", "?2");

/// The same of all tenants. A time, limit of tenants.
pub const LANE_REPORTS_OF_ALL: &str = concat!(lane_reports!("", "?1"), " LIMIT ?2");
