-- kind: numbers of store::Kind, never reused. key: identity of the resource, or parent key and
-- big-endian number of append-only ones. sort: bytes that order a list. body: JSON, layout `version`.
CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE resource (
  kind INTEGER NOT NULL,
  key BLOB NOT NULL,
  sort BLOB NOT NULL,
  active INTEGER NOT NULL,
  etag INTEGER NOT NULL,
  version INTEGER NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (kind, key)
) WITHOUT ROWID;
CREATE INDEX resource_by_sort ON resource (kind, sort, key);
CREATE INDEX resource_active ON resource (kind, key) WHERE active = 1;

-- What changed, by reference: a mutable resource is read as it is now.
CREATE TABLE event (
  seq INTEGER PRIMARY KEY,
  time_us INTEGER NOT NULL,
  actor TEXT NOT NULL,
  command_id BLOB NOT NULL,
  kind INTEGER NOT NULL,
  key BLOB NOT NULL,
  deleted INTEGER NOT NULL
);

CREATE TABLE request (
  actor TEXT NOT NULL,
  request_id TEXT NOT NULL,
  time_us INTEGER NOT NULL,
  response BLOB NOT NULL,
  PRIMARY KEY (actor, request_id)
) WITHOUT ROWID;
CREATE INDEX request_by_time ON request (time_us);
