//! What a test costs this host: processors, memory, descriptors, sockets, queues, the adapter, one process.
//!
//! A [`Sampler`] takes looks, a [`Window`] folds them into figures. Files of `/proc` are opened once and read again by
//! `pread(2)`, sockets and the adapter are asked by netlink.

mod environment;
mod file;
mod group;
mod nic;
mod process;
mod sample;
mod sampler;
mod seconds;
mod sockets;
mod text;
mod window;

pub use environment::{Look, environment};
pub use process::listening_processes;
pub use sample::{Depth, Sample};
pub use sampler::{DeviceFacts, Sampler, Tested, Watched};
pub use seconds::Seconds;
pub use text::CpuTicks;
pub use window::{Window, reading};

/// Reads whatever the bytes may mean, as every text and every socket. Only for fuzzing.
pub(crate) fn decode_anything(bytes: &[u8]) {
    let mut counters = linerate_model::http::Counters::default();
    text::protocol_counters(bytes, &mut counters);
    let _ = (
        text::cpu_ticks(bytes),
        text::schedstat_ns(bytes),
        text::resident_pages(bytes),
        text::processor(bytes),
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
