-- Numbers of run and source stay inside this file. data: store/telemetry_codec.h.
CREATE TABLE run (
  id INTEGER PRIMARY KEY,
  run_id BLOB NOT NULL UNIQUE
);

CREATE TABLE source (
  id INTEGER PRIMARY KEY,
  board_uid BLOB NOT NULL,
  boot_id INTEGER NOT NULL,
  UNIQUE (board_uid, boot_id)
);

CREATE TABLE frame (
  run INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  step INTEGER NOT NULL,
  source INTEGER NOT NULL,
  time_us INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (run, attempt, step)
) WITHOUT ROWID;
