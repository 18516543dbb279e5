//! Values and growths as rules read them, with what becomes evidence.

use std::cmp::Ordering;
use std::fmt::{self, Display, Formatter};

use linerate_model::finding::{Confidence, Evidence};
use linerate_model::snapshot::Value;

use crate::arithmetic::{mbits, to_f64};
use crate::period::{Delta, Period};
use crate::ruling::{Match, NoMatch, Suspect, require, unknown};

/// A value with the key it was read from. It compares with values and other readings, and prints,
/// as its value.
#[derive(Debug, Clone)]
pub(crate) struct Reading<T> {
    pub key: String,
    pub value: T,
    /// The value is less than certain.
    pub inferred: bool,
}

impl<T: Display> Display for Reading<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<T: PartialEq> PartialEq for Reading<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: PartialEq> PartialEq<T> for Reading<T> {
    fn eq(&self, value: &T) -> bool {
        self.value == *value
    }
}

impl<T: PartialOrd> PartialOrd for Reading<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.value.partial_cmp(&other.value)
    }
}

impl<T: PartialOrd> PartialOrd<T> for Reading<T> {
    fn partial_cmp(&self, value: &T) -> Option<Ordering> {
        self.value.partial_cmp(value)
    }
}

impl Match {
    /// Quotes a number that was read.
    pub(crate) fn read(self, reading: &Reading<f64>, threshold: impl Into<String>) -> Self {
        let value = Value::Real(reading.value);
        self.because(reading.key.clone(), value, threshold)
            .cap_if(reading.inferred, Confidence::Medium)
    }

    /// Quotes a rate that was read.
    pub(crate) fn read_rate(self, reading: &Reading<f64>, threshold: impl Into<String>) -> Self {
        self.because(reading.key.clone(), mbits(reading.value), threshold)
    }

    /// Quotes a text that was read.
    pub(crate) fn read_text(self, reading: &Reading<&str>, threshold: impl Into<String>) -> Self {
        self.because(reading.key.clone(), reading.value, threshold)
    }

    /// Quotes how counters grew; totals since boot are weak evidence.
    pub(crate) fn grew(self, growth: &Growth) -> Self {
        self.because_all(growth.evidence.clone())
            .cap_if(growth.total, Confidence::Low)
    }
}

/// Growth of a counter or of a class of counters.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Growth {
    pub value: u64,
    /// A total since boot, because there is no period.
    pub total: bool,
    /// Length of the period in seconds.
    pub seconds: f64,
    pub evidence: Vec<Evidence>,
}

impl Display for Growth {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<T> Reading<T> {
    /// A value that was read as it is.
    pub(crate) fn new(key: String, value: T) -> Self {
        Self {
            key,
            value,
            inferred: false,
        }
    }
}

impl Growth {
    /// Growth per second; a total has none.
    pub(crate) fn rate(&self, what: &str) -> Result<f64, NoMatch> {
        if self.total || self.seconds <= 0.0 {
            return unknown(format!("rate of {what}"), "needs counters over a window");
        }
        Ok(to_f64(self.value) / self.seconds)
    }

    /// The rule is ruled out when nothing grew.
    pub(crate) fn or_clear(&self, what: &str) -> Result<(), NoMatch> {
        let span = if self.total {
            "since boot".to_owned()
        } else {
            format!("in {:.1} s", self.seconds)
        };
        require(self.value > 0, format!("{what}: none {span}"))
    }

    /// A total since boot decides nothing: it is a `suspicion` at most.
    pub(crate) fn in_period(
        &self,
        totals: &str,
        suspicion: impl Into<String>,
    ) -> Result<(), NoMatch> {
        if !self.total {
            return Ok(());
        }

        unknown(
            "counters over a window",
            format!("{totals} since boot say nothing about now"),
        )
        .suspect(suspicion)
    }

    pub(super) fn add(&mut self, key: &str, grown: &Delta, period: &Period) {
        self.value = self.value.saturating_add(grown.value);
        self.seconds = period.seconds;

        if grown.value > 0 {
            let least = if grown.at_least { "at least " } else { "" };
            let threshold = format!(
                "grew by {least}{} in {:.1} s, must not grow",
                grown.value, period.seconds
            );
            self.push(key, grown.value, threshold);
        }
    }

    pub(super) fn add_total(&mut self, key: &str, total: u64) {
        self.total = true;
        self.value = self.value.saturating_add(total);
        if total > 0 {
            self.push(key, total, "total since boot, expected 0".to_owned());
        }
    }

    fn push(&mut self, key: &str, value: u64, threshold: String) {
        // A device with a hundred queues must not fill the screen.
        const QUOTED_COUNTERS_MAX: usize = 6;

        if self.evidence.len() < QUOTED_COUNTERS_MAX {
            self.evidence
                .push(Evidence::new(key, value.to_string(), threshold));
        }
    }
}
