//! Files that are no store or no whole one: nothing is overwritten, and what can be read is.

use std::fs;
use std::path::Path;

use linerate_model::record::RunState;
use linerate_store::upkeep::{Keep, Pruned, repair};
use linerate_store::{Filter, Place, Recorded, Recorder, Store, StoreError, parse_label};
use rusqlite::Connection;

use crate::places::place;
use crate::records::{begun, run};

/// A closed store of this number of runs, in one file.
fn filled(place: &Place, runs: u64) {
    let store = Store::open(place).expect("a new store");
    for number in 0..runs {
        store.save(&run(number, 2)).expect("saved");
    }
}

fn record(place: &Place, number: u64) -> Recorded {
    let recorder = Recorder::new(place.clone());
    recorder.begin(begun(&run(number, 1)));
    recorder.finish(run(number, 1));
    recorder.close()
}

#[test]
fn what_is_no_store_is_refused_untouched_and_its_record_waits_in_the_spool() {
    type Make = fn(&Path);

    let rows: [(&str, Make); 4] = [
        ("not a SQLite database", |path| {
            fs::write(path, "garbage".repeat(100)).expect("written");
        }),
        ("not a SQLite database", |path| {
            fs::write(path, "SQLite format 3\0").expect("written");
        }),
        ("another program", |path| {
            Connection::open(path)
                .and_then(|db| db.execute_batch("CREATE TABLE t (a)"))
                .expect("made");
        }),
        ("schema 99", |path| {
            filled(&Place::file(path), 1);
            Connection::open(path)
                .and_then(|db| db.pragma_update(None, "user_version", 99))
                .expect("changed");
        }),
    ];
    for (reason, make) in rows {
        let place = place();
        make(place.path());
        let before = fs::read(place.path()).expect("read");

        for refused in [Store::open(&place), Store::open_existing(&place)] {
            let text = refused.expect_err(reason).to_string();
            assert!(text.contains(reason), "{text}");
        }

        assert!(repair(&place).is_err(), "{reason}");
        let recorded = record(&place, 5);
        assert_eq!(
            (recorded.stored, recorded.spooled, recorded.lost),
            (0, 1, 0),
            "{reason}"
        );
        assert!(
            recorded.message().expect("a message").contains(reason),
            "{recorded:?}"
        );
        assert_eq!(fs::read(place.path()).expect("read"), before, "{reason}");
        fs::remove_file(place.path()).expect("removed");
        assert_eq!(record(&place, 6).stored, 1);

        let store = Store::open_existing(&place).expect("a store");
        assert_eq!(store.load(run(5, 1).run_id).expect("taken in"), run(5, 1));
        assert!(!place.spool().exists());
    }
}

#[test]
fn directories_and_devices_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    for path in [directory.path(), Path::new("/dev/null")] {
        let error = Store::open(&Place::file(path)).expect_err("refused");
        assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    }

    assert!(matches!(
        Store::open_existing(&Place::file("/no/such")),
        Err(StoreError::Missing(_))
    ));
}

#[test]
fn a_record_without_store_and_spool_is_lost_with_its_reason() {
    let recorded = record(&Place::file("/proc/no/such/history.db"), 1);
    assert_eq!(
        (recorded.stored, recorded.spooled, recorded.lost),
        (0, 0, 1)
    );
    assert!(
        recorded
            .message()
            .expect("a message")
            .contains("/proc/no/such"),
        "{recorded:?}"
    );
}

#[test]
fn a_record_waits_in_the_spool_while_another_process_locks_the_store() {
    let place = place();
    filled(&place, 1);
    let other = Connection::open(place.path()).expect("a database");
    other.execute_batch("BEGIN IMMEDIATE").expect("locked");

    let recorder = Recorder::new(place.clone());
    recorder.finish(run(5, 1));
    recorder.finish(run(6, 1));

    let recorded = recorder.close();
    assert_eq!(
        (recorded.stored, recorded.spooled, recorded.lost),
        (0, 2, 0),
        "{recorded:?}"
    );
    other.execute_batch("COMMIT").expect("unlocked");
    assert_eq!(
        Store::open(&place)
            .expect("open")
            .list(&Filter::default())
            .expect("a list")
            .len(),
        3
    );
}

