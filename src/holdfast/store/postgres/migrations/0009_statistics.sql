-- Right after publication PostgreSQL knows nothing of the event's seats, and plans badly until its own housekeeping comes
-- by: the application may have them counted at once.
GRANT MAINTAIN ON event_seats TO holdfast_app;
