//! Requirements of both hosts for a plan of the HTTP lab, checked before it runs.
//!
//! A check that fails names the cells it makes impossible; the others run. What would only change
//! the results warns.

mod cpu;
mod descriptors;
mod path;
mod plan;
mod ports;
mod protocol;
mod queues;
mod requirement;
mod tables;

pub use descriptors::{descriptors_for, worker_processes};
pub use plan::Preflight;
pub use protocol::too_many_connections;

use linerate_model::http::Check;

impl Preflight {
    /// Applies all rules; those of the client come first.
    pub fn checks(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        for (side, host) in self.hosts() {
            checks.extend(descriptors::checks(self, side, host));
            checks.extend(tables::checks(self, side, host));
            checks.extend(cpu::checks(side, host));
            checks.extend(path::link(side, host));
        }

        checks.extend(protocol::check(self));
        checks.extend(ports::checks(self));
        checks.extend(
            self.server
                .iter()
                .flat_map(|server| queues::checks(self, server)),
        );
        checks.extend(path::checks(self));
        checks.sort_by_key(|check| check.side);

        checks
    }
}
