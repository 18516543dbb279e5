//! Conditions between the hosts: policers, queues, hashing, loss.

mod directions;
mod hashing;
mod loss;
mod narrowest_hop;
mod policer;

use crate::rule::{Judge, RuleRow};
pub(crate) use narrowest_hop::narrowest_hop;

pub(super) const RULES: &[RuleRow] = &[
    ("PATH-01", Judge::Run(policer::path_01)),
    ("PATH-09", Judge::Scope(narrowest_hop::path_09)),
    ("PATH-10", Judge::Run(loss::path_10)),
    ("PATH-11", Judge::Run(loss::path_11)),
    ("FW-01", Judge::Host(loss::fw_01)),
    ("PATH-02", Judge::Run(policer::path_02)),
    ("PATH-03", Judge::Host(hashing::path_03)),
    ("PATH-12", Judge::Run(hashing::path_12)),
    ("PATH-13", Judge::Host(loss::path_13)),
    ("PATH-06", Judge::Run(loss::path_06)),
    ("PATH-07", Judge::Run(directions::path_07)),
    ("PATH-14", Judge::Run(directions::path_14)),
    ("PATH-15", Judge::Scope(directions::path_15)),
    ("PATH-08", Judge::Host(directions::path_08)),
];
