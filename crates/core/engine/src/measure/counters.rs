//! Counters of a stream, published by its worker.
//!
//! One cache line pair per stream, written by its worker alone (plain load and store, no locked
//! instruction) and read by the sampler. Relaxed ordering is enough: no value depends on another
//! one, and the final reading happens after the worker acknowledged the stop through a channel that
//! orders memory.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::measure::observations::Observations;

/// Cumulative counters of one stream since it was opened.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct StreamCounters {
    bytes: AtomicU64,
    blocks: AtomicU64,
    packets: AtomicU64,
    lost: AtomicU64,
    out_of_order: AtomicU64,
    jitter_bits: AtomicU64,
    jitter_resets: AtomicU64,
    /// Observations that are not counters.
    pub observations: Observations,
}

/// One reading of [`StreamCounters`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Counts {
    /// Payload bytes moved.
    pub bytes: u64,
    /// Complete blocks written, or successful reads.
    pub blocks: u64,
    /// UDP: datagrams sent, or the highest sequence number seen.
    pub packets: u64,
    /// UDP receiver: datagrams missing below the highest sequence number.
    pub lost: u64,
    /// UDP receiver: datagrams that came late or twice.
    pub out_of_order: u64,
    /// UDP receiver: smoothed interarrival jitter in s.
    pub jitter_s: f64,
}

impl StreamCounters {
    /// Counters of a stream; `paced` for a sender with a rate.
    pub(crate) fn new(paced: bool) -> Self {
        Self {
            observations: Observations::new(paced),
            ..Self::default()
        }
    }

    pub(crate) fn read(&self) -> Counts {
        Counts {
            bytes: self.bytes.load(Relaxed),
            blocks: self.blocks.load(Relaxed),
            packets: self.packets.load(Relaxed),
            lost: self.lost.load(Relaxed),
            out_of_order: self.out_of_order.load(Relaxed),
            jitter_s: f64::from_bits(self.jitter_bits.load(Relaxed)),
        }
    }

    /// Worker only: adds moved payload.
    pub(crate) fn add(&self, bytes: u64, blocks: u64) {
        self.bytes.store(self.bytes.load(Relaxed) + bytes, Relaxed);
        self.blocks
            .store(self.blocks.load(Relaxed) + blocks, Relaxed);
    }

    /// Worker only: publishes the number of datagrams sent.
    pub(crate) fn set_packets(&self, packets: u64) {
        self.packets.store(packets, Relaxed);
    }

    /// Worker only: publishes the state of the sequence numbers.
    pub(crate) fn set_sequence(&self, highest: u64, lost: u64, out_of_order: u64, jitter_s: f64) {
        self.packets.store(highest, Relaxed);
        self.lost.store(lost, Relaxed);
        self.out_of_order.store(out_of_order, Relaxed);
        self.jitter_bits.store(jitter_s.to_bits(), Relaxed);
    }

    /// Sampler: requests a jitter reset at the end of the warm-up.
    pub(crate) fn request_jitter_reset(&self) {
        self.jitter_resets.fetch_add(1, Relaxed);
    }

    /// Worker: resets requested so far.
    pub(crate) fn jitter_resets(&self) -> u64 {
        self.jitter_resets.load(Relaxed)
    }
}
