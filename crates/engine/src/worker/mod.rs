//! Data plane threads.
//!
//! A worker owns its streams: their sockets, one scratch memory and the right to write their counters. It runs one
//! loop, whatever the streams do; what differs is a [`Pump`] per stream, chosen before the start. The control thread
//! reaches it through [`RunControl`] only.
//!
//! Sketch of the costs: a clock reading and a flag per pump call (about 30 ns) against at least one system call that
//! moves up to 1 MiB (about 100 µs), so the loop stays below 0.1 % of the work even with one stream.

mod datagram_receiver;
mod datagram_sender;
mod numbering;
mod stream_receiver;
mod stream_sender;

use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_model::{StreamId, StreamRole};
use linerate_sys::poll::{Epoll, EventFd, Interest, Ready};
use linerate_sys::udp::RecvBatch;
use linerate_sys::{OsError, clock, cpu};

pub(crate) use datagram_receiver::DatagramReceiver;
pub(crate) use datagram_sender::{DatagramSender, Datagrams, datagrams_per_call};
pub(crate) use numbering::{Arrival, Arrivals, Numbering};
pub(crate) use stream_receiver::{Sink, StreamReceiver};
pub(crate) use stream_sender::{
    SUBMISSION_BYTES, Source, StreamSender, blocks_per_memory, paces_below_block, submission_bytes,
};

/// What one call of [`Pump::pump`] led to.
#[derive(Debug)]
pub(crate) enum Pumped {
    /// More can be done at once.
    Again,
    /// Nothing until the socket is ready again.
    Blocked,
    /// Nothing before this monotonic time, ns.
    Until(u64),
    /// Nothing before this time, and then at once: the last stretch is spent spinning.
    Precisely(u64),
    /// Better nothing before this time, although data may arrive earlier: waking for each segment costs more than it
    /// brings.
    Nap(u64),
    /// The stream is through.
    Ended(Ended),
}

/// Why a stream is through.
#[derive(Debug)]
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
    /// The socket.
    fn fd(&self) -> BorrowedFd<'_>;
    /// What this end does on the stream; decides which readiness matters.
    fn role(&self) -> StreamRole;
    /// It reads and writes in turns on one socket.
    fn converses(&self) -> bool {
        false
    }
    /// Moves a portion.
    fn pump(&mut self, now_ns: u64, scratch: &mut Scratch) -> Pumped;
}

/// Looks at what a receiver reads, piece by piece.
pub(crate) trait Observer: Send {
    /// The next bytes of the stream; one call per read.
    fn saw(&mut self, bytes: &[u8]);
}

/// Memory that the streams of one worker share.
#[derive(Default)]
pub(crate) struct Scratch {
    bytes: Vec<u8>,
    datagrams: Option<RecvBatch>,
    headers: Option<RecvBatch>,
}

/// Room for one receive call. It stays in the processor's second-level cache beside what is read; larger buffers make
/// fewer calls and are slower.
const RECEIVE_BYTES: usize = 256 * 1024;
/// Datagram slots of one receive call; each holds the largest coalesced buffer. Together they stay in the second-level
/// cache: with 32 slots a receiver is a tenth slower, and loses what a fast sender sends.
const RECEIVE_SLOTS: usize = 4;
/// Largest UDP payload, coalesced or not.
const SLOT_BYTES: usize = 65_535;
/// Room for a datagram's header.
const HEADER_SLOT_BYTES: usize = 64;

impl Scratch {
    fn bytes(&mut self) -> &mut [u8] {
        if self.bytes.is_empty() {
            self.bytes = vec![0; RECEIVE_BYTES];
        }
        &mut self.bytes
    }

    fn datagrams(&mut self) -> &mut RecvBatch {
        self.datagrams
            .get_or_insert_with(|| RecvBatch::new(RECEIVE_SLOTS, SLOT_BYTES))
    }

    /// Slots that hold the header of a datagram and no more.
    fn headers(&mut self) -> &mut RecvBatch {
        self.headers
            .get_or_insert_with(|| RecvBatch::new(RECEIVE_SLOTS, HEADER_SLOT_BYTES))
    }
}

/// What a worker tells the control thread.
#[derive(Debug)]
pub(crate) enum Notice {
    /// A stream is through.
    Ended(StreamId, Ended),
    /// The receivers together reached the amount of the test.
    TargetReached,
    /// The worker saw the stop: its senders are silent and its receivers have read what had arrived.
    Stopped,
}

/// How far the data plane of one test may go; only ever grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
#[repr(u8)]
enum Phase {
    Run,
    /// Senders stop; receivers go on.
    StopSending,
    /// The same, but receivers first read what has arrived, then acknowledge.
    StopAndDrain,
    Quit,
}

