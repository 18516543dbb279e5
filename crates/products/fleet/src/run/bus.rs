//! Control connections over NATS.

use std::net::IpAddr;
use std::os::fd::AsFd;

use crate::run::carrier::Carrier;
use crate::run::carrier::bus::{BusAgents, BusCarrier, BusError, BusSetup, LeaseState};
use linerate_model::record::RunId;
use linerate_sys::poll::{Interest, wait_fds};
use linerate_sys::signal::Signals;

pub use crate::run::carrier::bus::BusOptions;

use super::connect::{FleetHosts, Lease, SITE_DEFAULT};
use linerate_model::outcome::{Error, Outcome};

/// Takes charge of the hosts of a site. Where a plan is given, a coordinator that is in charge is
/// waited for, and its run is continued if it has this plan and has not ended.
pub(super) fn acquire_lease(
    options: &BusOptions,
    hosts: &FleetHosts,
    (run, plan): (RunId, Option<String>),
    signals: &Signals,
    note: &mut dyn FnMut(&str),
) -> Result<Lease, Error> {
    let setup = BusSetup {
        options: options.clone(),
        site: hosts
            .inventory
            .name
            .clone()
            .unwrap_or_else(|| SITE_DEFAULT.to_owned()),
        hosts: hosts
            .with_agent()
            .map(|host| host.id.as_str().to_owned())
            .collect(),
        run: run.to_string(),
        plan,
    };
    let mut carrier = BusCarrier::start(&setup).map_err(error_of)?;
    let mut has_waited = false;

    loop {
        match carrier.lease_state() {
            None => {}
            Some(LeaseState::Standby) => {
                has_waited = true;
                note("another coordinator is in charge; standing by");
            }
            Some(LeaseState::Failed(error)) => return Err(error_of(error)),
            Some(LeaseState::Held(term)) => {
                if has_waited {
                    note("in charge");
                }

                let run = term.run.parse().unwrap_or(run);
                return Ok(Lease {
                    carrier: Box::new(carrier),
                    epoch: term.epoch,
                    run,
                    history: term.history,
                });
            }
        }

        let fds = [
            (carrier.fd(), Interest::READ),
            (signals.as_fd(), Interest::READ),
        ];
        let [_, is_signalled] = wait_fds(fds, None).map_err(Error::failed)?;
        if is_signalled && signals.take().map_err(Error::failed)?.is_some() {
            return Err(Error::new(Outcome::Interrupted, "interrupted"));
        }
    }
}

/// Control paths of agents with these names.
pub(super) fn agents(
    options: &BusOptions,
    site: &str,
    hosts: &[String],
) -> Result<Box<dyn Carrier>, Error> {
    Ok(Box::new(
        BusAgents::start(options, site, hosts).map_err(error_of)?,
    ))
}

/// Address of the broker, where it is one and no name.
pub(super) fn broker_ip(options: &BusOptions) -> Option<IpAddr> {
    options.ip()
}

fn error_of(error: BusError) -> Error {
    let outcome = match &error {
        BusError::Options(_) => Outcome::Usage,
        BusError::Connect { .. } => Outcome::Unreachable,
        _ => Outcome::NotCompleted,
    };
    Error::new(outcome, error)
}
