//! Interfaces, netlink and packet filters of this network namespace.

pub mod ethtool;
pub mod interfaces;
pub mod netlink;
pub mod xtables;
