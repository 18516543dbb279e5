//! The native dialect.
//!
//! * [`wire`]: the protocol without I/O. Its command line is `linerate test`, its report that of a
//!   path.

#![forbid(unsafe_code)]

pub mod wire;
