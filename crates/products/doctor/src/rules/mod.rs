//! The catalogue, in the order of its layers. One file per subject; a rule is a row of text and a
//! function. Rules of the HTTP lab are applied to a cell ([`cell`]) or to a plan ([`preflight`]),
//! those of a sweep to a setting ([`sweep`]), not to a snapshot.

mod application;
mod bus;
pub(crate) mod cell;
mod cpu;
pub(crate) mod flags;
mod flow_control;
mod latency;
mod link;
mod measurement;
mod network;
mod nic;
mod offload;
mod path;
mod placement;
pub(crate) mod preflight;
mod qdisc;
mod queues;
mod remedies;
pub(crate) mod sweep;
mod virtualisation;
mod window;

pub(crate) use network::narrowest_hop;
pub(crate) use virtualisation::receive_aggregation_differs;
pub(crate) use window::socket_took_the_loss;

use crate::rule::{Layer, Rule};

/// The rules of each layer, in the order in which a reader should think about them.
const CATALOGUE: [(Layer, &[Rule]); 16] = [
    (Layer::Measurement, measurement::RULES),
    (Layer::Path, path::RULES),
    (Layer::Link, link::RULES),
    (Layer::Nic, flow_control::RULES),
    (Layer::Nic, nic::RULES),
    (Layer::Bus, bus::RULES),
    (Layer::Cpu, queues::RULES),
    (Layer::Cpu, cpu::RULES),
    (Layer::Cpu, placement::RULES),
    (Layer::Offload, offload::RULES),
    (Layer::Offload, virtualisation::RULES),
    (Layer::Offload, qdisc::RULES),
    (Layer::Window, window::RULES),
    (Layer::Network, network::RULES),
    (Layer::Latency, latency::RULES),
    (Layer::Application, application::RULES),
];

/// Every rule with its layer.
pub(crate) fn all() -> impl Iterator<Item = (Layer, &'static Rule)> {
    CATALOGUE
        .into_iter()
        .flat_map(|(layer, rules)| rules.iter().map(move |rule| (layer, rule)))
}
