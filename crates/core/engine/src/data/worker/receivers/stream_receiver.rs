//! Receiving from a byte stream (TCP, Multipath TCP, SCTP).

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use linerate_model::spec::ReceiveWait;
use linerate_model::workload::Shape;
use linerate_model::{TestSpec, Transport};
use linerate_sys::{clock, sockopt, stream_io};

use super::read_place::ReadPlace;
use crate::data::worker::Target;
use crate::data::worker::scratch::RECEIVE_BYTES;
use crate::data::worker::{Ended, Pump, Pumped, ReadObserver, Scratch};
use crate::measure::counters::StreamCounters;

/// Where the bytes go.
pub(crate) enum Sink {
    /// Into memory, as an application would take them, and nowhere else.
    Memory,
    /// Discarded inside the kernel (`MSG_TRUNC`, tcp(7)).
    Discard,
    /// Into a file.
    File(File),
}

/// Receives until stopped.
pub(crate) struct StreamReceiver {
    fd: Arc<OwnedFd>,
    counters: Arc<StreamCounters>,
    sink: Sink,
    block_len: u64,
    total: u64,
    place: ReadPlace,
    /// The receive queue may fill for a while before it is read again.
    may_pause: bool,
    target: Option<Arc<Target>>,
    /// Sees everything that is read into memory.
    pub observer: Option<Box<dyn ReadObserver>>,
    /// Most bytes of one read into memory, at most [`RECEIVE_BYTES`].
    pub read_len: usize,
    /// The peer's end of the stream is what ends the test: it is noticed at once, for one more call
    /// whenever the queue is empty.
    pub awaits_end: bool,
}

/// Below this rate few wake-ups could be spared, and a pause would show in short intervals.
const PAUSE_MIN_RATE_BPS: u64 = 2_000_000_000;
/// Waits of receivers in the order in which they are compared: what may gain most is first.
/// The longest pause bounds how much later data is read. Spinning and the short pause come first,
/// since a test begins with either of them.
const STREAM_WAITS: [ReceiveWait; 4] = [
    ReceiveWait::Spin,
    ReceiveWait::Pause(10),
    ReceiveWait::Pause(100),
    ReceiveWait::Event,
];
const STREAM_WAITS_ASLEEP: [ReceiveWait; 3] = [
    ReceiveWait::Pause(100),
    ReceiveWait::Pause(10),
    ReceiveWait::Event,
];
/// Pauses of UDP are short: data that exceeds the socket's buffer is lost.
const DATAGRAM_WAITS: [ReceiveWait; 2] = [ReceiveWait::Pause(10), ReceiveWait::Event];
/// Limit of calls per pump, for fairness to the other streams.
const CALLS_PER_PUMP: u32 = 18;
/// Those before the rate of copying is measured: the reads that follow are all of the longest kind.
const UNTIMED_CALLS: u32 = 8;
/// First read of a queue: about the largest segment. The kernel acknowledges what has arrived when
/// a read returns. A sender that keeps little in flight, as BBR does, waits for that; one that
/// fills the queue does not, and longer reads cost less.
const FIRST_READ_BYTES: usize = 64 * 1024;
/// Most bytes of a read of small blocks that arrive in small segments. Writes gather in one segment
/// while another one is unacknowledged (RFC 896), so a packet holds little more than a segment, and
/// costs as much as a large one. A sender faster than its path gathers more once the window is
/// closed. Reads of all that is queued keep it open; iperf3 reads one block per call. Where
/// segments are large, as over loopback, longer reads are cheaper.
const SMALL_BLOCK_READ_BYTES: usize = 16 * 1024;
/// A discarding read has no buffer to fit into cache.
const DISCARD_BYTES: usize = 4 * 1024 * 1024;
/// More than this at once means that the window, not the sender, is about to limit: a pause would
/// make it worse.
const PAUSE_TAKEN_MAX_BYTES: usize = 2 * 1024 * 1024;

impl StreamReceiver {
    pub(crate) fn new(
        fd: Arc<OwnedFd>,
        counters: Arc<StreamCounters>,
        sink: Sink,
        block_len: u32,
        may_pause: bool,
        target: Option<Arc<Target>>,
    ) -> Self {
        let read_len = longest_read(&fd, block_len as usize);
        Self {
            fd,
            counters,
            sink,
            block_len: u64::from(block_len.max(1)),
            total: 0,
            place: ReadPlace::default(),
            may_pause,
            target,
            observer: None,
            read_len,
            awaits_end: false,
        }
    }

