//! Receiving UDP datagrams and reading their numbers.

use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use linerate_model::spec::SequenceCheck;
use linerate_sys::clock::{self, RealtimeOffset};
use linerate_sys::sockopt;
use linerate_sys::udp::Message;

use crate::data::worker::Target;
use crate::data::worker::scratch::RECEIVE_SLOTS;
use crate::data::worker::{DatagramKind, Ended, Pump, Pumped, Scratch, SequenceReader};
use crate::measure::counters::StreamCounters;

/// Receives until stopped and checks the number of every datagram.
pub(crate) struct DatagramReceiver {
    fd: Arc<OwnedFd>,
    counters: Arc<StreamCounters>,
    sequence: Box<dyn SequenceReader>,
    /// Between the clock of the kernel's receive stamps and ours.
    offset: RealtimeOffset,
    /// The sender's last datagram has arrived.
    is_over: bool,
    jitter_resets_seen: u64,
    target: Option<Arc<Target>>,
    pauses: Option<PauseGuard>,
}

/// Limit of receive calls per pump, for fairness to the other streams.
const CALLS_PER_PUMP: u32 = 8;
/// A buffer of which more than this part was full after a pause might overflow in another one,
/// which would count as loss.
const FULL_SHARE_MAX: u32 = 4;
/// Time without pauses after that.
const NO_PAUSE_NS: u64 = 100_000_000;

impl DatagramReceiver {
    pub(crate) fn new(
        fd: Arc<OwnedFd>,
        counters: Arc<StreamCounters>,
        sequence: Box<dyn SequenceReader>,
        target: Option<Arc<Target>>,
    ) -> Self {
        Self {
            fd,
            counters,
            sequence,
            offset: RealtimeOffset::read(),
            is_over: false,
            jitter_resets_seen: 0,
            target,
            pauses: None,
        }
    }

    /// Lets the receive queue fill for a while before it is read again, if the receive buffer has
    /// room for that.
    pub(crate) fn pausing(mut self, may_pause: bool) -> Self {
        self.pauses = may_pause.then(PauseGuard::default);
        self
    }

    /// These have arrived before there was a worker.
    pub(crate) fn after(mut self, early: &[(Vec<u8>, u64)]) -> Self {
        let mut bytes = 0;
        let mut datagrams = 0;
        for (datagram, arrival_ns) in early {
            let (b, d) = self.take(datagram, datagram.len(), *arrival_ns);
            bytes += b;
            datagrams += d;
        }

        self.account(bytes, datagrams);
        self
    }

    /// One buffer from the kernel: a datagram, or several of the same length in a row.
    fn take(&mut self, data: &[u8], segment_len: usize, arrival_ns: u64) -> (u64, u64) {
        let mut bytes = 0;
        let mut datagrams = 0;
        for datagram in data.chunks(segment_len.max(1)) {
            match self.sequence.take(datagram, arrival_ns) {
                DatagramKind::Data => {}
                // A forged or late datagram of an earlier test on this port counts as nothing.
                DatagramKind::Foreign => continue,
                DatagramKind::Last => self.is_over = true,
            }

            bytes += datagram.len() as u64;
            datagrams += 1;
        }

        (bytes, datagrams)
    }

    /// The first head of a buffer represents all its datagrams.
    fn take_first(&mut self, message: &Message<'_>, arrival_ns: u64) -> (u64, u64) {
        let datagrams = message.datagrams() as u64;
        match self
            .sequence
            .take_burst(message.data, datagrams, arrival_ns)
        {
            DatagramKind::Data => {}
            DatagramKind::Foreign => return (0, 0),
            DatagramKind::Last => self.is_over = true,
        }

        (message.full_len as u64, datagrams)
    }

    fn account(&mut self, bytes: u64, datagrams: u64) {
        self.counters.add(bytes, datagrams);
        self.sequence.publish(&self.counters);
        if let Some(target) = &self.target {
            target.add(bytes);
        }
    }

    /// The queue is empty.
    fn emptied(&mut self, now_ns: u64) -> Pumped {
        match &mut self.pauses {
            Some(guard) if now_ns >= guard.not_before_ns => {
                guard.is_due = true;
                Pumped::Drained
            }
            _ => Pumped::Blocked,
        }
    }

    fn follow_jitter_resets(&mut self) {
        let resets = self.counters.jitter_resets();
        if resets != self.jitter_resets_seen {
            self.jitter_resets_seen = resets;
            self.sequence.reset_jitter();
        }
    }
}

