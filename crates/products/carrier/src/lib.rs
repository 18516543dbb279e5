//! Carries lines of the fleet protocol over byte streams, and owns the child processes at the other
//! end of them.
//!
//! * [`pipe`] reads and writes lines without waiting.
//! * [`Carrier`] is a control path: [`ssh`], [`local`] and `bus` of a coordinator, [`stdio`] and
//!   `bus` of an agent.
//! * [`children`] starts processes in groups of their own, passes their lines on and ends them.
//!
//! Nothing here reads a message. Nothing waits: owners wait for the descriptors, and call at
//! deadlines.

#![forbid(unsafe_code)]

#[cfg(feature = "bus")]
pub mod bus;
mod carrier;
pub mod children;
mod link;
pub mod local;
pub mod pipe;
pub mod ssh;
pub mod stdio;

pub use carrier::{Carrier, HostEvent};
