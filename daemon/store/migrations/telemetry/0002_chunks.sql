-- Records lie in closed chunks of one (run, attempt): a step in [first_step, last_step] is in that
-- chunk or nowhere. x256, x16: rollups (store/telemetry_series.h). raw: store/telemetry_points.h,
-- NULL once the run is thinned. recent: the log of those that no chunk has yet, a row a commit.
-- Rows of the old table move over when the store is opened (store/sqlite_telemetry.cpp).
CREATE TABLE chunk (
  run INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  first_step INTEGER NOT NULL,
  last_step INTEGER NOT NULL,
  data INTEGER NOT NULL,
  records INTEGER NOT NULL,
  raw_bytes INTEGER NOT NULL,
  rollup_bytes INTEGER NOT NULL,
  x256 BLOB NOT NULL,
  PRIMARY KEY (run, attempt, first_step)
) WITHOUT ROWID;

CREATE TABLE chunk_data (
  id INTEGER PRIMARY KEY,
  x16 BLOB NOT NULL,
  raw BLOB
);

CREATE TABLE recent (
  id INTEGER PRIMARY KEY,
  data BLOB NOT NULL
);

ALTER TABLE frame RENAME TO frame_v1;
