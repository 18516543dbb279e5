//! The end of a test: senders stop, receivers read what is under way.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use linerate_model::{StreamRole, Transport};
use linerate_sys::poll::{self, Interest};
use linerate_sys::{clock, sockopt, stream_io};

use super::{Drain, End, RunEvent, STOP_TIMEOUT_NS, Stop, TestRun};
use crate::data::worker::WorkerPool;
use crate::reporter::Reporter;

impl TestRun {
    /// A limited test ends when its last byte is acknowledged, so that its rate is the network's
    /// and not that of a copy into the send buffer.
    pub(super) fn check_send_queues(&mut self, now_ns: u64, events: &mut Vec<RunEvent>) {
        let Some(End::Draining(drain)) = self.started.as_ref().map(|s| &s.end) else {
            return;
        };
        if now_ns < drain.poll_ns {
            return;
        }

        let bytes = u64::MAX - self.outstanding_bytes();
        if let Some(End::Draining(drain)) = self.started.as_mut().map(|s| &mut s.end)
            && drain.is_over(now_ns, bytes)
        {
            self.reach_end(events);
        }
    }

    /// Bytes of the senders that the peer has not acknowledged.
    pub(crate) fn outstanding_bytes(&self) -> u64 {
        if self.settings.spec.transport == Transport::Udp {
            return 0;
        }

        self.of_role(StreamRole::Sender)
            .map(|s| sockopt::outq_bytes(&s.fd).map_or(0, u64::from))
            .sum()
    }

    /// The peer has ended the test: receives what it sent before, then stops. [`RunEvent::Stopped`]
    /// follows.
    pub(crate) fn request_stop(&mut self, now_ns: u64) {
        if !matches!(self.stop, Stop::NotAsked) {
            return;
        }

        match Drain::of_amount(&self.settings.spec, now_ns) {
            Some(drain) if self.receives() && self.pool.is_some() => {
                self.stop = Stop::Draining(drain);
            }
            _ => self.stop_workers(now_ns, true),
        }
    }

    /// With `drain` the receivers read what has already arrived before they acknowledge.
    pub(super) fn stop_workers(&mut self, now_ns: u64, drain: bool) {
        if matches!(self.stop, Stop::Waiting { .. } | Stop::Done) {
            return;
        }

        let missing = self.pool.as_ref().map_or(0, WorkerPool::size);
        if let Some(pool) = &self.pool {
            pool.request_stop(drain);
        }

        // Without workers no notice wakes the owner.
        let timeout_ns = if missing == 0 { 0 } else { STOP_TIMEOUT_NS };
        self.stop = Stop::Waiting {
            missing,
            deadline_ns: now_ns.saturating_add(timeout_ns),
        };
    }

    /// Stops the senders and waits until it is done; a matter of microseconds.
    pub(crate) fn stop_now(&mut self, reporter: &mut Reporter<'_>) {
        self.stop_workers(clock::monotonic_ns(), false);
        while let Stop::Waiting { deadline_ns, .. } = self.stop {
            self.poll(clock::monotonic_ns(), reporter);
            if matches!(self.stop, Stop::Waiting { .. }) {
                let left_ns = deadline_ns.saturating_sub(clock::monotonic_ns());
                // An error ends in the deadline.
                let _ = poll::wait_fd(
                    self.notice_fd(),
                    Interest::READ,
                    Some(Duration::from_nanos(left_ns)),
                );
            }
        }
    }

    /// The time of the test is up: stops the senders and takes their totals. Receivers continue.
    pub(crate) fn end_senders(&mut self, reporter: &mut Reporter<'_>) {
        self.stop_now(reporter);
        self.sampler.end_time();

        for open in &self.streams {
            if open.stream.role == StreamRole::Sender {
                self.sampler.end_stream(open.stream.id);
            }
        }
    }

    /// Every byte stream that is received here has been read to its end.
    pub(crate) fn has_read_all_streams(&self) -> bool {
        self.of_role(StreamRole::Receiver)
            .all(|s| s.ended || has_nothing_left(&s.fd))
    }

    /// This end receives byte streams, whose end is seen.
    pub(crate) fn receives_byte_streams(&self) -> bool {
        self.settings.spec.transport != Transport::Udp && self.receives()
    }

    /// Ends the workers.
    pub(crate) fn quit(&mut self) {
        self.pool = None;
    }
}

/// The peer has closed this stream, and all that came before has been read. A worker that was woken
/// for data and end at once reads the data and waits.
fn has_nothing_left(fd: impl AsFd) -> bool {
    match stream_io::peek(&fd, &mut [0]) {
        Ok(bytes) => bytes == 0,
        Err(error) => error.kind() != io::ErrorKind::WouldBlock,
    }
}
