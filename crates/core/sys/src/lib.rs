//! The thin Linux layer of linerate: sockets and their options, byte streams and batched datagrams,
//! readiness, clocks, CPUs, events of the kernel, processes, users and signals.
//!
//! The layer knows no protocol and depends on no other crate of the project. System structures stay
//! private; what a kernel cannot do is an error with the operation's name
//! ([`OsError::is_unsupported`]) or a `None`, never a silent default. Set-up functions return
//! [`Result`] with the operation and its object; functions of the data path return plain
//! [`std::io::Result`], because there the caller decides by errno and must not allocate.

// System calls without a safe binding are the purpose of this crate; what programs in C pass is in
// `linerate-boundary`. Every other crate of the workspace is free of `unsafe`.
#![allow(unsafe_code)]

pub mod errno;
pub mod error;
pub mod page_buffer;
pub mod poll;

mod errno_text;
mod host;
mod network;
mod option;
mod processes;
mod sockets;
mod syscall;

pub use error::{OsError, Result};
pub use host::{clock, cpu, file_access, file_system, memory, perf_event, random, timer, tracefs};
pub use network::{ethtool, interfaces, netlink, xtables};
pub use page_buffer::PageBuffer;
pub use processes::{
    child, other_process, privileges, process, process_mark, scheduling, sd_notify, signal,
    terminal,
};
pub use sockets::{
    caps, icmp, icmp_quote, mptcp, sendfile_source, socket, sockopt, stream_io, tcp_info, udp,
    zerocopy,
};
