//! The protocol between coordinator and agents without I/O: messages in lines of JSON, and the
//! machines of both ends.
//!
//! The machines of [`agent`] and [`coordinator`] take lines of the control path, local inputs and
//! the current time, and are polled for actions. Input from the peer is bounded before it is stored
//! and never leads to a panic.
//!
//! Times are ns of the monotonic clock of the host that runs the machine, unless the name of a
//! value states another one.

pub mod agent;
pub mod clock;
pub mod coordinator;
pub mod lease;
pub mod line;
pub mod message;
