//! Control connections over NATS.

use std::net::IpAddr;

use crate::run::carrier::bus::{BusAgents, BusCarrier, BusSetup, LeaseState};
use crate::run::carrier::{Carrier, wait};
use linerate_model::record::RunId;
use linerate_sys::signal::Signals;

use super::control::Lease;
use crate::spec::{BusOptions, FleetHosts, SITE_DEFAULT};
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
    let mut carrier = BusCarrier::start(&setup)?;
    let mut has_waited = false;

    loop {
        match carrier.lease_state() {
            None => {}
            Some(LeaseState::Standby) => {
                has_waited = true;
                note("another coordinator is in charge; standing by");
            }
            Some(LeaseState::Failed(error)) => return Err(error),
            Some(LeaseState::Held(term)) => {
                if has_waited {
                    note("in charge");
                }

                // The term names the run: the new one, or the one that is continued.
                let run = term.run.parse().unwrap_or(run);
                return Ok(Lease {
                    carrier: Box::new(carrier),
                    epoch: term.epoch,
                    run,
                    history: term.history,
                });
            }
        }

        // Standing by has no deadline: a signal ends it.
        if wait(&carrier, Some(signals), None).map_err(Error::failed)? {
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
    Ok(Box::new(BusAgents::start(options, site, hosts)?))
}

/// Address of the broker, where it is one and no name.
pub(super) fn broker_ip(options: &BusOptions) -> Option<IpAddr> {
    options.ip()
}
