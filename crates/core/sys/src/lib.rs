//! The thin Linux layer of linerate: sockets and their options, byte streams and batched datagrams,
//! readiness, clocks, CPUs, events of the kernel, processes, users and signals.
//!
//! The layer knows no protocol and depends on no other crate of the project. System structures stay
//! private; what a kernel cannot do is an error with the operation's name
//! ([`OsError::is_unsupported`]) or a `None`, never a silent default. Set-up functions return
//! [`Result`] with the operation and its object; functions of the data path return plain
//! [`std::io::Result`], because there the caller decides by errno and must not allocate.
//!
//! Other systems have what protocols, reports and keys need: files, random bytes, the texts of
//! errors. What only Linux can do is an error with this reason there, or a `None`.

// System calls without a safe binding are the purpose of this crate; what programs in C pass is in
// `linerate-boundary`. Every other crate of the workspace is free of `unsafe`.
#![allow(unsafe_code)]

pub mod caps;
pub mod errno;
pub mod error;
pub mod file_access;
pub mod file_system;
pub mod random;

mod uname;

pub use error::{OsError, Result};

#[cfg(target_os = "linux")]
mod errno_text;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod option;
#[cfg(target_os = "linux")]
pub mod page_buffer;
#[cfg(target_os = "linux")]
pub mod poll;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
mod sockets;
#[cfg(target_os = "linux")]
mod syscall;

#[cfg(target_os = "linux")]
pub use host::{clock, cpu, memory, perf_event, timer, tracefs};
#[cfg(target_os = "linux")]
pub use network::{ethtool, interfaces, netlink, xtables};
#[cfg(target_os = "linux")]
pub use page_buffer::PageBuffer;
#[cfg(target_os = "linux")]
pub use processes::{
    child, other_process, privileges, process, process_mark, scheduling, sd_notify, signal,
    terminal,
};
#[cfg(target_os = "linux")]
pub use sockets::{
    icmp, icmp_quote, mptcp, sendfile_source, socket, sockopt, stream_io, tcp_info, udp, zerocopy,
};

#[cfg(not(target_os = "linux"))]
mod other_system;
#[cfg(not(target_os = "linux"))]
pub use other_system::{privileges, process};
