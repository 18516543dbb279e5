//! Live state, for a view that is drawn while it changes: a server, a test, a sweep, an HTTP load
//! or experiment, and this host.
//!
//! A [`LiveState`] takes events with the time of each, in ns since the view began. It keeps the
//! last points of every line and no history. Its writer never waits for a reader: a reader takes a
//! clone.

mod http;
mod results;
mod server;
mod test;

use std::collections::VecDeque;

pub use http::LiveHttp;
pub use results::PageResults;
pub use server::{LiveServer, LiveSession};
pub use test::{LivePhase, LiveStream, LiveTest};

/// Points that a line keeps.
pub const POINTS_MAX: usize = 300;

/// Everything a view shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveState {
    /// Grows with every change.
    pub version: u64,
    /// State of a server.
    pub server: Option<LiveServer>,
    /// State of a client's test.
    pub test: Option<LiveTest>,
    /// State of a sweep.
    pub sweep: Option<LiveSweep>,
    /// State of an HTTP load or experiment.
    pub http: Option<LiveHttp>,
    /// This host; `None` before two samples.
    pub host: Option<LiveHost>,
}

/// The last points of a line, one per interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveLine {
    values: VecDeque<f64>,
}

impl LiveLine {
    /// Adds a point and drops the oldest one of too many.
    pub fn push(&mut self, value: f64) {
        // A page shows the newest values, of a server that may run for months.
        if self.values.len() == POINTS_MAX {
            self.values.pop_front();
        }
        self.values.push_back(value);
    }

    /// The points, the oldest first.
    pub fn values(&self) -> impl ExactSizeIterator<Item = f64> + DoubleEndedIterator + '_ {
        self.values.iter().copied()
    }

    /// The newest point.
    pub fn last(&self) -> Option<f64> {
        self.values.back().copied()
    }
}

/// A sweep: its runs so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveSweep {
    /// The server.
    pub host: String,
    /// Runs that have ended.
    pub runs_done: u64,
    /// Runs in all, as planned now.
    pub runs_planned: u64,
    /// The setting that runs now.
    pub setting: String,
    /// Time left in s.
    pub left_s: f64,
    /// Settings in the order of their first run.
    pub levels: Vec<LiveLevel>,
}

/// One setting of a sweep, or one cell of an HTTP experiment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveLevel {
    /// The setting in words.
    pub setting: String,
    /// The values of its runs, and each as text with its unit.
    pub values: Vec<(f64, String)>,
    /// Runs without a value.
    pub failed: usize,
}

impl LiveLevel {
    /// A run ended with this value, or without one.
    pub fn add(&mut self, value: Option<(f64, String)>) {
        match value {
            Some(value) => self.values.push(value),
            None => self.failed += 1,
        }
    }

    /// The median run, the lower one of two.
    pub fn median(&self) -> Option<&(f64, String)> {
        let mut sorted: Vec<&(f64, String)> = self.values.iter().collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        // The lower of two middle values: the median is a run that was made.
        sorted.get(sorted.len().checked_sub(1)? / 2).copied()
    }
}

/// This host over the last second.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveHost {
    /// Share of its time that each CPU was busy, 0..=1, in the order of their numbers.
    pub cpus_busy: Vec<f64>,
    /// Share of the time of all CPUs spent in softirqs, 0..=1.
    pub softirq: f64,
    /// Packets that the kernel dropped before a socket since the view began (`softnet_stat`);
    /// `None` when unknown.
    pub drops: Option<u64>,
}

impl LiveState {
    /// The state of a server.
    pub fn server_mut(&mut self) -> &mut LiveServer {
        self.server.get_or_insert_default()
    }

    /// The sweep changes.
    pub fn sweep_mut(&mut self) -> &mut LiveSweep {
        self.sweep.get_or_insert_default()
    }

    /// A run of a sweep ended with this value, or without one.
    pub fn run_ended(&mut self, setting: &str, value: Option<(f64, String)>) {
        let sweep = self.sweep_mut();
        let at = sweep
            .levels
            .iter()
            .position(|level| level.setting == setting)
            .unwrap_or_else(|| {
                sweep.levels.push(LiveLevel {
                    setting: setting.to_owned(),
                    ..LiveLevel::default()
                });
                sweep.levels.len() - 1
            });
        if let Some(level) = sweep.levels.get_mut(at) {
            level.add(value);
        }
    }

    /// The HTTP load or experiment changes.
    pub fn http_mut(&mut self) -> &mut LiveHttp {
        self.http.get_or_insert_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_keeps_the_last_points() {
        let mut line = LiveLine::default();
        assert_eq!(line.last(), None);
        (0..400).for_each(|n| line.push(f64::from(n)));
        assert_eq!(line.values().len(), POINTS_MAX);
        assert_eq!(
            (line.values().next(), line.last()),
            (Some(100.0), Some(399.0))
        );
    }

    #[test]
    fn runs_of_a_setting_are_one_level_with_its_median() {
        let mut state = LiveState::default();
        for value in [3.0, 1.0, 2.0] {
            state.run_ended("streams 1", Some((value, format!("{value} Gbit/s"))));
        }

        state.run_ended("streams 2", None);
        let levels = &state.sweep_mut().levels;
        assert_eq!(levels.len(), 2);
        assert_eq!(levels[0].median(), Some(&(2.0, "2 Gbit/s".to_owned())));
        assert_eq!((levels[1].median(), levels[1].failed), (None, 1));
    }
}
