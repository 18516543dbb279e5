//! What is said while an experiment runs: a block that is drawn over on a terminal, a line per run elsewhere, events for
//! programs.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use linerate_http::load::SecondPart;
use linerate_lab::http::cells::PlannedRun;
use linerate_model::http::CellRun;
use linerate_report::http::{EndNow, Progress, Stage, Style, block, event, finished_line};

use crate::cli::http::output::Output;
use crate::run::http::watch::Watch;

/// Shows how far an experiment is.
pub(super) struct Screen {
    voice: Voice,
    style: Style,
    begun: Instant,
    /// Time all runs together are expected to take.
    expected: Duration,
    /// The run that goes on, and of how many.
    run: u32,
    runs: u32,
    /// Of that run.
    errors: u64,
    open: u64,
    warmup_s: u32,
    window_s: u32,
    is_drawn: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Voice {
    Silent,
    Lines,
    /// A block that is drawn over.
    Block,
    /// Objects on the standard output.
    Events,
}

impl Screen {
    pub(super) fn new(output: Output, style: Style, runs: u32, expected: Duration) -> Self {
        let voice = match (output.json_stream, output.quiet, io::stderr().is_terminal()) {
            (true, _, _) => Voice::Events,
            (_, true, _) => Voice::Silent,
            (_, _, true) => Voice::Block,
            _ => Voice::Lines,
        };
        Self {
            voice,
            style,
            begun: Instant::now(),
            expected,
            run: 0,
            runs,
            errors: 0,
            open: 0,
            warmup_s: 0,
            window_s: 0,
            is_drawn: false,
        }
    }

    /// Something that stays on the screen.
    pub(super) fn say(&mut self, text: &str) {
        if matches!(self.voice, Voice::Lines | Voice::Block) {
            self.wipe();
            write(&format!("{text}\n"));
        }
    }

    /// More runs than were planned.
    pub(super) fn add_runs(&mut self, count: u32) {
        self.runs += count;
    }

    pub(super) fn begin(&mut self, warmup: Duration, window: Duration) {
        self.run += 1;
        self.errors = 0;
        self.open = 0;
        self.warmup_s = u32::try_from(warmup.as_secs()).unwrap_or(u32::MAX);
        self.window_s = u32::try_from(window.as_secs()).unwrap_or(u32::MAX);
    }

    pub(super) fn ramped(&mut self, opened: u64) {
        self.open = opened;
    }

    pub(super) fn second(&mut self, planned: &PlannedRun, second: &SecondPart, watch: &Watch) {
        self.errors += second.errors;
        if matches!(self.voice, Voice::Silent | Voice::Lines) {
            return;
        }
        let now = self.progress(planned, second, watch);
        if self.voice == Voice::Events {
            // A reader that has gone away is noticed when the whole is written.
            let _ = io::stdout().write_all(event(&now).as_bytes());
            return;
        }
        self.wipe();
        write(&block(&now, self.style));
        self.is_drawn = true;
    }

    pub(super) fn finished(&mut self, run: &CellRun) {
        let line = finished_line(run, self.run, self.runs, self.style);
        self.say(line.trim_end());
    }

    /// Takes the block away.
    pub(super) fn wipe(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            write(UP_AND_ERASE);
        }
    }

    fn progress(&self, planned: &PlannedRun, second: &SecondPart, watch: &Watch) -> Progress {
        let elapsed = self.begun.elapsed();
        Progress {
            key: planned.key,
            repeat: planned.repeat,
            stage: match second.index {
                index if index < self.warmup_s => Stage::WarmUp,
                index if index < self.warmup_s.saturating_add(self.window_s) => Stage::Measure,
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
            client: now(watch),
            server: None,
        }
    }
}

/// The last look at this host.
fn now(watch: &Watch) -> EndNow {
    let last = watch.last_reading();
    last.map_or_else(EndNow::default, |reading| EndNow {
        cpu_busy: reading.cpu_busy,
        busiest_cpu_busy: reading.busiest_cpu_busy,
        fds: reading.fds,
        time_wait: reading.time_wait,
    })
}

fn write(text: &str) {
    // Nobody may be listening; the result is worth as much.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Four lines up, and everything below erased (ECMA-48, CUU and ED).
const UP_AND_ERASE: &str = "\x1b[4A\x1b[J";
