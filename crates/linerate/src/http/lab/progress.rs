//! Progress of an experiment: a block of lines on a terminal, a line per run elsewhere, events for programs.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use linerate_http::load::SecondPart;
use linerate_lab::http::cells::PlannedRun;
use linerate_model::http::CellRun;
use linerate_report::http::{HostSample, Progress as Now, Stage, Style, block, event, finished_line};

use crate::http::Output;
use crate::http::observed::LoadProgress;
use crate::http::watch::Watch;
use crate::progress::Progress;

/// Shows the progress of an experiment.
pub(super) struct ExperimentProgress {
    progress: Progress,
    /// Each second is an object on standard output.
    has_events: bool,
    style: Style,
    begun: Instant,
    /// Time all runs together are expected to take.
    expected: Duration,
    planned: Option<PlannedRun>,
    /// The current run, and of how many.
    run: u32,
    pub(super) runs: u32,
    /// Of that run.
    errors: u64,
    open: u64,
    warmup_s: u32,
    period_s: u32,
}

impl ExperimentProgress {
    pub(super) fn new(output: Output, style: Style, runs: u32, expected: Duration) -> Self {
        Self {
            progress: Progress::new(output.quiet || output.json_stream),
            has_events: output.json_stream,
            style,
            begun: Instant::now(),
            expected,
            planned: None,
            run: 0,
            runs,
            errors: 0,
            open: 0,
            warmup_s: 0,
            period_s: 0,
        }
    }

    /// Writes a line that stays.
    pub(super) fn line(&mut self, text: &str) {
        self.progress.line(text);
    }

    pub(super) fn begin(&mut self, planned: PlannedRun, warmup: Duration, period: Duration) {
        self.planned = Some(planned);
        self.run += 1;
        self.errors = 0;
        self.open = 0;
        self.warmup_s = u32::try_from(warmup.as_secs()).unwrap_or(u32::MAX);
        self.period_s = u32::try_from(period.as_secs()).unwrap_or(u32::MAX);
    }

    pub(super) fn finished(&mut self, run: &CellRun) {
        let line = finished_line(run, self.run, self.runs, self.style);
        self.progress.line(line.trim_end());
    }

    pub(super) fn clear(&mut self) {
        self.progress.clear();
    }

    fn now(&self, planned: PlannedRun, second: &SecondPart, watch: &Watch) -> Now {
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
            left_s: Some(self.expected.saturating_sub(elapsed).as_secs_f64()),
            ok_per_s: Some(second.ok as f64),
            payload_bytes_per_s: Some(second.payload_bytes as f64),
            of_ceiling: None,
            p99_ns: second.quantile_ns(0.99),
            errors: self.errors,
            open: self.open,
            client: last_sample(watch),
            server: None,
        }
    }
}

impl LoadProgress for ExperimentProgress {
    fn ramped(&mut self, opened: u64, _: u64) {
        self.open = opened;
    }

    fn second(&mut self, second: &SecondPart, watch: &Watch) {
        self.errors += second.errors;
        let Some(planned) = self.planned.filter(|_| self.has_events || self.progress.is_terminal()) else {
            return;
        };
        let now = self.now(planned, second, watch);
        if self.has_events {
            // A closed standard output is noticed when the report is written.
            let _ = io::stdout().write_all(event(&now).as_bytes());
        } else {
            self.progress.update(&block(&now, self.style));
        }
    }
}

/// The last sample of this host.
fn last_sample(watch: &Watch) -> HostSample {
    let last = watch.last_reading();
    last.map_or_else(HostSample::default, |reading| HostSample {
        cpu_busy: reading.cpu_busy,
        busiest_cpu_busy: reading.busiest_cpu_busy,
        fds: reading.fds,
        time_wait: reading.time_wait,
    })
}
