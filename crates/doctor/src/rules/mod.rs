//! The catalogue, in the order of its layers. One file per subject; a rule is a row of text and a function. Rules of the
//! HTTP lab are applied to a cell ([`cell`]) or to a plan ([`preflight`]), those of a sweep to a setting ([`sweep`]), not to a snapshot.

mod application;
mod bus;
pub(crate) mod cell;
mod cpu;
pub(crate) mod flags;
mod flow_control;
mod http;
mod link;
mod measurement;
mod network;
mod nic;
mod offload;
mod path;
pub(crate) mod preflight;
mod qdisc;
mod queues;
mod remedies;
pub(crate) mod sweep;
mod virtualisation;
mod window;

pub(crate) use virtualisation::receive_aggregation_differs;

use crate::rule::Rule;

/// Every rule, in the order in which a reader should think about them.
pub(crate) fn all() -> impl Iterator<Item = &'static Rule> {
    let files: [&[Rule]; 15] = [
        measurement::RULES,
        path::RULES,
        link::RULES,
        flow_control::RULES,
        nic::RULES,
        bus::RULES,
        queues::RULES,
        cpu::RULES,
        offload::RULES,
        virtualisation::RULES,
        qdisc::RULES,
        window::RULES,
        network::RULES,
        application::RULES,
        http::RULES,
    ];
    files.into_iter().flatten()
}
