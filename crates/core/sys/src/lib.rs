//! The thin Linux layer of linerate: sockets and their options, byte streams and batched datagrams,
//! readiness, clocks, CPUs, processes, users and signals.
//!
//! The layer knows no protocol and depends on no other crate of the project. System structures stay
//! private; what a kernel cannot do is an error with the operation's name
//! ([`OsError::is_unsupported`]) or a `None`, never a silent default. Set-up functions return
//! [`Result`] with the operation and its object; functions of the data path return plain
//! [`std::io::Result`], because there the caller decides by errno and must not allocate.

// System calls without a safe binding are the purpose of this crate; what programs in C pass is in
// `linerate-boundary`. Every other crate of the workspace is free of `unsafe`.
#![allow(unsafe_code)]

pub mod caps;
pub mod child;
pub mod clock;
pub mod cpu;
pub mod errno;
pub mod error;
pub mod ethtool;
pub mod file_access;
pub mod file_system;
pub mod icmp;
pub mod interfaces;
pub mod memory;
pub mod mptcp;
pub mod netlink;
pub mod other_process;
pub mod page_buffer;
pub mod poll;
pub mod privileges;
pub mod process;
pub mod process_mark;
pub mod random;
pub mod scheduling;
pub mod sd_notify;
pub mod sendfile_source;
pub mod signal;
pub mod socket;
pub mod sockopt;
pub mod stream_io;
pub mod tcp_info;
pub mod terminal;
pub mod timer;
pub mod udp;
pub mod xtables;
pub mod zerocopy;

mod errno_text;
mod option;
mod syscall;

pub use error::{OsError, Result};
pub use page_buffer::PageBuffer;
