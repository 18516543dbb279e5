//! Plan of a sweep: its factors and settings, the test of each setting, and what it costs.

pub mod experiment;
pub mod factor;
pub mod run_length;
pub mod space;