    fn read(&mut self, scratch: &mut Scratch, len: usize) -> io::Result<usize> {
        let fd = self.fd.as_fd();
        if let Sink::Discard = self.sink {
            return stream_io::recv_discard(fd, len);
        }

        // One buffer for all streams of a worker, so that it stays in a cache of its CPU.
        let buffer = &mut scratch.bytes()?[self.place.range(self.total, len)];
        let n = stream_io::recv(fd, buffer)?;

        if let Sink::File(file) = &mut self.sink {
            file.write_all(&buffer[..n])?;
        }

        if let Some(observer) = &mut self.observer
            && n > 0
        {
            observer.observe(&buffer[..n]);
        }

        Ok(n)
    }

    /// Most bytes of this call of a pump: a queue that the calls before it did not empty is long.
    fn capacity(&self, call: u32) -> usize {
        match self.sink {
            Sink::Memory | Sink::File(_) => self
                .read_len
                // One stream of iperf3 3.22 under BBR had 34 Gbit/s with reads of 256 KiB from the
                // start, 52 with growing ones.
                .min(FIRST_READ_BYTES.saturating_mul(1 << call)),
            Sink::Discard => DISCARD_BYTES,
        }
    }

    /// The queue is empty after `taken` bytes.
    fn emptied(&self, taken: usize) -> Pumped {
        // After a long queue the sender waits for the window; a pause would add to its wait.
        if self.may_pause && (1..PAUSE_TAKEN_MAX_BYTES).contains(&taken) {
            Pumped::Drained
        } else {
            Pumped::Blocked
        }
    }

    /// Counts every byte read. Blocks are derived from bytes, because the sizes of reads mean
    /// nothing.
    fn account(&mut self, n: usize) {
        let blocks_before = self.total / self.block_len;
        self.total += n as u64;
        self.counters
            .add(n as u64, self.total / self.block_len - blocks_before);

        if let Some(target) = &self.target {
            target.add(n as u64);
        }
    }
}

impl Pump for StreamReceiver {
    fn pump(&mut self, _: u64, scratch: &mut Scratch) -> Pumped {
        let mut taken = 0;
        let mut timed_from = None;

        for call in 0..CALLS_PER_PUMP {
            if call == UNTIMED_CALLS {
                timed_from = Some((clock::monotonic_ns(), taken));
            }

            let len = self.capacity(call).min(scratch.room_bytes - taken);
            if len == 0 {
                return Pumped::Again;
            }

            match self.read(scratch, len) {
                Ok(0) => return Pumped::Ended(Ended::Eof),
                Ok(n) => {
                    self.account(n);
                    taken += n;
                    // A short read means that the queue is empty (epoll(7), "Questions and
                    // answers"), but not whether the peer has closed behind it.
                    if n < len && !self.awaits_end {
                        return self.emptied(taken);
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return self.emptied(taken),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Pumped::Ended(Ended::Failed(e)),
            }
        }

        // Reached only when no call found the queue empty: such reads are of one length and depend
        // on the copy alone.
        if let Some((since_ns, before)) = timed_from {
            self.place.take(
                clock::monotonic_ns().saturating_sub(since_ns),
                taken - before,
            );
        }

        Pumped::Again
    }
}

/// Most bytes of one read of a connection whose sender writes blocks of `block_len` bytes.
fn longest_read(fd: impl AsFd, block_len: usize) -> usize {
    let small_segments = sockopt::TCP_MAXSEG
        .get(&fd)
        .is_ok_and(|mss| mss as usize <= SMALL_BLOCK_READ_BYTES);
    // A receiver that empties its queue keeps the window open, and small writes then leave as small
    // packets: ten streams of 1,400-byte writes had 3.8 Gbit/s with long reads, 9.4 with these.
    // Loopback has segments of 64 KiB, where short reads cost a fifth.
    if small_segments && block_len <= SMALL_BLOCK_READ_BYTES {
        SMALL_BLOCK_READ_BYTES
    } else {
        RECEIVE_BYTES
    }
}

/// Waits that receivers of a test may use. They sleep until data arrives where a delay is what is
/// measured, with a window that the user fixed, which is small compared to what arrives during a
/// pause, and with a rate so low that little is gained.
pub(crate) fn receive_waits(spec: &TestSpec, may_spin: bool) -> &'static [ReceiveWait] {
    let workload = &spec.workload;
    let measures_delay = workload.trip_times
        || workload.histogram.is_some()
        || matches!(workload.shape, Shape::BounceBack(_));

    let is_fast = spec
        .pacing
        .rate_bps
        .is_none_or(|rate| rate >= PAUSE_MIN_RATE_BPS);
    // A pause would be measured as delay, or fill a small window and stop the sender.
    if measures_delay || spec.socket.window_bytes.is_some() || !is_fast {
        &[ReceiveWait::Event]
    } else if spec.transport == Transport::Udp {
        &DATAGRAM_WAITS
    } else if may_spin {
        &STREAM_WAITS
    } else {
        &STREAM_WAITS_ASLEEP
    }
}

/// Receivers of a test may read later than data arrives.
pub(crate) fn may_pause(spec: &TestSpec) -> bool {
    receive_waits(spec, false).len() > 1
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use linerate_sys::page_buffer::PAGE_ALIGNMENT;

    use super::*;

    /// Offset of each read in a page, and its length.
    #[derive(Clone, Default)]
    struct Reads(Arc<std::sync::Mutex<Vec<(usize, usize)>>>);

    impl Reads {
        fn all(&self) -> Vec<(usize, usize)> {
            self.0.lock().expect("no panic").clone()
        }
    }

    impl ReadObserver for Reads {
        fn observe(&mut self, bytes: &[u8]) {
            self.0
                .lock()
                .expect("no panic")
                .push((bytes.as_ptr().addr() % PAGE_ALIGNMENT, bytes.len()));
        }
    }

    const LARGE_BLOCK: u32 = 128 << 10;
    const SMALL_BLOCK: u32 = 8 << 10;

    /// A receiver into memory with what observes it.
    fn observed(receiver: TcpStream, block_len: u32) -> (StreamReceiver, Reads) {
        let reads = Reads::default();
        let mut pump = StreamReceiver::new(
            Arc::new(receiver.into()),
            Arc::default(),
            Sink::Memory,
            block_len,
            true,
            None,
        );
        pump.observer = Some(Box::new(reads.clone()));

        (pump, reads)
    }

    /// As many bytes as the sockets hold, none of them read.
    fn queued_stream() -> (TcpStream, TcpStream) {
        queued_in_segments(None)
    }

    /// The same in segments of at most this number of bytes.
    fn queued_in_segments(mss_bytes: Option<u32>) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        if let Some(mss_bytes) = mss_bytes {
            sockopt::TCP_MAXSEG
                .set(&listener, mss_bytes)
                .expect("a segment size");
        }

        sockopt::SO_RCVBUF
            .set(&listener, 1 << 20)
            .expect("a buffer");
        let mut sender =
            TcpStream::connect(listener.local_addr().expect("bound")).expect("a connection");
        let (receiver, _) = listener.accept().expect("a connection");

        sender.set_nonblocking(true).expect("a socket");
        receiver.set_nonblocking(true).expect("a socket");
        while sender.write(&[0; 1 << 16]).is_ok() {}
        (sender, receiver)
    }

