//! Progress of an experiment: a block of lines on a terminal, a line per run elsewhere, events for
//! programs.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use linerate_document::Style;
use linerate_document::progress::Progress;
use linerate_model::http::{CellRun, Reading};

use crate::load::SecondPart;
use crate::plan::cells::PlannedRun;
use crate::report::{
    Progress as Now, Stage, answers, block, cell_words, event, finished_line, run_words,
};
use crate::run::sampled_load::LoadProgress;
use crate::run::{LiveView, Output};

/// Shows the progress of an experiment.
pub(super) struct ExperimentProgress {
    progress: Progress,
    /// Each second is an object on standard output.
    has_events: bool,
    /// A view that takes the place of the block.
    view: Option<Box<dyn LiveView>>,
    style: Style,
    begun: Instant,
    /// Time that the current run and those after it are expected to take.
    pub(super) ahead: Duration,
    /// The current run's part of it.
    current: Duration,
    /// Time that the finished runs were expected to take, and what they took.
    past: [Duration; 2],
    /// When the last one finished.
    since: Instant,
    planned: Option<PlannedRun>,
    /// The current run, and of how many.
    run: u32,
    pub(super) runs: u32,
    /// Errors of that run.
    errors: u64,
    open: u64,
    warmup_s: u32,
    period_s: u32,
}

impl ExperimentProgress {
    pub(super) fn new(output: Output, style: Style, runs: u32) -> Self {
        Self {
            progress: Progress::new(output.quiet || output.json_stream),
            has_events: output.json_stream,
            view: None,
            style,
            begun: Instant::now(),
            ahead: Duration::ZERO,
            current: Duration::ZERO,
            past: [Duration::ZERO; 2],
            since: Instant::now(),
            planned: None,
            run: 0,
            runs,
            errors: 0,
            open: 0,
            warmup_s: 0,
            period_s: 0,
        }
    }

    /// Shows it in a view from now on.
    pub(super) fn show(&mut self, view: Box<dyn LiveView>, target: &str) {
        self.progress = Progress::new(true);
        view.update(&mut |state| {
            let http = state.http_mut();
            (http.target, http.runs) = (target.to_owned(), self.runs);
        });
        self.view = Some(view);
    }

    /// Closes the view.
    pub(super) fn close_view(&mut self) {
        self.view = None;
    }

    /// Shows a running step that has no seconds.
    pub(super) fn running(&self, what: &str) {
        if let Some(view) = &self.view {
            view.update(&mut |state| state.http_mut().begin(what.to_owned()));
        }
    }

    /// Writes a line that stays.
    pub(super) fn line(&mut self, text: &str) {
        self.progress.line(text);
    }

    /// Runs were added, each as long as the last one.
    pub(super) fn add(&mut self, runs: u32) {
        self.runs += runs;
        self.ahead += self.current * runs;
    }

    /// Runs begin; what came before them took time of its own.
    pub(super) fn begin_runs(&mut self) {
        if self.run == 0 {
            self.since = Instant::now();
        }
    }

    pub(super) fn begin(
        &mut self,
        planned: PlannedRun,
        warmup: Duration,
        period: Duration,
        expected: Duration,
    ) {
        self.current = expected;
        // A run that is made once more is still the same.
        self.run += u32::from(self.planned.replace(planned) != Some(planned));
        self.errors = 0;
        self.open = 0;
        self.warmup_s = u32::try_from(warmup.as_secs()).unwrap_or(u32::MAX);
        self.period_s = u32::try_from(period.as_secs()).unwrap_or(u32::MAX);
        self.running(&cell_words(&planned.key));
    }

    pub(super) fn finished(&mut self, run: &CellRun) {
        self.ahead = self.ahead.saturating_sub(self.current);
        let took = [
            self.current,
            std::mem::replace(&mut self.since, Instant::now()).elapsed(),
        ];
        self.past
            .iter_mut()
            .zip(took)
            .for_each(|(sum, time)| *sum += time);

        if let Some(view) = &self.view {
            view.update(&mut |state| {
                let level = state.http_mut().cells.entry(run.key).or_default();
                level.setting = cell_words(&run.key);
                level.add(answers(run));
            });
        }

        let line = finished_line(run, self.run, self.runs, self.style);
        self.progress.line(line.trim_end());
    }

    pub(super) fn clear(&mut self) {
        self.progress.clear();
    }

    /// Remaining time, at the pace of the finished runs.
    fn left_s(&self) -> f64 {
        let [expected_s, took_s] = self.past.map(|time| time.as_secs_f64());
        let pace = if expected_s > 0.0 {
            took_s / expected_s
        } else {
            1.0
        };
        (self.ahead.as_secs_f64() * pace - self.since.elapsed().as_secs_f64()).max(0.0)
    }

    fn now(
        &self,
        planned: PlannedRun,
        second: &SecondPart,
        [client, server]: [Option<Reading>; 2],
    ) -> Now {
        let elapsed = self.begun.elapsed();
        Now {
            key: planned.key,
            repeat: planned.repeat,
            stage: match second.index {
                index if index < self.warmup_s => Stage::WarmUp,
                index if index < self.warmup_s.saturating_add(self.period_s) => Stage::Measure,
                _ => Stage::Drain,
            },
            run: self.run,
            runs: self.runs,
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            left_s: Some(self.left_s()),
            ok_per_s: Some(second.ok as f64),
            payload_bytes_per_s: Some(second.payload_bytes as f64),
            p99_ns: second.quantile_ns(0.99),
            errors: self.errors,
            open: self.open,
            client,
            server,
        }
    }
}

impl LoadProgress for ExperimentProgress {
    fn ramped(&mut self, opened: u64, _: u64) {
        self.open = opened;
    }

    fn is_shown(&self) -> bool {
        self.has_events || self.view.is_some() || self.progress.is_terminal()
    }

    fn second(&mut self, second: &SecondPart, ends: [Option<Reading>; 2]) {
        self.errors += second.errors;
        let Some(planned) = self.planned.filter(|_| self.is_shown()) else {
            return;
        };
        let now = self.now(planned, second, ends);

        if self.has_events {
            // A closed standard output is noticed when the report is written.
            let _ = io::stdout().write_all(event(&now).as_bytes());
        } else if let Some(view) = &self.view {
            view.update(&mut |state| {
                let http = state.http_mut();
                (http.running, http.run, http.runs, http.left_s) =
                    (run_words(&now), now.run, now.runs, now.left_s);
                http.ok_per_s.push(second.ok as f64);
                (http.payload_bytes, http.p99_ns) = (second.payload_bytes, now.p99_ns);
                (http.errors, http.open, http.client, http.server) =
                    (now.errors, now.open, now.client.clone(), now.server.clone());
            });
        } else {
            self.progress.update(&block(&now, self.style));
        }
    }
}
