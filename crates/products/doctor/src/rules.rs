//! The catalogue, in the order of its layers. One file per subject; a rule is a function and a line
//! of `rules.txt`. Rules of the HTTP lab are applied to a cell ([`cell`]) or to a plan
//! ([`preflight`]), those of a sweep to a setting ([`sweep`]), not to a snapshot.

/// Defines the `RULES` of a file: each with the kind of its object and the function that judges it,
/// whose name is that of the rule.
macro_rules! rules {
    ($($kind:ident $rule:path,)*) => {
        pub(super) const RULES: &[RuleRow] = &[$((stringify!($rule), Judge::$kind($rule))),*];
    };
}

mod application;
mod bus;
pub(crate) mod cell;
mod cpu;
mod drops;
pub(crate) mod flags;
mod flow_control;
pub(crate) mod latency;
mod link;
mod measurement;
mod network;
mod nic;
mod offload;
mod path;
mod placement;
pub(crate) mod preflight;
mod prelude;
mod qdisc;
mod queues;
mod remedies;
mod speed_step;
pub(crate) mod sweep;
mod virtualisation;
mod window;

pub(crate) use network::narrowest_hop;
pub(crate) use virtualisation::receive_aggregation_differs;
pub(crate) use window::socket_took_the_loss;

use std::sync::LazyLock;

use crate::rule::Layer::{self, *};
use crate::rule::{Rule, RuleRow};

/// The rules of each layer, in the order in which a reader should think about them.
const CATALOGUE: [(Layer, &[RuleRow]); 17] = [
    (Measurement, measurement::RULES),
    (Path, path::RULES),
    (Link, link::RULES),
    (Nic, flow_control::RULES),
    (Nic, nic::RULES),
    (Bus, bus::RULES),
    (Cpu, queues::RULES),
    (Cpu, cpu::RULES),
    (Cpu, placement::RULES),
    (Offload, offload::RULES),
    (Offload, virtualisation::RULES),
    (Offload, qdisc::RULES),
    (Window, window::RULES),
    (Network, network::RULES),
    (Network, drops::RULES),
    (Latency, latency::RULES),
    (Application, application::RULES),
];

static RULES: LazyLock<Vec<(Layer, Rule)>> = LazyLock::new(|| {
    let of_layer = |(layer, rows): (Layer, &'static [RuleRow])| {
        let rules = rows.iter().filter_map(|row| Rule::new(*row));
        rules.map(move |rule| (layer, rule))
    };
    CATALOGUE.into_iter().flat_map(of_layer).collect()
});

/// Every rule with its layer.
pub(crate) fn all() -> impl Iterator<Item = (Layer, &'static Rule)> {
    RULES.iter().map(|(layer, rule)| (*layer, rule))
}

#[cfg(test)]
mod tests {
    use linerate_model::stored_name;

    use super::*;

    #[test]
    fn every_rule_has_its_line_and_every_line_its_rule() {
        let lines: Vec<&str> = include_str!("rules.txt")
            .lines()
            .filter(|line| !line.starts_with('#'))
            .collect();
        let rules: Vec<String> = all()
            .map(|(_, rule)| {
                [
                    rule.id,
                    &stored_name(rule.severity),
                    &stored_name(rule.confidence),
                    rule.title,
                    rule.explanation,
                    rule.reference,
                ]
                .join(" | ")
            })
            .collect();
        assert_eq!(rules, lines);
        let rows = CATALOGUE.iter().map(|(_, rows)| rows.len());
        assert_eq!(rows.sum::<usize>(), lines.len());
    }
}
