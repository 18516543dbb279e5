//! Progress of loads and experiments: text on standard error, events on standard output, or a
//! view.

use std::time::{Duration, Instant};

use linerate_document::progress::{Progress, style};
use linerate_model::http::{CellRun, Reading};
use linerate_model::live::LiveHttp;

use super::LiveView;
use super::outputs::print;
use crate::load::SecondPart;
use crate::plan::cells::PlannedRun;
use crate::report::{
    Stage, answers, block, cell_words, event, finished_line, load_event, load_line, run_words,
};

/// Shows the seconds of a load, or of the loads of an experiment.
pub(super) struct SecondsPrinter {
    progress: Progress,
    /// Each second is an object on standard output.
    has_events: bool,
    /// A view in place of the text.
    view: Option<LiveView>,
    now: LiveHttp,
    /// Warm-up, and warm-up and measured period together, of the current load in seconds.
    warmup_s: u32,
    load_s: u32,
    /// `None` for a single load.
    experiment: Option<ExperimentTime>,
}

/// Times of an experiment, and its current run.
struct ExperimentTime {
    begun: Instant,
    planned: Option<PlannedRun>,
    /// Time that the current run and those after it are expected to take.
    ahead: Duration,
    /// The current run's part of it.
    current: Duration,
    /// Time that the finished runs were expected to take, and what they took.
    past: [Duration; 2],
    /// When the last one finished.
    since: Instant,
}

impl ExperimentTime {
    /// Remaining time, at the pace of the finished runs.
    fn left_s(&self) -> f64 {
        let [expected_s, took_s] = self.past.map(|time| time.as_secs_f64());
        // Before the first run has finished the estimate holds as it is.
        let pace = if expected_s > 0.0 {
            took_s / expected_s
        } else {
            1.0
        };
        (self.ahead.as_secs_f64() * pace - self.since.elapsed().as_secs_f64()).max(0.0)
    }
}

impl SecondsPrinter {
    /// For a single load.
    pub(super) fn new(progress: Progress, has_events: bool) -> Self {
        Self {
            progress,
            has_events,
            view: None,
            now: LiveHttp::default(),
            warmup_s: 0,
            load_s: 0,
            experiment: None,
        }
    }

    /// For an experiment of this number of runs.
    pub(super) fn of_experiment(is_quiet: bool, has_events: bool, runs: u32) -> Self {
        let mut printer = Self::new(Progress::new(is_quiet || has_events), has_events);
        printer.now.runs = runs;
        let now = Instant::now();
        printer.experiment = Some(ExperimentTime {
            begun: now,
            planned: None,
            ahead: Duration::ZERO,
            current: Duration::ZERO,
            past: [Duration::ZERO; 2],
            since: now,
        });
        printer
    }

    /// Shows it in a view from now on.
    pub(super) fn show(&mut self, view: LiveView, target: String) {
        self.progress = Progress::new(true);
        self.now.target = target;
        self.view = Some(view);
        self.draw();
    }

    /// Closes the view and erases the last second.
    pub(super) fn close(&mut self) {
        self.progress.clear();
        self.view = None;
    }

    /// Writes a line that stays.
    pub(super) fn line(&mut self, text: &str) {
        self.progress.line(text);
    }

    /// A load of this duration begins, its warm-up included.
    pub(super) fn begin_load(&mut self, load_ns: u64) {
        self.load_s = u32::try_from(load_ns / 1_000_000_000).unwrap_or(u32::MAX);
    }

    /// Shows a running step that has no seconds.
    pub(super) fn running(&mut self, what: &str) {
        self.now.begin(what.to_owned());
        self.draw();
    }

    /// Time that the planned runs are expected to take.
    pub(super) fn expect(&mut self, ahead: Duration) {
        if let Some(experiment) = &mut self.experiment {
            experiment.ahead = ahead;
        }
    }

    /// Runs were added, each as long as the last one.
    pub(super) fn add(&mut self, runs: u32) {
        self.now.runs += runs;
        if let Some(experiment) = &mut self.experiment {
            experiment.ahead += experiment.current * runs;
        }
    }

