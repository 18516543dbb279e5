//! Interfaces: links, settings of the driver, queues, interrupts and the bus.

pub(crate) mod attachment;
pub(crate) mod bridge;
pub(crate) mod config_space;
pub(crate) mod ethtool;
pub(crate) mod links;
pub(crate) mod pci;
pub(crate) mod route;
pub(crate) mod rss;
pub(crate) mod sysfs;
pub(crate) mod tunnel;
