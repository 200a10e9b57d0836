-- Who will sit on what is held, where the buyer named somebody. Null in all three: the buyer's own place.
--
-- None of it is indexed or written by the batching writer: a hold without attendees costs what it cost.
ALTER TABLE holds
  ADD COLUMN attendee_user_id         uuid,
  ADD COLUMN attendee_name            text,   -- the name, or the address, that the buyer gave
  ADD COLUMN associated_membership_id uuid;   -- the attendee's membership when the hold was placed
