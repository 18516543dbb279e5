//! Signals between the control thread and the workers of a test.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use linerate_model::StreamId;
use linerate_model::spec::{IoStrategy, ReceiveWait};
use linerate_sys::poll::EventFd;

use crate::data::worker::Ended;
use crate::lock::lock;

/// Notice of a worker to the control thread.
pub(crate) enum Notice {
    /// A stream has ended.
    Ended(StreamId, Ended),
    /// The receivers together reached the amount of the test.
    TargetReached,
    /// The worker saw the stop: its senders are silent and its receivers have read what had
    /// arrived.
    Stopped,
}

/// Phase of the data plane of one test; only ever grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    Run,
    /// Senders stop; receivers continue.
    StopSending,
    /// The same, but receivers first read what has arrived, then acknowledge.
    StopAndDrain,
    Quit,
}

/// Shared between the control thread and the workers of one test.
pub(crate) struct RunControl {
    phase: AtomicU8,
    /// [`IoStrategy`] of all workers: blocks in the upper half, the wait in the lower.
    strategy: AtomicU32,
    notices: Mutex<Vec<Notice>>,
    wake: EventFd,
}

impl RunControl {
    pub(crate) fn new(strategy: IoStrategy) -> linerate_sys::Result<Arc<Self>> {
        let wake = EventFd::new()?;
        Ok(Arc::new(Self {
            phase: AtomicU8::new(Phase::Run as u8),
            strategy: AtomicU32::new(packed(strategy)),
            notices: Mutex::default(),
            wake,
        }))
    }

    /// Strategy of the workers from now on.
    pub(crate) fn strategy(&self) -> IoStrategy {
        unpacked(self.strategy.load(Ordering::Relaxed))
    }

    /// Workers follow at their next turn.
    pub(crate) fn set_strategy(&self, strategy: IoStrategy) {
        self.strategy.store(packed(strategy), Ordering::Relaxed);
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Run,
            1 => Phase::StopSending,
            2 => Phase::StopAndDrain,
            _ => Phase::Quit,
        }
    }

    /// Advances to a phase; never back.
    pub(crate) fn advance_to(&self, phase: Phase) {
        self.phase.fetch_max(phase as u8, Ordering::AcqRel);
    }

    /// Queues a notice for the control thread.
    pub(crate) fn notify(&self, notice: Notice) {
        lock(&self.notices).push(notice);
        self.wake.signal();
    }

    /// Notices since the last call.
    pub(crate) fn take_notices(&self) -> Vec<Notice> {
        self.wake.drain();
        std::mem::take(&mut *lock(&self.notices))
    }

    /// Readable when there are notices.
    pub(crate) fn notice_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

/// Not a pause: the longest is shorter.
const SPIN: u16 = u16::MAX;

fn packed(strategy: IoStrategy) -> u32 {
    let wait = match strategy.receive_wait {
        ReceiveWait::Event => 0,
        ReceiveWait::Pause(us) => us,
        ReceiveWait::Spin => SPIN,
    };
    u32::from(strategy.blocks_per_call) << u16::BITS | u32::from(wait)
}

fn unpacked(packed: u32) -> IoStrategy {
    let receive_wait = match packed as u16 {
        0 => ReceiveWait::Event,
        SPIN => ReceiveWait::Spin,
        us => ReceiveWait::Pause(us),
    };
    IoStrategy {
        blocks_per_call: (packed >> u16::BITS) as u16,
        receive_wait,
    }
}
