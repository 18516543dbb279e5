//! The cost of a test on this host: CPUs, memory, descriptors, sockets, queues, the NIC, one process.
//!
//! A [`Sampler`] takes samples, a [`Period`] aggregates them. Files of `/proc` are opened once and read again by
//! `pread(2)`, sockets and the NIC are read by netlink.

mod environment;
mod error;
mod file;
mod group;
mod nic;
mod period;
mod process;
mod sample;
mod sampler;
mod seconds;
mod sockets;
mod text;

pub use environment::{EnvironmentQuery, environment};
pub use error::ReadError;
pub use period::{Period, reading};
pub use process::listening_processes;
pub use sample::{Depth, Sample};
pub use sampler::{DeviceFacts, Sampler, Tested, Watched};
pub use seconds::Seconds;
pub use text::CpuTicks;

/// Parses the bytes as every text and every socket. Only for fuzzing.
pub(crate) fn decode_anything(bytes: &[u8]) {
    let mut counters = linerate_model::http::Counters::default();
    text::protocol_counters(bytes, &mut counters);
    let _ = (
        text::cpu_ticks(bytes),
        text::schedstat_ns(bytes),
        text::resident_pages(bytes),
        text::cpu_of_task(bytes),
    );
    let _ = (
        text::kib_line_bytes(bytes, "Rss"),
        text::sockstat(bytes),
        text::sockstat6_in_use(bytes),
    );
    let _ = (
        text::throttled_ns(bytes),
        text::number(bytes),
        text::descriptor_limits(bytes),
        (text::group_directory(bytes, "cpu"), text::group_limit(bytes)),
    );
    let _ = sockets::socket(bytes);
}
