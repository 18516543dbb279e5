//! The totals of a test.

use std::time::Duration;

use linerate_model::summary::{FileSummary, StreamSummary, Summary};
use linerate_model::{Event, Flow, StreamRole, Transport};
use std::os::fd::AsFd;

use super::TestRun;
use super::data_path::{self, StrategyUsed, ThreadsUsed};
use super::plan_facts::UNSENT_LIMIT_BYTES;
use super::strategy_trials::{self, StrategyTrials};
use crate::measure::overflow;
use crate::reporter::Reporter;

impl TestRun {
    /// Closes the last interval and adds up this end's half of the test.
    pub(crate) fn finish(&mut self, now_ns: u64, reporter: &mut Reporter<'_>) -> Summary {
        let Some(started) = &self.started else {
            return Summary::default();
        };
        let omitting = started.timeline.omitting();
        let cpu = started.cpu.usage(now_ns);
        let report = self.sampler.close_interval(omitting, true);
        if worth_reporting(&report, self.settings.local.interval) {
            reporter.emit(&Event::Interval(report));
        }

        let strategy = self.strategy_used();
        for path in data_path::paths(&self.settings.spec, &self.streams, strategy) {
            reporter.emit(&Event::DataPath(path));
        }

        data_path::remarks(&self.streams).for_each(|line| reporter.emit(&Event::Addition(line)));
        let file_name = self.settings.local.file.as_deref();
        let mut summary = Summary {
            cpu_local: cpu,
            overflows_local: self.overflows(),
            ..Summary::default()
        };

        for totals in self.sampler.totals() {
            let stream = totals.stream;
            let counted = totals.counted;
            let sends = stream.role == StreamRole::Sender;
            let row = StreamSummary {
                id: stream.id,
                role: stream.role,
                flow: stream.flow,
                sender: sends.then_some(counted),
                receiver: (!sends).then_some(counted),
                delivered: totals.delivered,
                tcp: totals.tcp,
                file: file_name.map(|path| FileSummary {
                    name: path.display().to_string(),
                    size_bytes: std::fs::metadata(path).map_or(0, |m| m.len()),
                }),
                local_metrics: totals.metrics.map(Box::new),
                ..StreamSummary::default()
            };
            summary.streams.push(row);
        }

        self.name_congestion(&mut summary);
        summary
    }

    fn strategy_used(&self) -> StrategyUsed {
        let fixed = || {
            self.settings
                .local
                .io_strategy
                .unwrap_or(strategy_trials::INITIAL)
        };

        StrategyUsed {
            strategy: self
                .trials
                .as_ref()
                .map_or_else(fixed, |trials| trials.current()),
            trials: self.trials.as_ref().map(StrategyTrials::decided),
            unsent_limit_bytes: self.limits_unsent.then_some(UNSENT_LIMIT_BYTES),
            threads: self.pool.as_ref().map(|pool| ThreadsUsed {
                senders: pool.senders(),
                receivers: pool.receivers(),
            }),
        }
    }

    fn overflows(&self) -> Option<u64> {
        let udp = self.settings.spec.transport == Transport::Udp;
        let receivers = self.of_role(StreamRole::Receiver).filter(|_| udp);
        overflow::count(receivers.map(|s| s.fd.as_fd()))
    }

    fn name_congestion(&self, summary: &mut Summary) {
        let main = if self.streams.iter().any(|s| s.stream.flow == Flow::Forward) {
            Flow::Forward
        } else {
            Flow::Reverse
        };
        let Some(first) = self.streams.iter().find(|s| s.stream.flow == main) else {
            return;
        };
        let name = first.stream.effective.congestion.clone();

        match first.stream.role {
            StreamRole::Sender => summary.sender_congestion = name,
            StreamRole::Receiver => summary.receiver_congestion = name,
        }
    }

    /// Payload bytes of all streams so far, both directions.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.sampler.total_bytes()
    }

    /// Payload bytes that have arrived here so far.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.sampler.received_bytes()
    }

    /// Payload bytes that only a living peer can have moved: those that arrived and those it has
    /// acknowledged. `None` when nothing of the kind can be seen, because this end sends datagrams
    /// only.
    pub(crate) fn progress_bytes(&self) -> Option<u64> {
        let received_bytes = self.sampler.received_bytes();
        if self.settings.spec.transport == Transport::Udp {
            return self.receives().then_some(received_bytes);
        }

        let sent_bytes = self.sampler.total_bytes().saturating_sub(received_bytes);
        Some(received_bytes + sent_bytes.saturating_sub(self.outstanding_bytes()))
    }
}

/// A last interval of less than a tenth of the grid in which nothing moved is a sliver.
fn worth_reporting(report: &linerate_model::IntervalReport, interval: Option<Duration>) -> bool {
    let moved = report.streams.iter().any(|s| s.bytes > 0);
    let length_s = report
        .streams
        .first()
        .map_or(0.0, linerate_model::StreamInterval::seconds);
    moved || interval.is_none_or(|i| length_s >= i.as_secs_f64() / 10.0)
}
