//! Both ends of a bus.

use std::time::{Duration, Instant};

use linerate_fleet::run::carrier::bus::{BusAgents, BusCarrier, BusSetup, LeaseState, LeaseTerm};
use linerate_fleet::run::carrier::{Carrier, HostEvent};
use linerate_fleet::spec::BusOptions;
use linerate_sys::poll::{Interest, wait_fd};

use crate::broker::Broker;
use crate::dialogue::run_id;

/// Longest wait for an event.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) fn options(broker: &Broker) -> BusOptions {
    BusOptions {
        url: broker.url(),
        ..BusOptions::default()
    }
}

pub(crate) fn setup(broker: &Broker, site: &str, hosts: &[&str], plan: Option<&str>) -> BusSetup {
    BusSetup {
        options: options(broker),
        site: site.to_owned(),
        hosts: names(hosts),
        run: run_id(1),
        plan: plan.map(str::to_owned),
    }
}

fn names(hosts: &[&str]) -> Vec<String> {
    hosts.iter().map(|host| (*host).to_owned()).collect()
}

/// A coordinator in charge.
pub(crate) fn coordinator(setup: &BusSetup) -> (BusCarrier, LeaseTerm) {
    let mut carrier = BusCarrier::start(setup).expect("a carrier");
    let term = loop {
        match lease_state(&mut carrier) {
            LeaseState::Held(term) => break term,
            LeaseState::Standby => {}
            LeaseState::Failed(error) => panic!("{error}"),
        }
    };
    (carrier, term)
}

/// The next change.
pub(crate) fn lease_state(carrier: &mut BusCarrier) -> LeaseState {
    let until = Instant::now() + TIMEOUT;
    loop {
        if let Some(state) = carrier.lease_state() {
            return state;
        }

        assert!(Instant::now() < until, "no change");
        wait_fd(
            carrier.fd(),
            Interest::READ,
            Some(Duration::from_millis(100)),
        )
        .expect("a descriptor");
    }
}

pub(crate) fn agents(broker: &Broker, site: &str, hosts: &[&str]) -> BusAgents {
    BusAgents::start(&options(broker), site, &names(hosts)).expect("agents")
}

/// The next line and its host.
pub(crate) fn next_line(
    carrier: &mut dyn Carrier,
    queued: &mut Vec<(usize, HostEvent)>,
) -> (usize, String) {
    let until = Instant::now() + TIMEOUT;
    loop {
        if !queued.is_empty() {
            match queued.remove(0) {
                (host, HostEvent::Line(line)) => {
                    return (host, String::from_utf8(line).expect("UTF-8"));
                }
                other => panic!("{other:?}"),
            }
        }

        assert!(Instant::now() < until, "no line");
        wait_fd(
            carrier.fd(),
            Interest::READ,
            Some(Duration::from_millis(100)),
        )
        .expect("a descriptor");
        queued.extend(carrier.poll(0));
    }
}

/// Nothing arrives for a moment.
pub(crate) fn expect_quiet(carrier: &mut dyn Carrier, moment: Duration) {
    let until = Instant::now() + moment;
    while Instant::now() < until {
        assert_eq!(carrier.poll(0), []);
        let left = until.saturating_duration_since(Instant::now());
        wait_fd(carrier.fd(), Interest::READ, Some(left)).expect("a descriptor");
    }
}
