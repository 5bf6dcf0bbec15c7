-- Finds what became of a decision's call. One row more is written for each outcome, and none for other
-- receipts.
CREATE INDEX receipts_of_outcomes ON receipts (tenant, decision_id) WHERE kind = 'outcome';
