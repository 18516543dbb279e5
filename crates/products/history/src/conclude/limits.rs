//! Limits that a test of a client must hold.

use linerate_model::record::{Body, RunRecord};
use linerate_model::sweep::Recommendation;
use linerate_model::{Event, EventSink, SinkError};
use linerate_store::Builder;

use super::expect::{Expectations, Missed};

/// Limits that a run missed: of a sweep, the trials of the setting it advises must hold them.
pub fn missed_by_run(limits: &Expectations, run: &RunRecord) -> Vec<Missed> {
    let setting = match &run.body {
        Body::Sweep(Some(sweep)) => match &sweep.answer {
            Recommendation::Use { leader, .. } => Some(&leader.setting),
            Recommendation::Inconclusive { leader, .. } => {
                leader.as_ref().map(|leader| &leader.setting)
            }
            _ => None,
        },
        _ => None,
    };
    let trials = run
        .trials
        .iter()
        // Other settings of a sweep may miss the limits; the advised one must hold them.
        .filter(|trial| setting.is_none_or(|setting| trial.factors == *setting));
    limits.missed(&trials.collect::<Vec<_>>())
}

/// A test whose measures are held against limits; takes its events.
#[derive(Debug)]
pub struct LimitedTest {
    limits: Expectations,
    builder: Builder,
}

impl LimitedTest {
    /// The test begins.
    pub fn new(limits: Expectations) -> Self {
        Self {
            limits,
            builder: Builder::default(),
        }
    }

    /// The test ended. Returns the limits that it missed.
    pub fn missed(self) -> Vec<Missed> {
        self.limits.missed(&[&self.builder.finish()])
    }
}

impl EventSink for LimitedTest {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        self.builder.event(event)
    }
}
