//! Conditions between the hosts: policers, queues, hashing, loss.

mod directions;
mod hashing;
mod loss;
mod narrowest_hop;
mod policer;

use crate::rule::{Judge, RuleRow};
pub(crate) use narrowest_hop::narrowest_hop;

rules! {
    Run policer::path_01,
    Scope narrowest_hop::path_09,
    Run loss::path_10,
    Run loss::path_11,
    Host loss::fw_01,
    Run policer::path_02,
    Host hashing::path_03,
    Run hashing::path_12,
    Host loss::path_13,
    Run loss::path_06,
    Run directions::path_07,
    Run directions::path_14,
    Scope directions::path_15,
    Host directions::path_08,
}
