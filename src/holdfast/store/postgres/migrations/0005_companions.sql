-- Whose a sold wheelchair seat is: by the hold that was converted, or by the direct sale's line in the log. Both are asked
-- only when somebody wants its companion's seat.
CREATE INDEX holds_converted ON holds (organization_id, event_id, ordinal) WHERE status = 'converted';
CREATE INDEX seat_state_events_direct_sales ON seat_state_events (organization_id, event_id, ordinal)
  WHERE verb = 'direct_sale';
