//! Control connections over NATS.

use crate::run::carrier::bus::{BusCarrier, BusSetup, LeaseState};
use crate::run::carrier::wait;
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
    let site = hosts.inventory.name.as_deref();
    let with_agent = hosts.with_agent();
    let mut carrier = BusCarrier::start(&BusSetup {
        options: options.clone(),
        site: site.unwrap_or(SITE_DEFAULT).to_owned(),
        hosts: with_agent.map(|host| host.id.to_string()).collect(),
        run: run.to_string(),
        plan,
    })?;
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

                return Ok(Lease {
                    carrier: Box::new(carrier),
                    epoch: term.epoch,
                    // The term names the run: the new one, or the one that is continued.
                    run: term.run.parse().unwrap_or(run),
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