#[test]
fn a_series_with_a_wrong_checksum_is_absent_and_the_rest_is_shown() {
    let place = place();
    filled(&place, 2);
    let database = Connection::open(place.path()).expect("a database");
    let statement =
        "UPDATE series SET blob = zeroblob(20) WHERE run = 1 AND trial = 1 AND position = 0";
    assert_eq!(database.execute(statement, []).expect("changed"), 1);

    let store = Store::open(&place).expect("open");
    let loaded = store.load(run(0, 2).run_id).expect("loaded");
    assert_eq!(loaded.trials[1].series, run(0, 2).trials[1].series[2..]);
    assert!(
        loaded.notes[1].contains("trial 1: series bytes"),
        "{:?}",
        loaded.notes
    );

    let check = store.check().expect("checked");
    assert_eq!((check.runs, check.problems.len()), (2, 1), "{check:?}");
    assert!(
        check.problems[0].contains(&run(0, 0).run_id.to_string())
            && check.problems[0].contains("checksum")
    );
}

#[test]
fn a_repair_of_a_database_cut_anywhere_saves_every_run_that_can_be_read() {
    let place_of_whole = place();
    filled(&place_of_whole, 150);
    let bytes = fs::read(place_of_whole.path()).expect("one file");
    let mut saved_at_all = 0;

    for part in 1..=20 {
        let place = place();
        let cut = &bytes[..bytes.len() * part / 21];
        fs::write(place.path(), cut).expect("written");

        let Ok(repaired) = repair(&place) else {
            assert!(part < 4, "cut at {part} of 21");
            continue;
        };
        assert_eq!(fs::read(&repaired.set_aside).expect("kept"), cut);
        let store = Store::open_existing(&place).expect("repaired");
        assert_eq!(
            store.check().expect("checked").problems,
            [""; 0],
            "cut at {part} of 21"
        );

        let runs = store.list(&Filter::default()).expect("a list");
        assert_eq!(runs.len(), repaired.runs);
        assert!(
            runs.len() == 150 || !repaired.missing.is_empty(),
            "cut at {part} of 21"
        );
        saved_at_all += runs.len();
    }

    assert!(saved_at_all > 600, "{saved_at_all} of 3000");
}

#[test]
fn a_repair_keeps_labels_notes_and_baselines() {
    let place = place();
    filled(&place, 3);
    let id = run(1, 0).run_id;
    let store = Store::open(&place).expect("open");
    store
        .label(id, &[parse_label("rack=7").expect("a label")], &[])
        .expect("labelled");
    store.add_note(id, "new cable").expect("noted");
    store.set_baseline("good", id).expect("set");

    let before = store.load(id).expect("loaded");
    drop(store);
    let repaired = repair(&place).expect("repaired");
    assert_eq!((repaired.runs, repaired.missing), (3, Vec::new()));

    let store = Store::open(&place).expect("open");
    assert_eq!(store.load(id).expect("loaded"), before);
    assert_eq!(store.notes(id).expect("notes")[0].text, "new cable");
    assert_eq!(store.resolve("@good").expect("a baseline"), [id]);
}

#[test]
fn prune_removes_what_is_old_but_baselines_kept_runs_and_running_ones() {
    let place = place();
    filled(&place, 5);
    let store = Store::open(&place).expect("open");
    let id = |number| run(number, 0).run_id;
    store.set_baseline("good", id(0)).expect("set");
    store
        .label(id(1), &[parse_label("keep=yes").expect("a label")], &[])
        .expect("labelled");
    store.begin(&begun(&run(7, 0))).expect("begun");

    let keep: Keep = "points=1d,runs=2d".parse().expect("ages");
    let after = |days: u64| run(2, 0).started_unix_ms + days * 86_400_000 + 1;
    let prune = |days, dry_run| store.prune(&keep, after(days), dry_run).expect("pruned");
    let whole = Pruned::default();
    assert_eq!(prune(0, false), whole);

    let expected = Pruned {
        without_points: 1,
        runs: 0,
    };
    assert_eq!(
        (prune(1, true), prune(1, false), prune(1, false)),
        (expected, expected, whole)
    );
    let loaded = store.load(id(2)).expect("its measures stay");
    assert!(
        loaded
            .trials
            .iter()
            .all(|trial| trial.series.is_empty() && trial.measures.len() == 2)
    );
    assert_eq!(
        prune(30, false),
        Pruned {
            without_points: 0,
            runs: 3
        }
    );

    let left: Vec<_> = store
        .list(&Filter::default())
        .expect("a list")
        .iter()
        .map(|row| (row.run_id, row.state))
        .collect();
    assert_eq!(
        left,
        [
            (id(7), RunState::Running),
            (id(1), RunState::Complete),
            (id(0), RunState::Complete)
        ]
    );
    assert_eq!(store.load(id(0)).expect("a baseline"), run(0, 2));

    for wrong in ["points", "points=5", "points=d", "trials=5d", ""] {
        assert!(wrong.parse::<Keep>().is_err(), "{wrong}");
    }
}
