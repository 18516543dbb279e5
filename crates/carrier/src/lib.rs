//! Carries lines of the fleet protocol over byte streams, and owns the child processes at the other end of them.
//!
//! * [`pipe`] reads and writes lines without waiting; [`stdio`] is the control path of an agent.
//! * [`Carrier`] is the control path of a coordinator: [`ssh`] and [`local`].
//! * [`children`] starts processes in groups of their own, passes their lines on and ends them.
//!
//! Nothing here reads a message. Nothing waits: owners wait for the descriptors, and call at deadlines.

#![forbid(unsafe_code)]

mod carrier;
pub mod children;
mod link;
pub mod local;
pub mod pipe;
pub mod ssh;
pub mod stdio;

pub use carrier::{Carrier, HostEvent};