    /// Runs begin; what came before them took time of its own.
    pub(super) fn begin_runs(&mut self) {
        if let Some(experiment) = self.experiment.as_mut().filter(|_| self.now.run == 0) {
            experiment.since = Instant::now();
        }
    }

    /// A run of an experiment begins, which is `expected` to take this time.
    pub(super) fn begin_run(
        &mut self,
        planned: PlannedRun,
        [warmup, period]: [Duration; 2],
        expected: Duration,
    ) {
        let seconds = |time: Duration| u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
        self.warmup_s = seconds(warmup);
        self.load_s = self.warmup_s.saturating_add(seconds(period));
        if let Some(experiment) = &mut self.experiment {
            experiment.current = expected;
            // A run that is made once more is still the same.
            self.now.run += u32::from(experiment.planned.replace(planned) != Some(planned));
        }

        self.running(&cell_words(&planned.key));
    }

    /// A run of an experiment has ended.
    pub(super) fn finished(&mut self, run: &CellRun) {
        if let Some(experiment) = &mut self.experiment {
            let took = std::mem::replace(&mut experiment.since, Instant::now()).elapsed();
            experiment.ahead = experiment.ahead.saturating_sub(experiment.current);
            experiment.past[0] += experiment.current;
            experiment.past[1] += took;
        }

        let level = self.now.cells.entry(run.key).or_default();
        level.setting = cell_words(&run.key);
        level.add(answers(run));
        self.draw();
        let line = finished_line(run, self.now.run, self.now.runs, style());
        self.progress.line(line.trim_end());
    }

    /// The connections of a load are open.
    pub(super) fn ramped(&mut self, opened: u64, wanted: u64) {
        self.now.open = opened;
        self.draw();
        if self.experiment.is_none() {
            self.line(&format!("{opened} of {wanted} connections open"));
        }
    }

    /// True if the seconds are shown.
    pub(super) fn is_shown(&self) -> bool {
        self.has_events || self.view.is_some() || self.has_text()
    }

    /// The block of an experiment is for terminals; the line of a load for files, too.
    fn has_text(&self) -> bool {
        match self.experiment {
            Some(_) => self.progress.is_terminal(),
            None => !self.progress.is_silent(),
        }
    }

    /// A second has ended; the last samples of client and server.
    pub(super) fn second(&mut self, second: &SecondPart, [client, server]: [Option<Reading>; 2]) {
        // The drain follows the last second.
        if self.experiment.is_none() && second.index >= self.load_s {
            return;
        }

        let now = &mut self.now;
        now.errors += second.errors;
        now.ok_per_s.push(second.ok as f64);
        now.payload_bytes = second.payload_bytes;
        now.p99_ns = second.quantile_ns(0.99);
        now.client = client;
        now.server = server;
        if !self.is_shown() {
            return;
        }

        let elapsed_s = second.index.saturating_add(1);
        match &self.experiment {
            None => {
                self.now.running = format!("second {elapsed_s} of {}", self.load_s);
                self.now.left_s = Some(f64::from(self.load_s.saturating_sub(elapsed_s)));
                if self.has_events {
                    // A closed standard output is noticed when the report is written.
                    let _ = print(&load_event(second));
                }
                self.progress
                    .update(&load_line(&self.now, second, self.load_s));
            }
            Some(experiment) => {
                let Some(planned) = experiment.planned else {
                    return;
                };
                let stage = match second.index {
                    index if index < self.warmup_s => Stage::WarmUp,
                    index if index < self.load_s => Stage::Measure,
                    _ => Stage::Drain,
                };
                self.now.running = run_words(&planned, stage);
                self.now.left_s = Some(experiment.left_s());

                let elapsed = experiment.begun.elapsed();
                if self.has_events {
                    let _ = print(&event(&planned, stage, elapsed, &self.now));
                } else if self.has_text() {
                    self.progress.update(&block(&self.now, elapsed, style()));
                }
            }
        }
        self.draw();
    }

    fn draw(&self) {
        if let Some(view) = &self.view {
            view(&mut |state| state.http_mut().clone_from(&self.now));
        }
    }
}
