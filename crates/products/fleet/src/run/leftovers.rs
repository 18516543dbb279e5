//! `linerate fleet leftovers`: workers of earlier runs on the hosts of an inventory, and their
//! listeners.
//!
//! A worker ends with its agent, by its lease and with its run; what is listed without an agent has
//! outlived all of that.

mod local;

use crate::protocol::message::PREAMBLE;
use crate::report::{HostLeftovers, leftovers_text};
use crate::run::carrier::{Carrier, HostEvent, wait};
use linerate_document::Style;
use linerate_history::run::named::one;
use linerate_model::fleet::HostId;
use linerate_model::record::RunId;
use linerate_sys::clock::monotonic_ns;
use linerate_sys::signal::Signals;
use std::collections::BTreeMap;

use super::cancel::opened;
use super::connect::carrier;
use super::prepare::HELLO_TIMEOUT_NS;
use crate::spec::FleetHosts;
use linerate_model::outcome::{Error, Outcome};

/// Lists the workers of this user on this host, and ends them on request: those without an agent,
/// of a named run all and their agents. As the lines of an agent: the preamble, then one JSON
/// array.
pub fn here(run: Option<RunId>, is_end: bool) -> String {
    let mut found = local::find(run);
    if is_end {
        local::end(&mut found, run.is_some());
    }

    format!(
        "{PREAMBLE}\n{}\n",
        serde_json::to_string(&found).unwrap_or_default()
    )
}

/// The run of a name: an id, or a name of a history.
///
/// # Errors
/// No id, and no name of one run.
pub fn run_named(name: &str, store: Option<&str>) -> Result<RunId, Error> {
    name.parse().or_else(|_| one(&opened(store)?, name))
}

/// Lists the workers of this user on all hosts with an agent, as [`here`] does on one. In the order
/// of the inventory.
///
/// # Errors
/// This host lacks what a coordinator needs, or a signal ended it.
pub fn everywhere(
    hosts: &FleetHosts,
    run: Option<RunId>,
    is_end: bool,
    signals: &Signals,
) -> Result<Vec<(HostId, HostLeftovers)>, Error> {
    let mut arguments = "fleet leftovers --stdio".to_owned();
    if is_end {
        arguments += " --end";
    }
    if let Some(run) = run {
        arguments += &format!(" {run}");
    }
    let mut carrier = carrier(hosts, &arguments)?;
    let ids: Vec<HostId> = hosts.with_agent().map(|host| host.id.clone()).collect();
    let mut answers: BTreeMap<usize, HostLeftovers> = BTreeMap::new();

    let until_ns = monotonic_ns().saturating_add(HELLO_TIMEOUT_NS);
    while answers.len() < ids.len() && monotonic_ns() < until_ns {
        for (host, event) in carrier.poll(monotonic_ns()) {
            let answer = match event {
                HostEvent::Line(line) => {
                    serde_json::from_slice(&line).map_err(|error| error.to_string())
                }
                HostEvent::TooLong => Err("its list is too long".to_owned()),
                HostEvent::Lost { reason } => Err(reason),
            };
            // The end of the connection follows an answer and does not replace it.
            answers.entry(host).or_insert(answer);
            carrier.close(host);
        }

        if wait(&carrier, Some(signals), Some(until_ns)).map_err(Error::failed)? {
            return Err(Error::new(Outcome::Interrupted, "interrupted"));
        }
    }

    let mut of_hosts = Vec::new();
    for (place, id) in ids.into_iter().enumerate() {
        let answer = answers.remove(&place);
        of_hosts.push((id, answer.unwrap_or_else(|| Err("no answer".to_owned()))));
    }

    Ok(of_hosts)
}

/// A row for each worker and each host that does not answer, and the outcome:
/// [`Outcome::CheckFailed`] where something is left, [`Outcome::NotCompleted`] where a host does
/// not answer.
pub fn report(answers: &[(HostId, HostLeftovers)], style: Style) -> (String, Outcome) {
    let mut outcome = Outcome::Done;
    for (_, answer) in answers {
        match answer {
            Ok(found) if found.iter().any(|found| found.is_ended != Some(true)) => {
                outcome = Outcome::CheckFailed;
            }
            Err(_) if outcome == Outcome::Done => outcome = Outcome::NotCompleted,
            _ => {}
        }
    }

    (leftovers_text(answers, style), outcome)
}