impl Pump for DatagramReceiver {
    fn pump(&mut self, now_ns: u64, scratch: &mut Scratch) -> Pumped {
        let fd = Arc::clone(&self.fd);
        self.follow_jitter_resets();

        if let Some(guard) = &mut self.pauses {
            guard.check(&fd, now_ns);
        }

        if self.is_over {
            return Pumped::Ended(Ended::Eof);
        }

        let mut room = scratch.room_bytes as u64;
        for _ in 0..CALLS_PER_PUMP {
            if room == 0 {
                return Pumped::Again;
            }

            let check = self.sequence.check();
            let batch = match check {
                SequenceCheck::FirstOfBurst => scratch.headers(),
                _ => scratch.datagrams(),
            };
            let (batch, messages) =
                match batch.and_then(|batch| batch.recv(&fd).map(|n| (batch, n))) {
                    Ok(received) => received,
                    Err(e) if e.kind() == ErrorKind::WouldBlock => return Pumped::Blocked,
                    Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                    // A datagram of ours bounced; what the peer sends is not affected.
                    Err(e) if e.kind() == ErrorKind::ConnectionRefused => continue,
                    Err(e) => return Pumped::Ended(Ended::Failed(e)),
                };

            // One offset per batch: receive stamps are of the wall clock, which may be stepped
            // while the test runs.
            self.offset.refresh();
            // After the call: a datagram without a stamp arrived at the latest now.
            let read_ns = clock::monotonic_ns();
            let mut bytes = 0;
            let mut datagrams = 0;

            for i in 0..messages {
                let message = batch.message(i);
                let arrival_ns = message.arrival_ns(self.offset, read_ns);
                let (b, d) = match check {
                    SequenceCheck::FirstOfBurst => self.take_first(&message, arrival_ns),
                    _ => self.take(message.data, message.segment_len, arrival_ns),
                };
                bytes += b;
                datagrams += d;
            }

            self.account(bytes, datagrams);
            room = room.saturating_sub(bytes);
            if self.is_over {
                return Pumped::Ended(Ended::Eof);
            }
            // Fewer than the slots means an empty queue; another call would only return EAGAIN.
            if messages < RECEIVE_SLOTS {
                return self.emptied(now_ns);
            }
        }

        Pumped::Again
    }
}

/// Ends pauses of a receiver whose buffer they nearly fill.
#[derive(Default)]
struct PauseGuard {
    /// The queue was empty after the last read.
    is_due: bool,
    /// No pause before this time.
    not_before_ns: u64,
}

impl PauseGuard {
    /// Checks the buffer before it is read again.
    fn check(&mut self, fd: impl AsFd, now_ns: u64) {
        let is_full = |memory: sockopt::ReceiveMemory| {
            memory.used_bytes > memory.limit_bytes / FULL_SHARE_MAX
        };
        // Kernels before 4.12 have no `SO_MEMINFO`: a buffer of unknown level counts as full.
        if std::mem::take(&mut self.is_due) && sockopt::receive_memory(&fd).map_or(true, is_full) {
            self.not_before_ns = now_ns.saturating_add(NO_PAUSE_NS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::worker::tests::connected;

    struct Everything;

    impl SequenceReader for Everything {
        fn take(&mut self, _: &[u8], _: u64) -> DatagramKind {
            DatagramKind::Data
        }

        fn publish(&mut self, _: &StreamCounters) {}

        fn reset_jitter(&mut self) {}
    }

    #[test]
    fn receiver_pauses_until_a_pause_has_filled_its_buffer() {
        let (sender, receiver) = connected();
        let memory = sockopt::receive_memory(&receiver).expect("Linux 4.12 or later");

        let receiver = DatagramReceiver::new(
            Arc::new(receiver.into()),
            Arc::default(),
            Box::new(Everything),
            None,
        );
        let (mut receiver, mut scratch) = (receiver.pausing(true), Scratch::default());
        let mut pump = |now_ns| receiver.pump(now_ns, &mut scratch);

        sender.send(&[7; 100]).expect("room");
        assert!(matches!(pump(1), Pumped::Drained));
        sender.send(&[7; 100]).expect("room");
        assert!(
            matches!(pump(2), Pumped::Drained),
            "a little was in the buffer"
        );

        // Half of the buffer at least: what a message occupies is more than its bytes.
        let messages = memory.limit_bytes / 2 / 8192;
        (0..messages).for_each(|_| {
            sender.send(&[7; 8192]).expect("room");
        });
        while matches!(pump(3), Pumped::Again) {}
        sender.send(&[7; 100]).expect("room");
        assert!(
            matches!(pump(4), Pumped::Blocked),
            "half of the buffer was full"
        );
        sender.send(&[7; 100]).expect("room");
        assert!(
            matches!(pump(4 + NO_PAUSE_NS), Pumped::Drained),
            "later it is tried again"
        );
    }
}
