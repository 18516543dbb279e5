//! Records of runs: made from events, played back into events, imported from the reports of other
//! programs.
//!
//! Nothing here performs I/O or reads a clock.

#![forbid(unsafe_code)]

mod argv;
mod bounds;
mod builder;
mod columns;
mod fields;
pub mod import;
pub mod keys;
mod measures;
mod playback;
pub mod text;

pub use argv::scrubbed;
pub use builder::Builder;
pub use playback::playback;
