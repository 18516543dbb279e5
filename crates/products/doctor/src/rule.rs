//! Rules of the catalogue.
//!
//! A rule reads facts with `?`. A fact that is not there ends the rule as *unknown*, a fact that is
//! healthy ends it as *ruled out*; only a rule that reaches its end fires. So removing a fact never
//! makes a rule fire, nor rules anything out, and every finding carries exactly the facts that were
//! read.

use linerate_model::finding::{Confidence, Severity};

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

/// One rule of the catalogue.
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

impl Rule {
    const fn new(id: Text, severity: Severity, title: Text, judge: Judge) -> Self {
        Self {
            id,
            title,
            severity,
            confidence: Confidence::High,
            explanation: "",
            reference: "",
            judge,
        }
    }

    pub(crate) const fn nic(
        id: Text,
        severity: Severity,
        title: Text,
        judge: fn(&Nic<'_>) -> Ruling,
    ) -> Self {
        Self::new(id, severity, title, Judge::Nic(judge))
    }

    pub(crate) const fn host(
        id: Text,
        severity: Severity,
        title: Text,
        judge: fn(&Host<'_>) -> Ruling,
    ) -> Self {
        Self::new(id, severity, title, Judge::Host(judge))
    }

    pub(crate) const fn run(
        id: Text,
        severity: Severity,
        title: Text,
        judge: fn(&Run<'_>) -> Ruling,
    ) -> Self {
        Self::new(id, severity, title, Judge::Run(judge))
    }

    pub(crate) const fn scope(
        id: Text,
        severity: Severity,
        title: Text,
        judge: ScopeJudge,
    ) -> Self {
        Self::new(id, severity, title, Judge::Scope(judge))
    }

    /// Lowers the confidence from high.
    pub(crate) const fn at_most(mut self, confidence: Confidence) -> Self {
        self.confidence = confidence;
        self
    }

    pub(crate) const fn explanation(mut self, explanation: Text) -> Self {
        self.explanation = explanation;
        self
    }

    pub(crate) const fn reference(mut self, reference: Text) -> Self {
        self.reference = reference;
        self
    }
}

/// Object that a rule is applied to, with the function that judges it.
#[derive(Debug)]
pub(crate) enum Judge {
    /// Every interface of every host.
    Nic(fn(&Nic<'_>) -> Ruling),
    /// Every host.
    Host(fn(&Host<'_>) -> Ruling),
    /// Every test run a snapshot contains.
    Run(fn(&Run<'_>) -> Ruling),
    /// Everything at once.
    Scope(ScopeJudge),
}

type ScopeJudge = fn(&Scope<'_>) -> Vec<(String, Ruling)>;
type Text = &'static str;
