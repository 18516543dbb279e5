//! Runs are written, loaded, listed and named.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::places::{is_server, place, store};
use crate::records::{begun, run};
use linerate_model::measure::MeasureName;
use linerate_model::record::{Import, RunId, RunState};
use linerate_store::{
    Filter, Label, Place, Recorder, Saved, Sort, Store, StoreError, load_named, parse_label,
};

fn ids(store: &Store, filter: &Filter) -> Vec<RunId> {
    store
        .list(filter)
        .expect("a list")
        .iter()
        .map(|row| row.run_id)
        .collect()
}

#[test]
fn a_run_is_loaded_exactly_as_it_was_saved() {
    let (_directory, store) = store();
    for number in 0..3 {
        assert_eq!(store.save(&run(number, 2)).expect("saved"), Saved::New);
    }

    assert_eq!(store.load(run(1, 2).run_id).expect("loaded"), run(1, 2));
    let unknown = store.load(run(9, 0).run_id).expect_err("not saved");
    assert!(matches!(unknown, StoreError::Usage(_)), "{unknown}");
}

#[test]
fn trials_are_readable_during_a_run_and_its_end_adds_the_missing_ones() {
    let (_directory, store) = store();
    let whole = run(1, 3);
    store.begin(&begun(&whole)).expect("begun");
    store
        .add_trials(whole.run_id, &whole.trials[..1])
        .expect("added");

    let so_far = store.load(whole.run_id).expect("loaded");
    assert_eq!(
        (so_far.state, &so_far.trials[..]),
        (RunState::Running, &whole.trials[..1])
    );
    store.finish(&whole).expect("finished");
    assert_eq!(store.load(whole.run_id).expect("loaded"), whole);
    assert_eq!(store.list(&Filter::default()).expect("a list")[0].trials, 3);
}

#[test]
fn files_are_readable_by_their_user_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let store =
        Store::open(&Place::file(directory.path().join("state/history.db"))).expect("a new store");
    store.save(&run(1, 1)).expect("saved");

    let mode =
        |path: &std::path::Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    let path = store.place().path();
    assert_eq!(mode(path.parent().expect("a directory")), 0o700);

    for name in ["history.db", "history.db-wal", "history.db-shm"] {
        assert_eq!(mode(&path.with_file_name(name)), 0o600, "{name}");
    }
}

#[test]
fn lists_are_filtered_sorted_and_limited() {
    let (_directory, store) = store();
    for number in 0..10 {
        store.save(&run(number, 1)).expect("saved");
    }

    let mut failed = run(10, 0);
    (failed.state, failed.reason) = (RunState::Failed, Some("connection refused".to_owned()));
    store.save(&failed).expect("saved");

    let id = |number| run(number, 0).run_id;
    let all = Filter::default();
    let mut limited = all.clone();
    limited.limit = Some(2);
    assert_eq!(ids(&store, &limited), [id(10), id(9)]);

    for (sort, expected) in [
        (Sort::Oldest, [id(0), id(1)]),
        (Sort::Highest, [id(9), id(8)]),
        (Sort::Lowest, [id(0), id(1)]),
    ] {
        limited.sort = sort;
        assert_eq!(ids(&store, &limited), expected);
    }

    let mut failed = all.clone();
    failed.state = Some(RunState::Failed);
    assert_eq!(ids(&store, &failed), [id(10)]);

    let mut of_server = all.clone();
    of_server.server = Some("server2".to_owned());
    assert_eq!(ids(&store, &of_server), [id(9), id(2)]);

    let label = Label {
        key: "site".to_owned(),
        value: "s1".to_owned(),
    };
    let mut labelled = all.clone();
    labelled.labels = vec![label];
    assert_eq!(ids(&store, &labelled), [id(10), id(7), id(4), id(1)]);

    let mut since = all.clone();
    since.since_ms = Some(run(8, 0).started_unix_ms);
    assert_eq!(ids(&store, &since), [id(10), id(9), id(8)]);

    let mut before = all;
    before.before_ms = Some(run(8, 0).started_unix_ms);
    before.keys = Some(("path1".into(), "spec".into()));
    assert_eq!(ids(&store, &before), [id(1)]);

    let row = &store.list(&Filter::default()).expect("a list")[1];
    assert_eq!(row.primary, Some((MeasureName::ReceivedBps, 1e9 + 9.0)));
    assert_eq!(row.labels["site"], "s0");
}

