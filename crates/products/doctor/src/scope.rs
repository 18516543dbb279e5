//! Objects that rules are applied to: all hosts, one host, one interface, one test run.

mod host;
mod nic;
mod reading;
mod run;

pub(crate) use host::{CpuLoad, ENCRYPTION_MIN, Facts, Host};
pub(crate) use nic::{Nic, Qdisc};
pub(crate) use reading::{Growth, Reading};
pub(crate) use run::{QUEUE_INFLATION_MIN, QUEUE_RTT_MIN_US, Run};

use crate::ruling::Ruling;

/// All hosts of a diagnosis.
#[derive(Debug)]
pub(crate) struct Scope<'a> {
    pub hosts: Vec<Host<'a>>,
}

impl<'a> Scope<'a> {
    pub(crate) fn nics(&self) -> impl Iterator<Item = Nic<'a>> {
        self.hosts.iter().flat_map(|host| host.nics())
    }

    /// Every run once: of one that both ends watched, the sender's.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Run<'a>> {
        let both = self.hosts.len() > 1;
        let runs = self.hosts.iter().flat_map(|host| host.runs());
        runs.filter(move |run| !both || run.part() != Some("receiver"))
    }

    pub(crate) fn of_nics(
        &self,
        judge: fn(&Nic<'_>) -> Ruling,
    ) -> impl Iterator<Item = (String, Ruling)> {
        self.nics().map(move |nic| (nic.subject(), judge(&nic)))
    }

    /// Rulings about something of the hosts that have a fact: `what` of each.
    pub(crate) fn of_hosts_with(
        &self,
        fact: &str,
        what: &str,
        judge: fn(&Host<'_>) -> Ruling,
    ) -> impl Iterator<Item = (String, Ruling)> {
        let hosts = self
            .hosts
            .iter()
            .filter(move |host| host.value(fact).is_some());
        hosts.map(move |host| (format!("{what} of {}", host.name()), judge(host)))
    }
}
