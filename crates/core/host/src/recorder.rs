//! Records facts and counters of one object from one source.

use std::fmt::Display;

use linerate_model::snapshot::{Absence, Snapshot, Value};

use crate::error::{ReadError, record_absent};

/// Facts below a prefix of their keys, such as `nic.eth0`, with their source.
pub(crate) struct Recorder<'a> {
    pub snapshot: &'a mut Snapshot,
    prefix: String,
    src: &'a str,
}

impl<'a> Recorder<'a> {
    /// Records below `prefix`, which has no dot at its end.
    pub(crate) fn new(snapshot: &'a mut Snapshot, prefix: impl Into<String>, src: &'a str) -> Self {
        Self {
            snapshot,
            prefix: prefix.into(),
            src,
        }
    }

    /// Records the same object from another source.
    pub(crate) fn with_source<'b>(&'b mut self, src: &'b str) -> Recorder<'b> {
        Recorder::new(self.snapshot, &*self.prefix, src)
    }

    /// The whole key of a fact.
    pub(crate) fn key(&self, fact: impl Display) -> String {
        format!("{}.{fact}", self.prefix)
    }

    pub(crate) fn set(&mut self, fact: impl Display, value: impl Into<Value>) {
        self.known(fact, Some(value));
    }

    pub(crate) fn set_in(&mut self, fact: impl Display, value: impl Into<Value>, unit: &str) {
        self.known_in(fact, Some(value), unit);
    }

    /// Records a value if there is one.
    pub(crate) fn known(&mut self, fact: impl Display, value: Option<impl Into<Value>>) {
        self.snapshot.set_known(self.key(fact), value, self.src);
    }

    /// Records a value with its unit, if there is one.
    pub(crate) fn known_in(
        &mut self,
        fact: impl Display,
        value: Option<impl Into<Value>>,
        unit: &str,
    ) {
        self.snapshot
            .set_known_in(self.key(fact), value, unit, self.src);
    }

    /// Records a value, or the reason of its absence.
    pub(crate) fn or_absent(
        &mut self,
        fact: impl Display,
        value: Option<impl Into<Value>>,
        reason: Absence,
    ) {
        self.snapshot
            .set_or_absent(self.key(fact), value, reason, self.src);
    }

    /// Records that there is no value, unless one is known.
    pub(crate) fn absent(&mut self, fact: impl Display, reason: Absence) {
        self.snapshot
            .set_absent(self.key(fact), reason, None, self.src);
    }

    /// Records why a value could not be read.
    pub(crate) fn refused(&mut self, fact: impl Display, why: &ReadError) {
        let key = self.key(fact);
        record_absent(self.snapshot, &key, why, self.src);
    }

    /// Records a counter if it is known.
    pub(crate) fn count(&mut self, fact: impl Display, value: Option<u64>) {
        self.snapshot.count_known(self.key(fact), value);
    }
}
