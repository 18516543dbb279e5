//! The table of what one client can make this server keep: bytes, descriptors, threads, and time on
//! the control thread. A thread counts with its memory.
//!
//! Every dialect computes what a test keeps here, before the test is admitted, and admission takes
//! it from the [`Capacity`](super::resource_quota::Capacity) of the host. What a test opens later
//! holds a part of its [`Allotment`](super::allotment::Allotment).
//!
//! | kept of a client | descriptors | bytes | threads |
//! |---|---|---|---|
//! | pending connection | 1 | [`PENDING_BYTES`] | - |
//! | test of iperf3 or iperf 2 | [`DESCRIPTORS_PER_TEST`], its streams, two per worker | [`BYTES_PER_TEST`], [`BYTES_PER_WORKER`], its blocks | a worker per stream at most |
//! | session of the native dialect | the same, and [`Requirements::allotted`] | [`BYTES_PER_SESSION`], [`BYTES_PER_WORKER`], those of its probes | its workers, a responder and a tracer of hops |
//!
//! A connection without a session delivers at most [`TURN_BYTES`] in one turn of an event loop that
//! others share.

use linerate_model::workload::Shape;
use linerate_model::{Direction, TestSpec, Transport};
use linerate_sys::cpu;

use crate::data::plan;

/// Upper bound of the resources of one test.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Requirements {
    pub descriptors: u64,
    /// Those of them that are opened while the test runs, by the allotment of a session.
    #[cfg(feature = "native")]
    pub allotted: u64,
    /// Memory of the process; that of the kernel's sockets has limits of its own (tcp(7)).
    pub memory_bytes: u64,
    /// Its client completed no handshake, so its address may be forged.
    pub is_unproven: bool,
}

/// Connections and flows that a session of the native dialect may have open beside its control
/// connection and its load.
#[cfg(feature = "native")]
#[derive(Clone, Copy, Default)]
pub(crate) struct SessionNeeds {
    /// Streams of a load, both directions together.
    pub streams: u32,
    /// Probes over new connections, each with a TLS session.
    pub probe_connections: u32,
    /// Connections of requests and responses.
    pub transactions: u32,
    /// UDP flows.
    pub flows: u32,
    /// Descriptors of the trace of the hops to the client, which has a thread.
    pub tracer: u32,
}

/// Largest number of bytes that one connection without a session delivers in one turn. 178 TLS records
/// of one byte fit in them, which take a quarter of a millisecond.
#[cfg(feature = "native")]
pub(crate) const TURN_BYTES: usize = 4096;
/// Bytes of a pending connection at most: a TLS session with a record of 16 KiB that is not
/// complete, and the frame that it is a part of.
pub(crate) const PENDING_BYTES: u64 = 48 << 10;
/// Descriptors of a test beside its streams and workers: the control connection or the event loop,
/// and the notices.
const DESCRIPTORS_PER_TEST: u64 = 3;
/// A worker has an event loop and a descriptor that wakes it.
const DESCRIPTORS_PER_WORKER: u64 = 2;
/// Room for receiving and the part of a worker's stack that is used.
const BYTES_PER_WORKER: u64 = (256 + 64) << 10;
/// Memory of a test beside its workers: protocol, report, counters.
const BYTES_PER_TEST: u64 = 64 << 10;
/// Descriptors of a session beside those of its load: the event loop of the responder, what wakes
/// it, and the notice of a request.
#[cfg(feature = "native")]
const DESCRIPTORS_PER_SESSION: u64 = 3;
/// Two messages of 1 MiB, one that is sent and one that is kept until it is acknowledged.
#[cfg(feature = "native")]
const BYTES_PER_SESSION: u64 = 2 << 20;
/// A TLS session, a record that is not complete, and what is not sent of its echo.
#[cfg(feature = "native")]
const BYTES_PER_PROBE: u64 = 40 << 10;
/// Counters alone: responses are sent from a block that all connections share.
#[cfg(feature = "native")]
const BYTES_PER_TRANSACTION: u64 = 512;
/// The part of the stack of a thread that is used, and the answers of 32 hops.
#[cfg(feature = "native")]
const BYTES_PER_TRACER: u64 = (64 + 128) << 10;
/// A datagram of the largest size.
#[cfg(feature = "native")]
const BYTES_PER_FLOW: u64 = 12 << 10;
/// Connections that are accepted while those before them are not closed yet.
#[cfg(feature = "native")]
const CONNECTIONS_SPARE: u64 = 16;

