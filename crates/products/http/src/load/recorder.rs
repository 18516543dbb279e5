//! Decides what counts: requests that start in the window, and results of every second.

use linerate_model::http::ErrorClass;

use super::response::ReceivedResponse;
use super::stats::{LoadStats, SecondPart};

/// Times of the run on the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// The load begins, unrecorded.
    pub begin_ns: u64,
    /// Recording begins.
    pub open_ns: u64,
    /// Nothing is sent from here on.
    pub end_ns: u64,
}

/// A request that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sent {
    /// Send time.
    pub sent_ns: u64,
    /// Due time; the send time in a closed loop.
    pub due_ns: u64,
    /// No connection was free when it was due: it is late because of the server, not of this
    /// thread.
    pub is_starved: bool,
}

/// Statistics of one worker.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub stats: LoadStats,
    pub window: Option<Window>,
    pub second: SecondPart,
    body_hash: Option<u64>,
    verifies: bool,
    is_open_loop: bool,
}

impl Recorder {
    pub(crate) fn new(verifies: bool, is_open_loop: bool) -> Self {
        Self {
            verifies,
            is_open_loop,
            ..Self::default()
        }
    }

    /// A request has a complete response.
    pub(crate) fn response_complete(
        &mut self,
        sent: Sent,
        done_ns: u64,
        response: &ReceivedResponse,
    ) {
        self.count_request(sent);
        self.stats.last_response_ns = done_ns;
        self.stats.failing = None;
        self.stats.response_head_bytes = self.stats.response_head_bytes.or(response.head_bytes);

        let class = match response.status {
            200..300 if self.is_body_as_before(response) => None,
            200..300 => Some(ErrorClass::Protocol),
            300..400 => Some(ErrorClass::Status3xx),
            400..500 => Some(ErrorClass::Status4xx),
            500..600 => Some(ErrorClass::Status5xx),
            _ => Some(ErrorClass::Protocol),
        };
        // 429 is the answer to the rate (RFC 6585, section 4), other 4xx concern the request.
        let is_refusal = response.status == 429;
        // In a redirection the field concerns the redirected request (RFC 9110, section 10.2.3).
        self.second.retry_after +=
            u64::from(response.has_retry_after && (is_refusal || response.status == 503));

        match class {
            None => self.succeeded(sent, done_ns, response),
            Some(class) => {
                let text = || match class {
                    ErrorClass::Protocol if (200..300).contains(&response.status) => {
                        "a body that differs from the first one".to_owned()
                    }
                    _ => format!("status {}", response.status),
                };
                self.second.failure(class, is_refusal);

                if self.counts(sent) {
                    self.stats.errors.add(class, text);
                }
            }
        }
    }

    fn succeeded(&mut self, sent: Sent, done_ns: u64, response: &ReceivedResponse) {
        let latency_ns = done_ns.saturating_sub(self.start_ns(sent));

        // Responses of the ramp belong to no second.
        if self.window.is_some() {
            self.second.response(latency_ns, response.body_bytes);
        }

        // The seconds contain the warm-up, the result does not.
        if !self.counts(sent) {
            return;
        }

        self.stats.ok += 1;
        self.stats.payload_bytes += response.body_bytes;
        self.stats.http_bytes += response.head_bytes.unwrap_or(0) + response.body_bytes;
        self.stats.latency.record(latency_ns);

        // In a closed loop a request is due when it is sent, so both times are the same.
        if self.is_open_loop {
            self.stats
                .service
                .record(done_ns.saturating_sub(sent.sent_ns));
        }
    }

    fn is_body_as_before(&mut self, response: &ReceivedResponse) -> bool {
        !self.verifies || *self.body_hash.get_or_insert(response.hash) == response.hash
    }

    /// A request failed; after a timeout its age enters the latency as a lower bound.
    pub(crate) fn failed(
        &mut self,
        sent: Sent,
        now_ns: u64,
        class: ErrorClass,
        text: impl FnOnce() -> String,
    ) {
        self.second.failure(class, false);
        self.stats.note_failure(class);
        if !self.count_request(sent) {
            return;
        }

        self.stats.errors.add(class, text);
        // The request took at least this long; left out, a stall would improve the quantiles.
        if class == ErrorClass::Timeout {
            let start_ns = self.start_ns(sent);
            self.stats
                .latency
                .record_censored(now_ns.saturating_sub(start_ns));
        }
    }

