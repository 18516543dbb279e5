//! Data plane threads.
//!
//! A worker owns its streams: their sockets, one scratch memory and the right to write their
//! counters. It runs one loop, whatever the streams do; what differs is a [`Pump`] per stream,
//! chosen before the start. The control thread reaches it through [`RunControl`] only.
//!
//! Sketch of the costs: a clock reading and a flag per pump call (about 30 ns) against at least one
//! system call that moves up to 1 MiB (about 100 µs), so the loop stays below 0.1 % of the work
//! even with one stream.

mod metered;
mod receivers;
mod scratch;
mod senders;
mod sequence;
mod threads;

use std::io;

pub(crate) use metered::Metered;
pub(crate) use receivers::datagram_receiver::DatagramReceiver;
pub(crate) use receivers::stream_receiver::{Sink, StreamReceiver, may_pause, receive_waits};
pub(crate) use scratch::Scratch;
pub(crate) use senders::datagram_sender::{DatagramSender, Datagrams, datagrams_per_call};
pub(crate) use senders::frame_payload::FramePayload;
#[cfg(all(test, feature = "native"))]
pub(crate) use senders::frame_payload::METER_NS;
pub(crate) use senders::pace::kernel_pacing_bytes_per_s;
pub(crate) use senders::repeated_block::RepeatedBlock;
pub(crate) use senders::stream_sender::{
    SUBMISSION_BYTES, Source, StreamSender, blocks_per_memory, is_adjustable, paces_below_block,
    usual_call_bytes,
};
pub(crate) use sequence::{DatagramFormat, DatagramKind, SequenceReader, SequenceWriter};
pub(crate) use threads::assignments::StreamAssignment;
pub(crate) use threads::control::{Notice, RunControl};
pub(crate) use threads::pool::WorkerPool;
pub(crate) use threads::target::Target;

/// Result of one call of [`Pump::pump`].
pub(crate) enum Pumped {
    /// More can be done at once.
    Again,
    /// Nothing until the socket is ready again.
    Blocked,
    /// Nothing before this monotonic time, ns.
    Until(u64),
    /// Nothing before this time, and then at once: the last stretch is spent spinning.
    Precisely(u64),
    /// As blocked, after data was read: the worker may let the receive queue fill before it reads
    /// again, because a wake-up per segment costs more than it gains.
    Drained,
    /// The stream has ended.
    Ended(Ended),
}

/// Why a stream has ended.
pub(crate) enum Ended {
    /// The amount of the test, or the file, is used up.
    AmountReached,
    /// The peer closed the stream.
    Eof,
    /// The operating system refused.
    Failed(io::Error),
}

/// One stream's work, in portions small enough to notice a stop in time.
pub(crate) trait Pump: Send {
    /// It reads and writes in turns on one socket.
    fn is_duplex(&self) -> bool {
        false
    }
    /// Bytes moved so far that are no payload; they count against a quota as well.
    fn other_bytes(&self) -> u64 {
        0
    }
    /// From now on one call submits `blocks` blocks, if the user left that open.
    fn set_blocks_per_call(&mut self, _blocks: u16) {}
    /// Moves a portion.
    fn pump(&mut self, now_ns: u64, scratch: &mut Scratch) -> Pumped;
}

/// Observes what a receiver reads.
pub(crate) trait ReadObserver: Send {
    /// The next bytes of the stream; one call per read.
    fn observe(&mut self, bytes: &[u8]);
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    /// A sender and the receiver it is connected to.
    pub(super) fn connected() -> (UdpSocket, UdpSocket) {
        let [sender, receiver] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a port"));
        sender
            .connect(receiver.local_addr().expect("an address"))
            .expect("a route");
        (sender, receiver)
    }
}
