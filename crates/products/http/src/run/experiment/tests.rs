use super::*;
use crate::conclude::study::tests::fixtures::seed_input;
use crate::conclude::tests::fixture::{self, load_of};
use crate::plan::Plan;
use crate::plan::cells::Phases;

/// Hosts on which every cell reaches what a fixed capacity allows.
#[derive(Default)]
struct Hosts {
    elapsed: Duration,
    ran: Vec<PlannedRun>,
    kept: usize,
    added: u32,
    stops_after: usize,
    flag_once: Option<Flag>,
    is_always_unsteady: bool,
    is_gone_once: bool,
    goodput_bps: f64,
    has_no_tcp_server: bool,
    loss: Option<LossWithoutLoad>,
}

fn hosts() -> Hosts {
    Hosts {
        stops_after: usize::MAX,
        goodput_bps: 941e6,
        ..Hosts::default()
    }
}

impl CellRunner for Hosts {
    type Error = Vec<String>;

    fn path_not_clean(&self, defects: &[String]) -> Vec<String> {
        defects.to_vec()
    }

    fn elapsed(&self) -> Duration {
        self.elapsed
    }

    fn is_stopped(&mut self) -> bool {
        self.ran.len() >= self.stops_after
    }

    fn download(&mut self) -> Result<Option<Baseline>, String> {
        let mut baseline = Baseline::default();
        (baseline.is_reverse, baseline.streams, baseline.goodput_bps) = (true, 4, self.goodput_bps);
        Ok(Some(baseline))
    }

    fn loss_without_load(&mut self, _: f64) -> Option<LossWithoutLoad> {
        self.loss
    }

    fn test_tcp(&mut self, test: &PlannedTest) -> Result<Option<Baseline>, String> {
        if self.has_no_tcp_server {
            return Err("Connection refused".to_owned());
        }

        let baseline = Baseline {
            is_reverse: test.direction == linerate_model::Flow::Reverse,
            streams: test.streams,
            goodput_bps: self.goodput_bps,
            of_theory: Some(self.goodput_bps / 941.4e6),
            ..Baseline::default()
        };

        Ok(Some(baseline))
    }

    fn rest(&mut self, least: Duration) -> bool {
        self.elapsed += least;
        true
    }

    fn run(&mut self, planned: &PlannedRun) -> Result<CellRun, Vec<String>> {
        self.ran.push(*planned);
        let ok_per_s = (f64::from(planned.key.connections) * 2000.0).min(100_000.0);
        let load = load_of(planned.key.payload_bytes, planned.key.connections, ok_per_s);
        let is_gone = std::mem::take(&mut self.is_gone_once);
        let mut run = fixture::run(load);
        run.state = if is_gone {
            RunState::Aborted
        } else {
            RunState::Done
        };
        run.reason =
            is_gone.then(|| "connection refused since 3.2 s: the server is gone".to_owned());
        run.key = planned.key;
        run.repeat = planned.repeat;
        run.flags = self
            .flag_once
            .take()
            .into_iter()
            .chain(self.is_always_unsteady.then_some(Flag::Unsteady))
            .collect();

        Ok(run)
    }

    fn keep_baseline(&mut self, _: &[Baseline]) -> Result<(), Vec<String>> {
        Ok(())
    }

    fn keep_run(&mut self, _: &PlannedRun, _: &CellRun) -> Result<(), Vec<String>> {
        self.kept += 1;
        Ok(())
    }

    fn runs_added(&mut self, count: u32) {
        self.added += count;
    }
}

fn matrix(text: &str) -> Setup {
    Setup {
        plan: Plan::parse(text).expect(text),
        phases: Phases::parse("0,2").expect("phases"),
        ..seed_input().setup
    }
}

const TWO_CELLS: &str = "[defaults]\nrepeats = 2\n[phase2]\npayloads = [\"1k\"]\nconnections = \
                         [2, 256]\nrefine_knee = false";

#[test]
fn kept_runs_are_not_repeated_and_the_rest_is_run() {
    let setup = matrix(TWO_CELLS);
    let mut first = hosts();
    first.stops_after = 3;

    let partial = run(&setup, false, Kept::default(), &mut first).expect("three runs");
    assert!(!partial.is_complete);
    assert_eq!(first.kept, 3);

    let runs = partial
        .cells
        .iter()
        .flat_map(|cell| cell.runs.clone())
        .collect();
    let kept = Kept {
        baseline: partial.baseline,
        runs,
        notes: Vec::new(),
    };

    let mut second = hosts();
    let whole = run(&setup, false, kept, &mut second).expect("the last run");
    assert!(whole.is_complete && whole.cells.len() == 2);
    assert_eq!(second.ran.len(), 1);
    assert!(!first.ran.contains(&second.ran[0]));
}