    /// A request had no response when the run was stopped.
    pub(crate) fn stopped(&mut self, sent: Sent) {
        self.count_request(sent);
    }

    /// Counts a request that was sent in the window; returns whether it was.
    fn count_request(&mut self, sent: Sent) -> bool {
        let counts = self.counts(sent);
        if counts {
            self.stats.requests += 1;
        }

        if counts && self.is_open_loop {
            let lag_ns = sent.sent_ns.saturating_sub(sent.due_ns);
            self.stats.send_lag.record(lag_ns);
            if !sent.is_starved {
                self.stats.lateness.record(lag_ns);
            }
        }

        counts
    }

    /// A request was due in the window and never sent.
    pub(crate) fn unsent(&mut self, due_ns: u64, now_ns: u64) {
        let sent = Sent {
            sent_ns: due_ns,
            due_ns,
            is_starved: true,
        };
        if self.counts(sent) {
            self.stats.requests += 1;
            let text = || "no connection was free before the end".to_owned();
            self.stats.errors.add(ErrorClass::Unsent, text);
            self.stats
                .latency
                .record_censored(now_ns.saturating_sub(due_ns));
        }
    }

    /// A connection is open.
    pub(crate) fn connected(&mut self, elapsed_ns: u64) {
        self.stats.connect.record(elapsed_ns);
    }

    /// A connection could not be opened, or was lost while idle.
    pub(crate) fn connection_failed(&mut self, class: ErrorClass, text: impl FnOnce() -> String) {
        self.second.failure(class, false);
        self.stats.note_failure(class);
        self.stats.errors.add(class, text);
    }

    /// The second that is complete at `now_ns`; without events in between, only the last.
    pub(crate) fn finished_second(&mut self, now_ns: u64) -> Option<SecondPart> {
        let index = self.second_at(now_ns)?;
        if index <= self.second.index {
            return None;
        }
        Some(std::mem::replace(&mut self.second, SecondPart::new(index)))
    }

    /// When the current second ends; never without a window.
    pub(crate) fn second_ends_ns(&self) -> u64 {
        let ends_ns = |window: Window| {
            let seconds = u64::from(self.second.index) + 1;
            window
                .begin_ns
                .saturating_add(seconds.saturating_mul(SECOND_NS))
        };
        self.window.map_or(u64::MAX, ends_ns)
    }

    /// The incomplete last second.
    pub(crate) fn last_second(&mut self) -> Option<SecondPart> {
        self.window.map(|_| std::mem::take(&mut self.second))
    }

    fn second_at(&self, now_ns: u64) -> Option<u32> {
        let elapsed_ns = now_ns.saturating_sub(self.window?.begin_ns);
        Some(u32::try_from(elapsed_ns / SECOND_NS).unwrap_or(u32::MAX))
    }

    fn counts(&self, sent: Sent) -> bool {
        let start_ns = self.start_ns(sent);
        self.window
            .is_some_and(|window| (window.open_ns..window.end_ns).contains(&start_ns))
    }

    /// When the latency of a request begins: a late one of an open loop belongs to the time at which
    /// it was due.
    fn start_ns(&self, sent: Sent) -> u64 {
        if self.is_open_loop {
            sent.due_ns
        } else {
            sent.sent_ns
        }
    }
}

const SECOND_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_ends_a_second_after_its_predecessor() {
        let mut recorder = Recorder::new(false, false);
        assert_eq!(
            recorder.second_ends_ns(),
            u64::MAX,
            "before there is a window"
        );
        recorder.window = Some(Window {
            begin_ns: 500,
            open_ns: 500,
            end_ns: 10 * SECOND_NS,
        });
        assert_eq!(recorder.second_ends_ns(), 500 + SECOND_NS);
        assert_eq!(recorder.finished_second(499 + SECOND_NS), None);

        let finished = recorder.finished_second(500 + SECOND_NS);
        assert_eq!(finished.map(|second| second.index), Some(0));
        assert_eq!(recorder.second_ends_ns(), 500 + 2 * SECOND_NS);
    }
}
