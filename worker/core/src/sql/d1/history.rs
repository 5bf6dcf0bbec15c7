//! Reading decisions, receipts and approvals.

/// Tenant, decision id.
pub const DECISION: &str = "SELECT decision_id, lane, seq, at_ms, agent, server, tool, decision, \
       reason_code, response FROM decisions WHERE tenant = ?1 AND decision_id = ?2";

/// Newest first. Tenant, from and before (decision ids between which to look, since they
/// sort by time), limit.
pub const DECISIONS: &str = "SELECT decision_id, lane, seq, at_ms, agent, server, tool, \
       decision, reason_code, response FROM decisions \
     WHERE tenant = ?1 AND decision_id >= ?2 AND decision_id < ?3 \
     ORDER BY decision_id DESC LIMIT ?4";

/// The same of one agent, whose name follows. Without the index hint, the planner would scan the
/// whole tenant by its primary key.
pub const DECISIONS_OF_AGENT: &str = "SELECT decision_id, lane, seq, at_ms, agent, server, \
       tool, decision, reason_code, response FROM decisions INDEXED BY decisions_by_agent \
     WHERE tenant = ?1 AND decision_id >= ?2 AND decision_id < ?3 AND agent = ?5 \
     ORDER BY decision_id DESC LIMIT ?4";

/// The same of one outcome, which follows.
pub const DECISIONS_OF_OUTCOME: &str = "SELECT decision_id, lane, seq, at_ms, agent, server, \
       tool, decision, reason_code, response FROM decisions INDEXED BY decisions_by_outcome \
     WHERE tenant = ?1 AND decision_id >= ?2 AND decision_id < ?3 AND decision = ?5 \
     ORDER BY decision_id DESC LIMIT ?4";

/// The same of one agent and outcome, which follow.
pub const DECISIONS_OF_AGENT_AND_OUTCOME: &str = "SELECT decision_id, lane, seq, at_ms, agent, \
       server, tool, decision, reason_code, response \
     FROM decisions INDEXED BY decisions_by_agent \
     WHERE tenant = ?1 AND decision_id >= ?2 AND decision_id < ?3 AND agent = ?5 \
       AND decision = ?6 ORDER BY decision_id DESC LIMIT ?4";

/// Tenant.
pub const FLUSHES: &str =
    "SELECT lane, seq, flushed_at_ms FROM lane_flushes WHERE tenant = ?1 ORDER BY lane";

/// Tenant, lane, first sequence number, limit.
pub const RECEIPTS: &str = "SELECT seq, receipt_hash, prev_receipt_hash, body FROM receipts \
     WHERE tenant = ?1 AND lane = ?2 AND seq >= ?3 ORDER BY seq LIMIT ?4";

/// The receipt of the outcome of a decision's call. Tenant, decision id.
pub const OUTCOME: &str = "SELECT body FROM receipts INDEXED BY receipts_of_outcomes \
     WHERE tenant = ?1 AND decision_id = ?2 AND kind = 'outcome' LIMIT 1";

/// Tenant, approval id.
pub const APPROVAL: &str = "SELECT record FROM approvals WHERE tenant = ?1 AND approval_id = ?2";

/// A page of approvals by an index. The rest of the filter is tested on the rows that the index
/// finds.
macro_rules! approvals {
    ($index:literal, $found:literal) => {
        concat!(
            "SELECT record FROM approvals a INDEXED BY ",
            $index,
            " WHERE tenant = ?1 AND (created_at_ms, approval_id) < (?2, ?3) AND ",
            $found,
            " AND coalesce(agent = ?5, true) AND coalesce(status = ?6, true) \
              AND coalesce(expires_at_ms > ?8, true) \
              AND (?7 IS NULL OR EXISTS (SELECT 1 FROM approval_groups g \
                WHERE g.tenant = ?1 AND g.group_name = ?7 \
                  AND g.created_at_ms = a.created_at_ms AND g.approval_id = a.approval_id)) \
              ORDER BY created_at_ms DESC, approval_id DESC LIMIT ?4"
        )
    };
}

/// Newest first. Tenant, time and id before which to look, limit, then agent, status, group and
/// a time after which they end, each of them or null.
pub const APPROVALS: &str = approvals!("approvals_by_time", "true");

/// The same of one status: few are open.
pub const APPROVALS_OF_STATUS: &str = approvals!("approvals_by_status", "status = ?6");

/// The same of one agent.
pub const APPROVALS_OF_AGENT: &str = approvals!("approvals_by_agent", "agent = ?5");

/// The same of one agent and status.
pub const APPROVALS_OF_AGENT_AND_STATUS: &str =
    approvals!("approvals_by_agent_and_status", "agent = ?5 AND status = ?6");

/// The same of one group.
pub const APPROVALS_OF_GROUP: &str = "SELECT a.record FROM approval_groups g \
     JOIN approvals a ON a.tenant = g.tenant AND a.approval_id = g.approval_id \
     WHERE g.tenant = ?1 AND (g.created_at_ms, g.approval_id) < (?2, ?3) \
       AND g.group_name = ?7 AND coalesce(a.agent = ?5, true) AND coalesce(a.status = ?6, true) \
       AND coalesce(a.expires_at_ms > ?8, true) \
     ORDER BY g.created_at_ms DESC, g.approval_id DESC LIMIT ?4";

/// Tenant.
pub const WEBHOOK: &str = "SELECT w.url, w.salt FROM webhooks w JOIN tenants t USING (tenant) \
     WHERE w.tenant = ?1 AND t.status <> 'deleted'";
