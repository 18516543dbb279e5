//! Records of runs as values: made from events, played back into events, stored as text.
//!
//! Nothing here performs I/O or reads a clock.

mod argv;
mod bounds;
mod builder;
mod columns;
mod fields;
pub mod keys;
mod measures;
mod playback;
pub mod text;

pub use argv::scrubbed;
pub use builder::Builder;
pub use playback::playback;
