//! Headers of datagrams, which dialects write and read.

use linerate_model::TestSpec;
use linerate_model::spec::SequenceCheck;

use crate::measure::counters::StreamCounters;

/// Writes the head of each datagram of a sender.
pub(crate) trait SequenceWriter: Send {
    /// Datagram `number`, from 1, leaves now; `now_ns` is the monotonic clock.
    fn write(&mut self, datagram: &mut [u8], number: u64, now_ns: u64);
}

/// Reads the heads of what a receiver gets.
pub(crate) trait SequenceReader: Send {
    /// A datagram that arrived at `arrival_ns` of the monotonic clock.
    fn take(&mut self, datagram: &[u8], arrival_ns: u64) -> DatagramKind;
    /// Datagrams whose heads are read.
    fn check(&self) -> SequenceCheck {
        SequenceCheck::EveryDatagram
    }
    /// The first of several datagrams in a row, of which the others are not read.
    fn take_burst(&mut self, first: &[u8], _datagrams: u64, arrival_ns: u64) -> DatagramKind {
        self.take(first, arrival_ns)
    }
    /// Publishes the state of the sequence.
    fn publish(&mut self, counters: &StreamCounters);
    /// Starts jitter afresh.
    fn reset_jitter(&mut self);
}

/// Kind of a datagram.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DatagramKind {
    /// Payload.
    Data,
    /// Nothing to be counted.
    Foreign,
    /// The sender has finished.
    Last,
}

/// The datagram headers of a dialect.
#[derive(Clone, Copy)]
pub(crate) struct DatagramFormat {
    pub writer: fn(&TestSpec) -> Box<dyn SequenceWriter>,
    pub reader: fn(&TestSpec) -> Box<dyn SequenceReader>,
}
