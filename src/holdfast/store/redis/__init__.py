"""The warm tier on Redis or Valkey: derived from the database, may be lost at any moment, may refuse but never grant."""
