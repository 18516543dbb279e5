//! Limits of results in a build without the feature `store`: there are none.
#![allow(
    clippy::needless_pass_by_value,
    reason = "the surface is that of the counterpart"
)]

use std::str::FromStr;

use linerate_model::{Event, EventSink, SinkError};

use crate::Error;

/// Limits of measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expectations {}

impl FromStr for Expectations {
    type Err = Error;

    fn from_str(_: &str) -> Result<Self, Error> {
        Err(Error::absent("the check of limits"))
    }
}

/// A test whose measures are held against limits.
#[derive(Debug)]
pub enum LimitedTest {}

impl LimitedTest {
    /// The test begins.
    #[must_use]
    pub fn new(limits: Expectations) -> Self {
        match limits {}
    }
}

impl EventSink for LimitedTest {
    fn event(&mut self, _: &Event) -> Result<(), SinkError> {
        match *self {}
    }
}