impl Requirements {
    /// Resources that a test with `streams` streams needs here.
    pub(crate) fn of(spec: &TestSpec, streams: u32) -> Self {
        let streams = u64::from(streams.max(1));
        let workers = plan::threads_max(
            usize::try_from(streams).unwrap_or(usize::MAX),
            cpu::online_cpus(),
        ) as u64;
        // A sender that writes heads into its data has a block per stream; all others share theirs.
        let has_heads = spec.workload.trip_times || spec.workload.shape != Shape::Continuous;
        let blocks = match spec.direction {
            Direction::Forward => 0,
            Direction::Reverse | Direction::Bidirectional if has_heads => streams,
            Direction::Reverse | Direction::Bidirectional => 1,
        };
        let block_bytes = blocks.saturating_mul(spec.block_len_bytes.into());

        Self {
            descriptors: DESCRIPTORS_PER_TEST
                + streams
                + workers.saturating_mul(DESCRIPTORS_PER_WORKER),
            #[cfg(feature = "native")]
            allotted: 0,
            memory_bytes: BYTES_PER_TEST
                .saturating_add(workers.saturating_mul(BYTES_PER_WORKER))
                .saturating_add(block_bytes),
            is_unproven: false,
        }
    }

    /// Resources of a session of the native dialect: the load of its largest phase, and all that
    /// its other phases open.
    #[cfg(feature = "native")]
    pub(crate) fn of_session(spec: &TestSpec, needs: SessionNeeds) -> Self {
        let load = Self::of(spec, needs.streams);
        let [probes, transactions, flows] =
            [needs.probe_connections, needs.transactions, needs.flows].map(u64::from);
        let spare = if probes + transactions > 0 {
            CONNECTIONS_SPARE
        } else {
            0
        };
        let allotted = probes + transactions + flows + spare;

        Self {
            descriptors: load.descriptors
                + DESCRIPTORS_PER_SESSION
                + u64::from(needs.tracer)
                + allotted,
            allotted,
            memory_bytes: load
                .memory_bytes
                .saturating_add(BYTES_PER_SESSION)
                .saturating_add(u64::from(needs.tracer.min(1)) * BYTES_PER_TRACER)
                .saturating_add(probes * BYTES_PER_PROBE)
                .saturating_add(transactions * BYTES_PER_TRANSACTION)
                .saturating_add(flows * BYTES_PER_FLOW),
            is_unproven: false,
        }
    }

    /// The same without a control connection: a flow is known by its source address alone.
    pub(crate) fn without_control(spec: &TestSpec, streams: u32) -> Self {
        Self {
            is_unproven: spec.transport == Transport::Udp,
            ..Self::of(spec, streams)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_grow_with_streams_and_with_blocks_that_are_not_shared() {
        let mut spec = TestSpec {
            direction: Direction::Reverse,
            block_len_bytes: 4 << 20,
            ..TestSpec::default()
        };

        let one = Requirements::of(&spec, 1);
        assert_eq!(one.descriptors, 6);
        assert_eq!(one.memory_bytes, (64 + 320 + 4096) << 10);

        let more = Requirements::of(&spec, 1000);
        assert!(more.descriptors > 1000 && more.memory_bytes < 2 * one.memory_bytes + (1 << 30));
        spec.workload.trip_times = true;
        assert!(Requirements::of(&spec, 1000).memory_bytes > 4000 << 20);
    }
}
