//! Several processes on one store, and processes that are killed.

use std::env;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use linerate_model::record::RunState;
use linerate_store::{Filter, Place, Recorder, Store, StoreError};

use crate::places::{self, TestPlace, place};
use crate::records::{begun, run, trial};

/// Trials of a run of a child process.
const TRIALS: u32 = 30;

/// Starts this program as a process that writes.
fn child(role: &str, place: &TestPlace, number: u64) -> Child {
    let program = env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args([
        role,
        "--exact",
        "--ignored",
        "--nocapture",
        "--test-threads=1",
    ]);
    command
        .envs(place.variables())
        .env("TEST_NUMBER", number.to_string());

    command
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("started")
}

/// Arguments of [`child`].
fn given() -> (Place, u64) {
    let number = env::var("TEST_NUMBER").expect("started by another test");
    (places::given(), number.parse().expect("a number"))
}

#[test]
#[ignore = "a process of another test"]
fn writer_of_one_run() {
    let (place, number) = given();
    let whole = run(number, TRIALS);
    let store = Store::open(&place).expect("open");
    store.begin(&begun(&whole)).expect("begun");

    for trial in &whole.trials {
        store
            .add_trials(whole.run_id, std::slice::from_ref(trial))
            .expect("added");
        // The other end closes when it has read enough.
        let _ = writeln!(std::io::stdout().lock(), "\nwritten {}", trial.no + 1);
    }

    store.finish(&whole).expect("finished");
}

#[test]
#[ignore = "a process of another test"]
fn recorder_of_five_hundred_trials() {
    let (place, number) = given();
    let whole = run(number, 500);
    let recorder = Recorder::new(place);
    recorder.begin(begun(&whole));

    for trial in &whole.trials {
        recorder.add_trials(whole.run_id, vec![trial.clone()]);
    }

    recorder.finish(whole);
    let recorded = recorder.close();
    assert_eq!((recorded.stored, recorded.message()), (1, None));
}

/// `TEST_KILLS` is the number of processes that are killed, each at another moment.
#[test]
fn a_killed_writer_loses_at_most_the_trial_in_progress() {
    let kills: u64 = env::var("TEST_KILLS")
        .ok()
        .and_then(|kills| kills.parse().ok())
        .unwrap_or(20);
    let place = place();

    for number in 0..kills {
        let mut child = child("processes::writer_of_one_run", &place, number);
        let lines = BufReader::new(child.stdout.take().expect("a pipe"))
            .lines()
            .map_while(Result::ok);
        let written = lines.filter_map(|line| line.strip_prefix("written ")?.parse::<u32>().ok());
        let until = (number * 7 % u64::from(TRIALS)) as usize;
        let written = written.take(until + 1).last().expect("it writes");

        // Some of the moments are between two steps of a transaction.
        (0..number * 7919 % 100_000).for_each(|step| _ = black_box(step));
        child.kill().expect("killed");
        child.wait().expect("ended");

        let store = Store::open(&place).expect("it opens");
        let record = store.load(run(number, 0).run_id).expect("the run is there");
        assert!(
            record.trials.len() as u32 >= written,
            "{written}: {}",
            record.trials.len()
        );

        let expected: Vec<_> = (0..record.trials.len() as u32)
            .map(|no| trial(no, number))
            .collect();
        assert_eq!(record.trials, expected);

        if record.state != RunState::Complete {
            assert_eq!(record.state, RunState::Ended);
            assert_eq!(
                record.elapsed_ns,
                record.trials.len() as u64 * 10_000_000_000
            );
            let newest = Filter {
                limit: Some(1),
                ..Filter::default()
            };

            let row = &store.list(&newest).expect("a list")[0];
            assert!(
                row.primary.is_some() && row.state == RunState::Ended,
                "{row:?}"
            );
        }

        let check = store.check().expect("checked");
        assert_eq!(check.problems, [""; 0]);
        assert_eq!(check.runs as u64, number + 1);
    }
}

#[test]
fn two_processes_record_while_a_third_lists() {
    let place = place();
    let mut writers =
        [1, 2].map(|number| child("processes::recorder_of_five_hundred_trials", &place, number));

    let mut is_over = false;
    while !is_over {
        is_over = writers
            .iter_mut()
            .all(|writer| writer.try_wait().expect("a process").is_some());
        let rows = Store::open_existing(&place).and_then(|store| store.list(&Filter::default()));
        if !matches!(rows, Err(StoreError::Missing(_))) {
            let rows = rows.expect("a list");
            assert!(
                rows.iter()
                    .all(|row| matches!(row.state, RunState::Running | RunState::Complete)),
                "{rows:?}"
            );
        }
    }

    for writer in &mut writers {
        assert!(writer.wait().expect("ended").success());
    }

    let store = Store::open_existing(&place).expect("a store");
    for number in [1, 2] {
        assert_eq!(
            store.load(run(number, 0).run_id).expect("loaded"),
            run(number, 500)
        );
    }

    assert_eq!(store.check().expect("checked").problems, [""; 0]);
}

/// Waits for what another thread does.
#[cfg(feature = "postgres")]
pub(crate) fn until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "not within 20 s");
        std::thread::sleep(Duration::from_millis(5));
    }
}