#[test]
fn runs_are_named_by_id_end_position_baseline_and_label() {
    let (_directory, store) = store();
    for number in 0..4 {
        store.save(&run(number, 1)).expect("saved");
    }

    let id = |number| run(number, 0).run_id;
    store.set_baseline("good", id(1)).expect("set");
    store.begin(&begun(&run(4, 0))).expect("begun");

    let rows = [
        (id(2).to_string(), vec![id(2)]),
        (id(2).short(), vec![id(2)]),
        (id(2).short()[4..].to_uppercase(), vec![id(2)]),
        ("last".to_owned(), vec![id(3)]),
        ("last~2".to_owned(), vec![id(1)]),
        ("@good".to_owned(), vec![id(1)]),
        ("label:site=s0".to_owned(), vec![id(3), id(0)]),
    ];
    for (name, expected) in rows {
        assert_eq!(store.resolve(&name).expect(&name), expected, "{name}");
    }

    for name in [
        "002",
        "ffff",
        "last~9",
        "last~x",
        "lastly",
        "@bad",
        "label:site=s9",
        "label:site",
        "",
        "%%%%",
    ] {
        let error = store.resolve(name).expect_err(name);
        assert!(matches!(error, StoreError::Usage(_)), "{name}: {error}");
    }

    let unknown = store.resolve("ffff").expect_err("unknown").to_string();
    assert!(
        unknown.contains(&id(3).short()) && unknown.contains("@good"),
        "{unknown}"
    );
    assert_eq!(
        load_named(Some(store.place()), "last").expect("loaded"),
        [run(3, 1)]
    );
}

#[test]
fn an_end_of_several_ids_is_refused_with_these_ids() {
    let (_directory, store) = store();
    for number in [0x1_0007, 0x2_0007] {
        store.save(&run(number, 0)).expect("saved");
    }

    let error = store.resolve("0007").expect_err("ambiguous");
    assert!(error.to_string().contains("end of several ids"), "{error}");
    assert!(
        error
            .to_string()
            .contains(&run(0x1_0007, 0).run_id.to_string()),
        "{error}"
    );
}

#[test]
fn a_document_imported_twice_is_one_run() {
    let (_directory, store) = store();
    let imported = |number, sha256: &str| {
        let (format, sha256) = ("iperf3-json".to_owned(), sha256.to_owned());
        let import = Import {
            format,
            sha256,
            ..Import::default()
        };
        let mut record = run(number, 1);
        record.origin.imported = Some(import);
        record
    };
    assert_eq!(store.save(&imported(1, "aa")).expect("saved"), Saved::New);
    assert_eq!(
        store.save(&imported(2, "aa")).expect("known"),
        Saved::Known(run(1, 0).run_id)
    );
    assert_eq!(store.save(&imported(3, "bb")).expect("saved"), Saved::New);

    let measured = Filter {
        measured_here: true,
        ..Filter::default()
    };
    assert_eq!(ids(&store, &measured), []);
}

#[test]
fn a_whole_document_replaces_the_one_that_was_cut_off() {
    let (_directory, store) = store();
    let imported = |number, sha256: &str, state| {
        let (format, sha256, key) = (
            "iperf3-json".to_owned(),
            sha256.to_owned(),
            Some("iperf3:a:client".to_owned()),
        );
        let mut record = run(number, 1);
        let import = Import {
            format,
            sha256,
            key,
            ..Import::default()
        };
        record.origin.imported = Some(import);
        record.state = state;

        record
    };
    let (part, whole) = (
        imported(1, "aa", RunState::Partial),
        imported(2, "bb", RunState::Complete),
    );
    assert_eq!(store.save(&part).expect("saved"), Saved::New);
    assert_eq!(store.save(&part).expect("known"), Saved::Known(part.run_id));
    assert_eq!(store.save(&whole).expect("replaced"), Saved::New);
    assert_eq!(
        store.save(&part).expect("known"),
        Saved::Known(whole.run_id)
    );
    assert_eq!(ids(&store, &Filter::default()), [whole.run_id]);
    assert_eq!(
        store.imported("iperf3:a:client").expect("a query"),
        Some(whole.run_id)
    );
}

