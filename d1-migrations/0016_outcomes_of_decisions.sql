-- An index to find the outcome of a decision's call. It costs one more write for each outcome, and none
-- for other receipts.
CREATE INDEX receipts_of_outcomes ON receipts (tenant, decision_id) WHERE kind = 'outcome';