/// Shared between the control thread and the workers of one test.
#[derive(Debug)]
pub(crate) struct RunControl {
    phase: AtomicU8,
    notices: Mutex<Vec<Notice>>,
    wake: EventFd,
}

impl RunControl {
    pub(crate) fn new() -> linerate_sys::Result<Arc<Self>> {
        let wake = EventFd::new()?;
        Ok(Arc::new(Self {
            phase: AtomicU8::new(Phase::Run as u8),
            notices: Mutex::default(),
            wake,
        }))
    }

    fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Run,
            1 => Phase::StopSending,
            2 => Phase::StopAndDrain,
            _ => Phase::Quit,
        }
    }

    /// Leaves a word for the control thread.
    pub(crate) fn notify(&self, notice: Notice) {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
        self.wake.signal();
    }

    /// What the workers said since the last call.
    pub(crate) fn take_notices(&self) -> Vec<Notice> {
        self.wake.drain();
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Readable when there are notices.
    pub(crate) fn notice_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

/// The threads of one test.
pub(crate) struct Crew {
    control: Arc<RunControl>,
    members: Vec<Member>,
    pin_to: Option<u32>,
    /// Streams taken on so far; decides who gets the next one.
    taken_on: usize,
}

struct Member {
    wake: Arc<EventFd>,
    inbox: Arc<Inbox>,
    thread: Option<JoinHandle<()>>,
}

/// Streams on their way to a worker that runs already.
#[derive(Default)]
struct Inbox {
    is_full: AtomicBool,
    streams: Mutex<Vec<Assignment>>,
}

impl Inbox {
    fn put(&self, stream: Assignment) {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
        self.is_full.store(true, Ordering::Release);
    }

    fn take(&self) -> Vec<Assignment> {
        if !self.is_full.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_full.store(false, Ordering::Release);
        std::mem::take(&mut streams)
    }
}

/// A stream on its way to a worker.
pub(crate) struct Assignment {
    pub(crate) id: StreamId,
    pub(crate) pump: Box<dyn Pump>,
}

/// Threads per processor before streams share threads. Between one and four made no measurable difference on
/// loopback; more only costs memory and switches.
const THREADS_PER_CPU: usize = 4;

fn size_max() -> usize {
    THREADS_PER_CPU * cpu::online_cpus()
}

impl Crew {
    /// Starts as few threads as the streams need and never more than a small multiple of the processors.
    pub(crate) fn start(
        control: &Arc<RunControl>,
        streams: Vec<Assignment>,
        pin_to: Option<u32>,
    ) -> linerate_sys::Result<Self> {
        let size = streams.len().min(size_max()).max(1);
        let mut shares: Vec<Vec<Assignment>> = (0..size).map(|_| Vec::new()).collect();
        for (i, stream) in streams.into_iter().enumerate() {
            shares[i % size].push(stream);
        }
        let mut crew = Self {
            control: Arc::clone(control),
            members: Vec::with_capacity(size),
            pin_to,
            taken_on: 0,
        };
        for share in shares {
            crew.hire(share)?;
        }
        Ok(crew)
    }

    /// Takes on one more stream while the others run.
    pub(crate) fn add(&mut self, stream: Assignment) -> linerate_sys::Result<()> {
        if self.taken_on < self.members.len() || self.members.len() < size_max() {
            return self.hire(vec![stream]);
        }
        let member = &self.members[self.taken_on % self.members.len()];
        self.taken_on += 1;
        member.inbox.put(stream);
        member.wake.signal();
        Ok(())
    }

    fn hire(&mut self, share: Vec<Assignment>) -> linerate_sys::Result<()> {
        self.taken_on += share.len();
        let pin_to = self.pin_to;
        let wake = Arc::new(EventFd::new()?);
        let inbox = Arc::new(Inbox::default());
        let mut worker = Worker::new(Arc::clone(&self.control), Arc::clone(&wake), Arc::clone(&inbox))?;
        worker.take_on(share)?;
        let thread = std::thread::Builder::new()
            .name("linerate-data".into())
            .spawn(move || {
                if let Some(cpu) = pin_to {
                    // The control thread has checked that this processor exists.
                    let _ = cpu::pin_thread(cpu as usize);
                }
                worker.run();
            })
            .map_err(|source| OsError::new("create thread", "", source))?;
        self.members.push(Member {
            wake,
            inbox,
            thread: Some(thread),
        });
        Ok(())
    }

    /// How many [`Notice::Stopped`] will follow a stop.
    pub(crate) fn size(&self) -> usize {
        self.members.len()
    }

    /// Asks the senders to stop; with `drain` the receivers read what has arrived before they acknowledge.
    pub(crate) fn request_stop(&self, drain: bool) {
        self.set_phase(if drain { Phase::StopAndDrain } else { Phase::StopSending });
    }

    fn set_phase(&self, phase: Phase) {
        self.control.phase.fetch_max(phase as u8, Ordering::AcqRel);
        for member in &self.members {
            member.wake.signal();
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.set_phase(Phase::Quit);
        for member in &mut self.members {
            if let Some(thread) = member.thread.take() {
                // A worker that panicked has nothing left to tell.
                let _ = thread.join();
            }
        }
    }
}

struct Slot {
    id: StreamId,
    pump: Box<dyn Pump>,
    state: SlotState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotState {
    Ready,
    Blocked,
    Until(u64),
    Precisely {
        due_ns: u64,
        /// When to begin to spin.
        wake_ns: u64,
    },
    Nap(u64),
    Done,
}

struct Worker {
    slots: Vec<Slot>,
    control: Arc<RunControl>,
    wake: Arc<EventFd>,
    inbox: Arc<Inbox>,
    epoll: Epoll,
    stopped: bool,
}

const WAKE_TOKEN: u64 = u64::MAX;
/// Of the time to a deadline that must be met, this part is spent spinning: a sleeping thread wakes late, more so in a guest
/// whose processor slept as well, and the longer it slept.
const SPIN_SHARE: u64 = 8;
/// At least and at most so much of it.
const SPIN_NS: RangeInclusive<u64> = 40_000..=500_000;
/// Bounds of the last reading before a stop is acknowledged: a peer that goes on sending must not hold the test up.
const DRAIN_TIME_NS: u64 = 100_000_000;
const DRAIN_CALLS: u32 = 1024;

impl Worker {
    fn new(control: Arc<RunControl>, wake: Arc<EventFd>, inbox: Arc<Inbox>) -> linerate_sys::Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(
            wake.as_fd(),
            WAKE_TOKEN,
            Interest {
                read: true,
                write: false,
                edge: false,
            },
        )?;
        Ok(Self {
            slots: Vec::new(),
            control,
            wake,
            inbox,
            epoll,
            stopped: false,
        })
    }

    fn take_on(&mut self, share: Vec<Assignment>) -> linerate_sys::Result<()> {
        for stream in share {
            let sends = stream.pump.role() == StreamRole::Sender;
            let both = stream.pump.converses();
            self.epoll.add(
                stream.pump.fd(),
                self.slots.len() as u64,
                Interest {
                    read: !sends || both,
                    write: sends || both,
                    edge: true,
                },
            )?;
            self.slots.push(Slot {
                id: stream.id,
                pump: stream.pump,
                state: SlotState::Ready,
            });
        }
        Ok(())
    }

    /// Streams that came while this one was at work.
    fn look_into_inbox(&mut self) {
        for stream in self.inbox.take() {
            let id = stream.id;
            if let Err(error) = self.take_on(vec![stream]) {
                let error = io::Error::other(error);
                self.control.notify(Notice::Ended(id, Ended::Failed(error)));
            }
        }
    }

    fn run(mut self) {
        // Without it the kernel may be up to 50 µs late; everything still works.
        let _ = clock::set_timer_slack_ns(1);
        let mut scratch = Scratch::default();
        let mut events = Vec::new();
        loop {
            match self.control.phase() {
                Phase::Run => {}
                Phase::StopSending if !self.stopped => self.stop(false, &mut scratch),
                Phase::StopAndDrain if !self.stopped => self.stop(true, &mut scratch),
                Phase::Quit => return,
                _ => {}
            }
            self.look_into_inbox();
            self.pump_ready(&mut scratch);
            if let Err(error) = self.wait(&mut events) {
                self.fail_all(&error);
                return;
            }
        }
    }

    fn pump_ready(&mut self, scratch: &mut Scratch) {
        let now_ns = clock::monotonic_ns();
        for slot in &mut self.slots {
            let due = match slot.state {
                SlotState::Ready => true,
                SlotState::Until(t) | SlotState::Precisely { due_ns: t, .. } | SlotState::Nap(t) => t <= now_ns,
                SlotState::Blocked | SlotState::Done => false,
            };
            if due {
                slot.advance(now_ns, scratch, &self.control, &self.epoll);
            }
        }
    }

    /// Sleeps until there is something to do: a socket, a schedule, or a word from the control thread.
    fn wait(&mut self, events: &mut Vec<Ready>) -> io::Result<()> {
        let plan = Plan::of(&self.slots);
        let timeout = match plan {
            // Every stream can go on: asking for readiness would only cost a call.
            Plan::AllReady => return Ok(()),
            Plan::SomeReady => Some(Duration::ZERO),
            Plan::NapUntil(t) => {
                clock::sleep_until_ns(t);
                Some(Duration::ZERO)
            }
            Plan::WaitUntil(t) => Some(Duration::from_nanos(t.saturating_sub(clock::monotonic_ns()))),
            Plan::WaitForEvents => None,
        };
        self.epoll.wait(events, timeout)?;
        for event in events.iter() {
            if event.token == WAKE_TOKEN {
                self.wake.drain();
            } else if let Some(slot) = self.slots.get_mut(event.token as usize)
                && slot.state == SlotState::Blocked
            {
                slot.state = SlotState::Ready;
            }
        }
        Ok(())
    }

    fn stop(&mut self, drain: bool, scratch: &mut Scratch) {
        self.stopped = true;
        let until_ns = clock::monotonic_ns().saturating_add(DRAIN_TIME_NS);
        for slot in &mut self.slots {
            match slot.pump.role() {
                StreamRole::Sender => slot.finish(&self.epoll),
                StreamRole::Receiver if drain => slot.drain(until_ns, scratch, &self.control, &self.epoll),
                StreamRole::Receiver => {}
            }
        }
        self.control.notify(Notice::Stopped);
    }

    fn fail_all(&mut self, error: &io::Error) {
        for slot in &mut self.slots {
            let copy = io::Error::from(error.kind());
            self.control.notify(Notice::Ended(slot.id, Ended::Failed(copy)));
        }
    }
}

/// How long to spin at the end of a wait.
fn spin_ns(wait_ns: u64) -> u64 {
    (wait_ns / SPIN_SHARE).clamp(*SPIN_NS.start(), *SPIN_NS.end())
}

impl Slot {
    fn advance(&mut self, now_ns: u64, scratch: &mut Scratch, control: &RunControl, epoll: &Epoll) {
        self.state = match self.pump.pump(now_ns, scratch) {
            Pumped::Again => SlotState::Ready,
            Pumped::Blocked => SlotState::Blocked,
            Pumped::Until(t) => SlotState::Until(t),
            Pumped::Precisely(due_ns) => SlotState::Precisely {
                due_ns,
                wake_ns: due_ns.saturating_sub(spin_ns(due_ns.saturating_sub(now_ns))),
            },
            Pumped::Nap(t) => SlotState::Nap(t),
            Pumped::Ended(why) => {
                self.finish(epoll);
                control.notify(Notice::Ended(self.id, why));
                SlotState::Done
            }
        };
    }

    fn drain(&mut self, until_ns: u64, scratch: &mut Scratch, control: &RunControl, epoll: &Epoll) {
        for _ in 0..DRAIN_CALLS {
            let now_ns = clock::monotonic_ns();
            if self.state == SlotState::Done || now_ns > until_ns {
                return;
            }
            self.advance(now_ns, scratch, control, epoll);
            if self.state != SlotState::Ready {
                return;
            }
        }
    }

    fn finish(&mut self, epoll: &Epoll) {
        if self.state != SlotState::Done {
            // The descriptor is open: the pump holds it.
            let _ = epoll.remove(self.pump.fd());
            self.state = SlotState::Done;
        }
    }
}

/// What a worker waits for.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    AllReady,
    SomeReady,
    NapUntil(u64),
    WaitUntil(u64),
    WaitForEvents,
}

impl Plan {
    fn of(slots: &[Slot]) -> Self {
        let (mut ready, mut open, mut napping) = (0, 0, 0);
        let mut earliest = u64::MAX;
        for slot in slots {
            match slot.state {
                SlotState::Done => continue,
                SlotState::Ready => ready += 1,
                SlotState::Blocked => {}
                SlotState::Until(t) => earliest = earliest.min(t),
                SlotState::Precisely { wake_ns, .. } => earliest = earliest.min(wake_ns),
                SlotState::Nap(t) => {
                    napping += 1;
                    earliest = earliest.min(t);
                }
            }
            open += 1;
        }
        match (open, ready) {
            (0, _) => Self::WaitForEvents,
            _ if ready == open => Self::AllReady,
            _ if ready > 0 => Self::SomeReady,
            _ if napping == open => Self::NapUntil(earliest),
            _ if earliest < u64::MAX => Self::WaitUntil(earliest),
            _ => Self::WaitForEvents,
        }
    }
}