#[test]
fn server_that_is_gone_ends_the_experiment_and_resume_makes_the_rest() {
    let setup = matrix(TWO_CELLS);
    let mut gone = Hosts {
        is_gone_once: true,
        flag_once: Some(Flag::ServerGone),
        ..hosts()
    };
    let partial = run(&setup, false, Kept::default(), &mut gone).expect("one run");
    assert_eq!((partial.is_complete, gone.ran.len()), (false, 1));
    assert!(
        partial
            .notes
            .iter()
            .any(|note| note.contains("since 3.2 s: the server is gone")),
        "{:?}",
        partial.notes
    );
    assert_eq!(
        partial.cells[0].verdict.primary.class,
        linerate_model::http::VerdictClass::Invalid
    );

    let whole = run(&setup, false, Kept::default(), &mut hosts()).expect("all runs");
    assert!(whole.is_complete);
}

#[test]
fn knee_is_refined_with_cells_between_its_neighbours() {
    let setup = matrix(&TWO_CELLS.replace("refine_knee = false", "refine_knee = true"));
    let mut hosts = hosts();
    let study = run(&setup, false, Kept::default(), &mut hosts).expect("a study");

    assert!(hosts.added >= 2, "{}", hosts.added);
    assert!(
        study
            .cells
            .iter()
            .any(|cell| (3..256).contains(&cell.key.connections))
    );
}

#[test]
fn unsteady_run_is_made_once_more() {
    let setup = matrix(TWO_CELLS);
    let mut hosts = hosts();
    hosts.flag_once = Some(Flag::Unsteady);
    run(&setup, false, Kept::default(), &mut hosts).expect("a study");
    assert_eq!((hosts.ran.len(), hosts.kept), (5, 4));
    assert_eq!(hosts.ran[0], hosts.ran[1]);
}

#[test]
fn hosts_on_which_no_run_is_steady_do_not_double_the_time() {
    let setup = matrix(&TWO_CELLS.replace("repeats = 2", "repeats = 10"));
    let mut hosts = Hosts {
        is_always_unsteady: true,
        ..hosts()
    };
    run(&setup, false, Kept::default(), &mut hosts).expect("a study");
    assert_eq!((hosts.ran.len(), hosts.kept), (22, 20));
}

#[test]
fn path_that_is_not_clean_ends_the_experiment_unless_forced() {
    let setup = matrix(TWO_CELLS);
    let mut lossy = hosts();
    lossy.loss = Some(LossWithoutLoad {
        segments: 1_000,
        retransmits: 20,
    });

    let refused = run(&setup, false, Kept::default(), &mut lossy);
    assert!(refused.is_err_and(|defects| !defects.is_empty()));
    assert!(lossy.ran.is_empty());

    let study = run(&setup, true, Kept::default(), &mut lossy).expect("forced");
    assert!(
        study
            .notes
            .iter()
            .any(|note| note.contains("segments sent again")),
        "{:?}",
        study.notes
    );
}

#[test]
fn path_that_is_slower_than_its_link_is_noted() {
    let mut slow = hosts();
    slow.goodput_bps = 500e6;
    let study = run(&matrix(TWO_CELLS), false, Kept::default(), &mut slow).expect("a study");
    assert!(
        study
            .notes
            .iter()
            .any(|note| note.contains("of what the link carries")),
        "{:?}",
        study.notes
    );
}

#[test]
fn download_is_the_baseline_where_no_server_tests_tcp() {
    let mut alone = Hosts {
        has_no_tcp_server: true,
        ..hosts()
    };
    let study = run(&matrix(TWO_CELLS), false, Kept::default(), &mut alone).expect("a study");
    assert_eq!(study.baseline.len(), 1);
    assert!(
        study
            .notes
            .iter()
            .any(|note| note.contains("download over HTTP")),
        "{:?}",
        study.notes
    );
    assert!(
        study
            .cells
            .iter()
            .all(|cell| cell.median.of_ceiling.is_some())
    );
}

#[test]
fn cells_that_a_check_advises_against_are_skipped_unless_forced() {
    let mut setup = matrix(TWO_CELLS);
    setup.checks = vec![Check {
        id: "nofile.hard".to_owned(),
        side: linerate_model::http::Side::Client,
        status: CheckStatus::Fail,
        have: String::new(),
        need: String::new(),
        fix: Vec::new(),
        undo: Vec::new(),
        advice: String::new(),
        cells: vec!["matrix-1k-c256".to_owned()],
    }];

    let mut checked = hosts();
    let study = run(&setup, false, Kept::default(), &mut checked).expect("a study");
    assert_eq!((checked.ran.len(), checked.kept), (2, 4));
    assert_eq!(study::ending(&study, false), study::Ending::TooManyInvalid);

    let mut forced = hosts();
    run(&setup, true, Kept::default(), &mut forced).expect("a study");
    assert_eq!(forced.ran.len(), 4);
}
