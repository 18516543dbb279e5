//! Objects that rules are applied to: all hosts, one host, one interface, one test run.

mod host;
mod nic;
mod reading;
mod run;

pub(crate) use host::{CpuLoad, ENCRYPTION_MIN, Facts, Host};
pub(crate) use nic::{Nic, Qdisc};
pub(crate) use reading::{Growth, Reading};
pub(crate) use run::{QUEUE_INFLATION_MIN, QUEUE_RTT_MIN_US, Run};

/// All hosts of a diagnosis.
#[derive(Debug)]
pub(crate) struct Scope<'a> {
    pub(crate) hosts: Vec<Host<'a>>,
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
}
