//! Heads of datagrams that leave on a schedule, and how late each is.

use std::sync::{Arc, Mutex};

use linerate_native::wire::datagram::{DatagramType, FlowId};

use super::samples::VALUES_MAX;
use crate::data::pacing::Schedule;
use crate::data::worker::SequenceWriter;
use crate::lock::lock;

/// Samples of a sender's datagrams.
#[derive(Debug, Default)]
pub(super) struct Sent {
    pub lateness_ns: Vec<i64>,
}

/// Writes the heads of a flow.
pub(super) struct HeadWriter {
    pub id: FlowId,
    /// The one that the sender follows; absent without a rate.
    pub schedule: Option<Schedule>,
    pub sent: Arc<Mutex<Sent>>,
}

impl SequenceWriter for HeadWriter {
    fn write(&mut self, datagram: &mut [u8], number: u64, now_ns: u64) {
        self.id
            .head(DatagramType::Data, number - 1, now_ns)
            .encode_into(datagram);

        if let Some(schedule) = &self.schedule {
            let due_ns = schedule.due_ns((number - 1).saturating_mul(datagram.len() as u64));
            let mut sent = lock(&self.sent);
            if sent.lateness_ns.len() < VALUES_MAX {
                sent.lateness_ns
                    .push(i64::try_from(now_ns.saturating_sub(due_ns)).unwrap_or(i64::MAX));
            }
        }
    }
}