#[test]
fn labels_and_notes_stand_beside_the_record() {
    let (_directory, store) = store();
    store.save(&run(1, 1)).expect("saved");
    let id = run(1, 0).run_id;
    let label = |text: &str| parse_label(text).expect("a label");
    store
        .label(id, &[label("rack=7"), label("site=x=y")], &[])
        .expect("labelled");
    store.label(id, &[], &["rack".to_owned()]).expect("removed");
    store.add_note(id, "new cable").expect("noted");

    let loaded = store.load(id).expect("loaded");
    assert_eq!(loaded.labels["site"], "x=y");
    let mut record = loaded;
    record.labels = run(1, 1).labels;
    assert_eq!(record, run(1, 1));
    assert_eq!(store.notes(id).expect("notes")[0].text, "new cable");

    for wrong in [
        "Rack=7",
        "rack",
        "=7",
        "a b=7",
        &format!("k={}", "x".repeat(257)),
    ] {
        assert!(parse_label(wrong).is_err(), "{wrong}");
    }

    let many: Vec<Label> = (0..65).map(|n| label(&format!("k{n}=v"))).collect();
    assert!(store.label(id, &many, &[]).is_err());
    assert_eq!(store.load(id).expect("loaded").labels.len(), 1);
}

#[test]
fn facts_that_do_not_change_are_stored_once() {
    let (place, store) = store();
    for number in 0..50 {
        store.save(&run(number, 0)).expect("saved");
    }

    if is_server() {
        return;
    }

    let database = rusqlite::Connection::open(place.path()).expect("a database");
    let count = |area| {
        let query = "SELECT count(DISTINCT facts_key) FROM host WHERE area = $1";
        database
            .query_row(query, [area], |row| row.get::<_, i64>(0))
            .expect("a count")
    };
    assert_eq!((count("nic"), count("load")), (1, 50));
}

#[test]
fn a_recorder_writes_what_is_handed_to_it() {
    let place = place();
    let recorder = Recorder::new(place.clone());
    let whole = run(1, 3);
    recorder.begin(begun(&whole));

    for trial in &whole.trials {
        recorder.add_trials(whole.run_id, vec![trial.clone()]);
    }

    recorder.finish(whole.clone());
    recorder.offer(run(2, 1));
    let recorded = recorder.close();
    assert_eq!((recorded.stored, recorded.message()), (2, None));

    let store = Store::open_existing(&place).expect("it is there");
    assert_eq!(store.load(whole.run_id).expect("loaded"), whole);
}

#[test]
fn trials_that_are_not_kept_in_their_record_are_stored_as_if_they_were() {
    let place = place();
    let whole = run(1, 3);
    let recorder = Recorder::new(place.clone());
    recorder.begin(begun(&whole));
    recorder.add_trials(whole.run_id, whole.trials[..1].to_vec());

    let mut record = whole.clone();
    let trials = std::mem::take(&mut record.trials);
    recorder.finish_with(
        record,
        Box::new(move || Box::new(trials.clone().into_iter())),
    );
    assert_eq!(recorder.close().message(), None);

    let store = Store::open_existing(&place).expect("it is there");
    assert_eq!(store.load(whole.run_id).expect("loaded"), whole);
    let rows = store.list(&Filter::default()).expect("a list");
    assert_eq!(
        (rows.len(), rows[0].trials, rows[0].primary),
        (1, 3, whole.primary())
    );
}

#[test]
fn trials_that_are_not_kept_in_their_record_wait_with_it_in_the_spool() {
    if is_server() {
        return;
    }

    let place = place();
    fs::write(place.path(), "garbage".repeat(100)).expect("written");
    let whole = run(1, 3);
    let recorder = Recorder::new(place.clone());
    let mut record = whole.clone();
    let trials = std::mem::take(&mut record.trials);
    recorder.finish_with(
        record,
        Box::new(move || Box::new(trials.clone().into_iter())),
    );
    assert_eq!(recorder.close().spooled, 1);
    fs::remove_file(place.path()).expect("removed");

    let store = Store::open(&place).expect("a new store");
    assert_eq!(store.load(whole.run_id).expect("taken in"), whole);
}
