//! Views of samples for the HTTP lab.

pub(crate) mod endpoint;
pub(crate) mod environment;
pub(crate) mod seconds;
