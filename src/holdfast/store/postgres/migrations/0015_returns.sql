-- Sales that are taken back.

-- How many tickets of a counted zone are valid: so many of its sold places are not to be taken back without them.
CREATE INDEX tickets_of_zone ON tickets (organization_id, event_id, zone_no) WHERE status = 'valid' AND ordinal IS NULL;

-- A ticket is voided once, and its money is due back once.
CREATE UNIQUE INDEX refunds_one_per_ticket ON refunds (organization_id, ticket_id) WHERE ticket_id IS NOT NULL;
