//! What counts: requests whose start lies in the window, and every second for itself.

use linerate_model::http::ErrorClass;

use super::answer::Answer;
use super::second::SecondPart;
use super::tally::Tally;

/// Times of the run on the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// The load begins, unrecorded.
    pub(crate) begin_ns: u64,
    /// Recording begins.
    pub(crate) open_ns: u64,
    /// Nothing is sent from here on.
    pub(crate) end_ns: u64,
}

/// A request that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sent {
    /// When.
    pub(crate) sent_ns: u64,
    /// When it was due; the same in a closed loop.
    pub(crate) due_ns: u64,
}

/// The figures of one lane.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) tally: Tally,
    window: Option<Window>,
    second: SecondPart,
    body_hash: Option<u64>,
    verifies: bool,
    is_open_loop: bool,
}

impl Recorder {
    pub(crate) fn new(verifies: bool, is_open_loop: bool) -> Self {
        Self {
            tally: Tally::default(),
            window: None,
            second: SecondPart::default(),
            body_hash: None,
            verifies,
            is_open_loop,
        }
    }

    pub(crate) fn set_window(&mut self, window: Window) {
        self.window = Some(window);
    }

    /// A request left. One that was due before `starved_until_ns` had no connection that was free.
    pub(crate) fn sent(&mut self, sent: Sent, starved_until_ns: u64) {
        if !self.counts(sent) {
            return;
        }
        self.tally.requests += 1;
        if self.is_open_loop {
            let lag_ns = sent.sent_ns.saturating_sub(sent.due_ns);
            self.tally.send_lag.record(lag_ns);
            if sent.due_ns >= starved_until_ns {
                self.tally.lateness.record(lag_ns);
            }
        }
    }

    /// An answer is complete.
    pub(crate) fn answered(&mut self, sent: Sent, done_ns: u64, answer: &Answer) {
        self.tally.response_head_bytes = self.tally.response_head_bytes.or(answer.head_bytes);
        let class = match answer.status {
            200..300 if self.is_body_as_before(answer) => None,
            200..300 => Some(ErrorClass::Protocol),
            300..400 => Some(ErrorClass::Status3xx),
            400..500 => Some(ErrorClass::Status4xx),
            500..600 => Some(ErrorClass::Status5xx),
            _ => Some(ErrorClass::Protocol),
        };
        let is_refusal = answer.status == 429;
        self.second.retry_after += u64::from(answer.has_retry_after && (is_refusal || answer.status == 503));
        match class {
            None => self.succeeded(sent, done_ns, answer),
            Some(class) => {
                let text = || match class {
                    ErrorClass::Protocol if (200..300).contains(&answer.status) => {
                        "a body that differs from the first one".to_owned()
                    }
                    _ => format!("status {}", answer.status),
                };
                self.second.failure(class, is_refusal);
                if self.counts(sent) {
                    self.tally.errors.add(class, text);
                }
            }
        }
    }

    fn succeeded(&mut self, sent: Sent, done_ns: u64, answer: &Answer) {
        let from_ns = if self.is_open_loop { sent.due_ns } else { sent.sent_ns };
        let latency_ns = done_ns.saturating_sub(from_ns);
        if self.window.is_some() {
            self.second.answer(latency_ns, answer.body_bytes);
        }
        if !self.counts(sent) {
            return;
        }
        self.tally.ok += 1;
        self.tally.payload_bytes += answer.body_bytes;
        self.tally.http_bytes += answer.head_bytes.unwrap_or(0) + answer.body_bytes;
        self.tally.latency.record(latency_ns);
        if self.is_open_loop {
            self.tally.service.record(done_ns.saturating_sub(sent.sent_ns));
        }
    }

    fn is_body_as_before(&mut self, answer: &Answer) -> bool {
        !self.verifies || *self.body_hash.get_or_insert(answer.hash) == answer.hash
    }

    /// A request failed; where it simply never ended, its age enters the latency as a lower bound.
    pub(crate) fn failed(&mut self, sent: Sent, now_ns: u64, class: ErrorClass, text: impl FnOnce() -> String) {
        self.second.failure(class, false);
        if !self.counts(sent) {
            return;
        }
        self.tally.errors.add(class, text);
        if class == ErrorClass::Timeout {
            let from_ns = if self.is_open_loop { sent.due_ns } else { sent.sent_ns };
            self.tally.latency.record_censored(now_ns.saturating_sub(from_ns));
        }
    }

    /// A request was due in the window and never sent.
    pub(crate) fn unsent(&mut self, due_ns: u64, now_ns: u64) {
        let sent = Sent {
            sent_ns: due_ns,
            due_ns,
        };
        if self.counts(sent) {
            self.tally.requests += 1;
            let text = || "no connection was free before the end".to_owned();
            self.tally.errors.add(ErrorClass::Unsent, text);
            self.tally.latency.record_censored(now_ns.saturating_sub(due_ns));
        }
    }

    /// A connection is being opened.
    pub(crate) fn connecting(&mut self) {
        self.second.attempts += 1;
    }

    /// A connection is open.
    pub(crate) fn connected(&mut self, elapsed_ns: u64) {
        self.tally.connect.record(elapsed_ns);
    }

    /// A connection could not be opened, or was lost while nothing was asked.
    pub(crate) fn connection_failed(&mut self, class: ErrorClass, text: impl FnOnce() -> String) {
        self.second.failure(class, false);
        self.tally.errors.add(class, text);
    }

    /// The load has a backlog this old.
    pub(crate) fn backlog(&mut self, age_ns: u64) {
        self.second.backlog_ns = self.second.backlog_ns.max(age_ns);
    }

    /// The seconds that are over at `now_ns`; of a gap without events only the last.
    pub(crate) fn finished_second(&mut self, now_ns: u64) -> Option<SecondPart> {
        let index = self.second_at(now_ns)?;
        if index <= self.second.index {
            return None;
        }
        Some(std::mem::replace(&mut self.second, SecondPart::new(index)))
    }

    /// When the second that is being counted is over; never before there is a window.
    pub(crate) fn second_ends_ns(&self) -> u64 {
        let ends_ns = |window: Window| {
            let seconds = u64::from(self.second.index) + 1;
            window.begin_ns.saturating_add(seconds.saturating_mul(SECOND_NS))
        };
        self.window.map_or(u64::MAX, ends_ns)
    }

    /// The second that is not over yet.
    pub(crate) fn last_second(&mut self) -> Option<SecondPart> {
        self.window.map(|_| std::mem::take(&mut self.second))
    }

    fn second_at(&self, now_ns: u64) -> Option<u32> {
        let elapsed_ns = now_ns.saturating_sub(self.window?.begin_ns);
        Some(u32::try_from(elapsed_ns / SECOND_NS).unwrap_or(u32::MAX))
    }

    fn counts(&self, sent: Sent) -> bool {
        let start_ns = if self.is_open_loop { sent.due_ns } else { sent.sent_ns };
        self.window
            .is_some_and(|window| (window.open_ns..window.end_ns).contains(&start_ns))
    }
}

const SECOND_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_ends_a_second_after_the_one_before_it() {
        let mut recorder = Recorder::new(false, false);
        assert_eq!(recorder.second_ends_ns(), u64::MAX, "before there is a window");
        recorder.set_window(Window {
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
