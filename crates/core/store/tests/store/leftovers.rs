//! Goal: what a process that was killed left beside the database is removed. Method: files with the
//! names that such processes use.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use linerate_store::{Place, Store};

use crate::places;
use crate::records::run;

/// The number of a process that has ended.
fn ended() -> u32 {
    let mut child = Command::new("true").spawn().expect("started");
    child.wait().expect("ended");
    child.id()
}

fn file(directory: &Path, name: &str) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, "half").expect("written");
    path
}

#[test]
fn new_database_of_a_process_that_ended_is_removed_and_nothing_else() {
    if places::is_server() {
        return;
    }

    let directory = tempfile::tempdir().expect("a directory");
    let in_directory = |name: &str| file(directory.path(), name);
    let (ended, alive) = (ended(), std::process::id());
    let of_ended = ["-0", "-12", "-0-journal", "-0-wal", "-0-shm"]
        .map(|end| format!("history.db.new{ended}{end}"));
    let stale = of_ended.map(|name| in_directory(&name));

    let kept = [
        format!("history.db.new{alive}-7"),
        format!("other.db.new{ended}-0"),
        format!("history.db.new{ended}"),
        format!("history.db.new{ended}-0-notes"),
        "history.db.new".to_owned(),
        "history.db.newer-0".to_owned(),
        "history.db.new0-0".to_owned(),
    ];
    let kept = kept.map(|name| in_directory(&name));
    let folder = directory.path().join(format!("history.db.new{ended}-7"));
    fs::create_dir(&folder).expect("a directory");
    Store::open(&Place::file(directory.path().join("history.db"))).expect("a store");

    for path in stale {
        assert!(!path.exists(), "{}", path.display());
    }

    for path in kept.iter().chain([&folder]) {
        assert!(path.exists(), "{}", path.display());
    }
}

#[test]
fn half_a_record_of_a_process_that_ended_is_removed_from_the_spool() {
    if places::is_server() {
        return;
    }

    let directory = tempfile::tempdir().expect("a directory");
    let place = Place::file(directory.path().join("history.db"));
    drop(Store::open(&place).expect("a new store"));
    fs::create_dir(place.spool()).expect("a spool");

    let record = run(1, 1).run_id;
    let stale = file(&place.spool(), &format!("{record}.json.new{}-0", ended()));
    let kept = file(
        &place.spool(),
        &format!("{record}.json.new{}-0", std::process::id()),
    );

    Store::open(&place).expect("a store");
    assert!(!stale.exists() && kept.exists());
}