    #[test]
    fn the_first_read_of_a_queue_is_short_so_that_its_acknowledgement_is_early() {
        let (_sender, receiver) = queued_stream();
        let (mut pump, reads) = observed(receiver, LARGE_BLOCK);
        pump.pump(0, &mut Scratch::default());

        let lengths: Vec<_> = reads.all().iter().map(|(_, len)| *len).collect();
        assert_eq!(lengths[0], 64 << 10);
        assert!(lengths[1] > 64 << 10, "{lengths:?}");
    }

    #[test]
    fn small_blocks_in_small_segments_are_read_in_portions() {
        let longest = |mss_bytes, block_len| {
            let (_sender, receiver) = queued_in_segments(mss_bytes);
            let (mut pump, reads) = observed(receiver, block_len);
            pump.pump(0, &mut Scratch::default());
            reads
                .all()
                .iter()
                .map(|(_, len)| *len)
                .max()
                .expect("a read")
        };
        assert_eq!(longest(Some(1448), SMALL_BLOCK), 16 << 10);
        assert!(longest(Some(1448), LARGE_BLOCK) > 64 << 10);
        assert!(
            longest(None, SMALL_BLOCK) > 64 << 10,
            "one segment of a loopback holds several blocks"
        );
    }

    #[test]
    fn a_read_begins_in_a_page_where_its_position_in_the_stream_does() {
        let (_sender, receiver) = queued_stream();
        let (mut pump, reads) = observed(receiver, LARGE_BLOCK);
        pump.read_len = 10_000;
        pump.pump(0, &mut Scratch::default());

        let begins: Vec<_> = reads.all().iter().map(|(begin, _)| *begin).collect();
        assert_eq!(
            begins[..4],
            [0, 10_000 % 4096, 20_000 % 4096, 30_000 % 4096]
        );
    }

    #[test]
    fn a_long_queue_leaves_the_distance_that_has_nothing_to_compare_with() {
        let (_sender, receiver) = queued_stream();
        let (mut pump, reads) = observed(receiver, LARGE_BLOCK);
        pump.read_len = 4096;

        for _ in 0..2 {
            assert!(matches!(
                pump.pump(0, &mut Scratch::default()),
                Pumped::Again
            ));
        }

        let reads = reads.all();
        assert!(reads.iter().all(|(_, len)| *len == 4096));
        assert_ne!(reads[0].0, reads[CALLS_PER_PUMP as usize].0);
    }
}
