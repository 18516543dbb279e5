//! A pump under the limits of a server.

use std::sync::Arc;

use super::{Pump, Pumped, Scratch};
use crate::data::quota::{Grant, Quota, Traffic};
use crate::measure::counters::StreamCounters;

/// Lets another pump work as far as a quota allows.
pub(crate) struct Metered {
    inner: Box<dyn Pump>,
    counters: Arc<StreamCounters>,
    quota: Quota,
    charged_bytes: u64,
}

/// Pause of a stream that may move nothing more. The control thread ends its test.
const USED_UP_PAUSE_NS: u64 = 100_000_000;

impl Metered {
    pub(crate) fn new(inner: Box<dyn Pump>, counters: Arc<StreamCounters>, quota: Quota) -> Self {
        Self {
            inner,
            counters,
            quota,
            charged_bytes: 0,
        }
    }
}

impl Pump for Metered {
    fn is_duplex(&self) -> bool {
        self.inner.is_duplex()
    }

    fn set_blocks_per_call(&mut self, blocks: u16) {
        self.inner.set_blocks_per_call(blocks);
    }

    fn pump(&mut self, now_ns: u64, scratch: &mut Scratch) -> Pumped {
        match self.quota.grant(now_ns, Traffic::Load) {
            Grant::Bytes(bytes) => scratch.set_room(bytes),
            Grant::NotBefore(t) => return Pumped::Until(t),
            Grant::UsedUp => return Pumped::Until(now_ns.saturating_add(USED_UP_PAUSE_NS)),
        }

        let pumped = self.inner.pump(now_ns, scratch);
        scratch.set_room(usize::MAX);
        let moved_bytes = self.counters.read().bytes + self.inner.other_bytes();
        self.quota.charge(
            now_ns,
            Traffic::Load,
            moved_bytes.saturating_sub(self.charged_bytes),
        );
        self.charged_bytes = moved_bytes;

        pumped
    }
}
