//! A load under control: its counts ten times a second, and an end before its end condition is met.

use linerate_model::path::{LoadControl, LoadDecision, LoadSample};
use linerate_sys::clock;

use crate::data::run::TestRun;

/// Time between two samples, ns.
const SAMPLE_NS: u64 = 100_000_000;

/// Feeds the control of a load.
pub(super) struct LoadController<'a> {
    control: &'a mut dyn LoadControl,
    /// Samples so far; the next one is due this number of periods after the start, plus one.
    periods: u64,
}

impl<'a> LoadController<'a> {
    pub(super) fn new(control: &'a mut dyn LoadControl) -> Self {
        Self {
            control,
            periods: 0,
        }
    }

    /// When the next sample is due, monotonic ns; `None` before the data starts.
    pub(super) fn next_ns(&self, run: &TestRun) -> Option<u64> {
        Some(
            run.start_ns()?
                .saturating_add(self.periods.saturating_add(1).saturating_mul(SAMPLE_NS)),
        )
    }

    /// Takes a sample if one is due; true when the load is to end.
    pub(super) fn is_over(&mut self, run: &TestRun, streams: u32) -> bool {
        let now_ns = clock::monotonic_ns();
        let Some(start_ns) = run
            .start_ns()
            .filter(|_| self.next_ns(run).is_some_and(|due_ns| now_ns >= due_ns))
        else {
            return false;
        };
        let at_ns = now_ns.saturating_sub(start_ns);

        // Samples that a busy thread missed are not made up for.
        self.periods = at_ns / SAMPLE_NS;
        let sample = sample(run, at_ns, streams);
        matches!(self.control.sample(&sample, None), LoadDecision::End)
    }
}

/// Bytes that a client has received, and those of its own that the server's kernel has
/// acknowledged.
fn sample(run: &TestRun, at_ns: u64, streams: u32) -> LoadSample {
    let down_bytes = run.received_bytes();
    let sent_bytes = run.total_bytes().saturating_sub(down_bytes);
    LoadSample {
        at_ns,
        down_bytes,
        up_bytes: sent_bytes.saturating_sub(run.outstanding_bytes()),
        streams,
    }
}
