CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;

-- What lists show. The state is authoritative: a crash changes it without a new document.
CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    title TEXT,
    started_ms INTEGER NOT NULL,
    elapsed_ns INTEGER NOT NULL,
    tool TEXT NOT NULL,
    version TEXT,
    path_key TEXT NOT NULL,
    spec_key TEXT NOT NULL,
    client TEXT,
    server TEXT,
    watch TEXT,
    source_key TEXT UNIQUE,
    severity INTEGER,
    trials INTEGER NOT NULL,
    primary_measure TEXT,
    primary_value REAL,
    owner TEXT
) STRICT;
CREATE INDEX run_started ON run (started_ms);
CREATE INDEX run_path ON run (path_key, spec_key, started_ms);
CREATE INDEX run_state ON run (state, started_ms);
CREATE INDEX run_kind ON run (kind, started_ms);
CREATE INDEX run_client ON run (client, started_ms);
CREATE INDEX run_server ON run (server, started_ms);
CREATE INDEX run_watch ON run (watch, started_ms) WHERE watch IS NOT NULL;
CREATE INDEX run_value ON run (primary_value) WHERE primary_value IS NOT NULL;

-- The record as JSON without trials, labels and facts. Apart, so that lists read narrow rows.
CREATE TABLE document (
    run INTEGER PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
    size INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    blob BLOB NOT NULL
) STRICT;

CREATE TABLE trial (
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    no INTEGER NOT NULL,
    repeat INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    is_warm_up INTEGER NOT NULL,
    factors TEXT NOT NULL,
    flags TEXT NOT NULL,
    started_ns INTEGER NOT NULL,
    elapsed_ns INTEGER NOT NULL,
    size INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    detail BLOB NOT NULL,
    PRIMARY KEY (run, no)
) STRICT, WITHOUT ROWID;

CREATE TABLE measure (
    run INTEGER NOT NULL,
    trial INTEGER NOT NULL,
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    way TEXT NOT NULL,
    value REAL NOT NULL,
    n INTEGER,
    is_lower_bound INTEGER NOT NULL,
    PRIMARY KEY (run, trial, position),
    FOREIGN KEY (run, trial) REFERENCES trial (run, no) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Neighbouring series of one stream share a row and their times: `names` separates them by commas.
CREATE TABLE series (
    run INTEGER NOT NULL,
    trial INTEGER NOT NULL,
    position INTEGER NOT NULL,
    names TEXT NOT NULL,
    of TEXT NOT NULL,
    way TEXT NOT NULL,
    is_thinned INTEGER NOT NULL,
    n INTEGER NOT NULL,
    t0_ns INTEGER NOT NULL,
    step_ns INTEGER,
    size INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    blob BLOB NOT NULL,
    PRIMARY KEY (run, trial, position),
    FOREIGN KEY (run, trial) REFERENCES trial (run, no) ON DELETE CASCADE
) STRICT;

-- Facts of hosts by their content, because they repeat from run to run.
CREATE TABLE facts (
    key TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    blob BLOB NOT NULL
) STRICT;
CREATE TABLE host (
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    role TEXT NOT NULL,
    name TEXT NOT NULL,
    area TEXT NOT NULL,
    facts_key TEXT NOT NULL REFERENCES facts (key),
    PRIMARY KEY (run, position, area)
) STRICT, WITHOUT ROWID;
CREATE INDEX host_facts ON host (facts_key);

CREATE TABLE label (
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX label_value ON label (key, value);
CREATE TABLE note (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    written_ms INTEGER NOT NULL,
    text TEXT NOT NULL
) STRICT;
CREATE INDEX note_run ON note (run);
CREATE TABLE baseline (
    name TEXT PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE
) STRICT;
CREATE INDEX baseline_run ON baseline (run);

CREATE VIEW v_run AS
    SELECT run_id, kind, state, title, started_ms, elapsed_ns / 1e9 AS elapsed_s, client, server, trials,
        primary_measure, primary_value FROM run;
CREATE VIEW v_measure AS
    SELECT run_id, started_ms, trial, name, way, value FROM measure JOIN run ON run.id = measure.run;
