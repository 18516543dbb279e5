//! Rules of the catalogue.
//!
//! A rule reads facts with `?`. A fact that is not there ends the rule as *unknown*, a fact that is
//! healthy ends it as *ruled out*; only a rule that reaches its end fires. So removing a fact never
//! makes a rule fire, nor rules anything out, and every finding carries exactly the facts that were
//! read.

use linerate_model::finding::{Confidence, Severity};
use linerate_model::from_stored_name;

use crate::ruling::Ruling;
use crate::scope::{Host, Nic, Run, Scope};

/// Layer of a rule. An earlier layer explains later ones, so they are checked and shown in this
/// order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layer {
    /// Is the measurement valid?
    Measurement,
    /// Does the traffic take the right path?
    Path,
    /// Speed, duplex, damage.
    Link,
    /// Flow control and drops of the NIC.
    Nic,
    /// The bus behind the NIC.
    Bus,
    /// Queues, interrupts, CPUs.
    Cpu,
    /// Offloads, queueing disciplines, virtualisation.
    Offload,
    /// Windows and buffers.
    Window,
    /// Loss, policers and hashing on the way.
    Network,
    /// Delay under load.
    Latency,
    /// Limits of applications and tools.
    Application,
}

/// One rule of the catalogue. Its texts are a line of `rules.txt`.
#[derive(Debug)]
pub struct Rule {
    /// Stable name: `NIC-01`.
    pub id: &'static str,
    /// Short text of the finding.
    pub title: &'static str,
    /// Severity, unless a finding sets its own.
    pub severity: Severity,
    /// Highest confidence it can have.
    pub confidence: Confidence,
    /// Why it matters, in two sentences.
    pub explanation: &'static str,
    /// Manual page, standard or document.
    pub reference: &'static str,
    /// Object that it is applied to, and its judge.
    pub(crate) judge: Judge,
}

/// Path of the function of a rule, and its judge.
pub(crate) type RuleRow = (&'static str, Judge);

impl Rule {
    /// The rule with its line of the table; `None` where that lacks a column.
    pub(crate) fn new((path, judge): RuleRow) -> Option<Self> {
        let name = path.rsplit(':').next()?.trim();
        let id = name.to_uppercase().replace('_', "-");
        let lines = include_str!("rules.txt").lines();
        let mut columns = lines
            .map(|line| line.split(" | "))
            // The clone leaves the id in the iterator, to be read below.
            .find(|columns| columns.clone().next() == Some(&*id))?;
        let mut next = || columns.next();

        Some(Self {
            id: next()?,
            severity: from_stored_name(next()?)?,
            confidence: from_stored_name(next()?)?,
            title: next()?,
            explanation: next()?,
            reference: next()?,
            judge,
        })
    }
}

/// Object that a rule is applied to, with the function that judges it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Judge {
    /// Every interface of every host.
    Nic(fn(&Nic<'_>) -> Ruling),
    /// Every host.
    Host(fn(&Host<'_>) -> Ruling),
    /// Every test run a snapshot contains.
    Run(fn(&Run<'_>) -> Ruling),
    /// Everything at once.
    Scope(fn(&Scope<'_>) -> Vec<(String, Ruling)>),
}
