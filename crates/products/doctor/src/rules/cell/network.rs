//! Rule 3: the link is full, or the path loses segments.

use linerate_model::http::units::{percent, rate_name};
use linerate_model::http::{CellFacts, Network};

use super::condition::{Condition, any, at_least, less_than};
use crate::rules::prelude::*;

/// A link is full from here on, in responses as a share of the ceiling or in bits as a share of its
/// speed.
const FULL: f64 = 0.97;
/// From here on a queue that overflows shows that the link is full.
const NEARLY_FULL: f64 = 0.9;
/// Below this share of a link it does not limit a cell.
pub(super) const ROOM: f64 = 0.95;
/// Measurement that a verdict lacks where neither the link nor TCP alone names a rate.
pub(super) const NOT_JUDGED: &str =
    "the network was not judged: its rate is not known, --line-rate names it";
/// Segments may be lost for this share of those that were sent.
const RETRANSMITS_MAX: f64 = 0.001;

pub(super) fn bound(facts: &CellFacts) -> Ruling {
    let Network::Link {
        bps,
        bits_per_response,
    } = facts.network
    else {
        return clear("no link of known speed");
    };
    let what = "answers as a share of what the link allows";
    let in_use = format!("share of {} in use", rate_name(bps));
    let full = [
        at_least(what, facts.medians.of_ceiling, FULL),
        at_least(&in_use, facts.medians.nic_util, FULL),
    ];
    let full = full.into_iter().flatten().chain(overflowing(facts));

    any(full
        .map(|condition| (condition, advice(bits_per_response)))
        .collect())
}

/// A path that loses nothing without load, and loses under this one: the queue before its slowest
/// link overflows.
fn overflowing(facts: &CellFacts) -> Option<Condition> {
    let share = facts
        .server
        .as_ref()?
        .retransmit_share
        .filter(|share| *share > RETRANSMITS_MAX)?;
    let used = used_share(facts).filter(|used| *used >= NEARLY_FULL)?;
    (facts.is_lossy_without_load == Some(false)).then(|| {
        Condition::certain(format!(
            "{} of the network in use, and {} of the segments sent again, which without load are \
             not: its queue overflows",
            percent(used),
            percent(share)
        ))
    })
}

fn advice(bits_per_response: Option<f64>) -> String {
    let mut text =
        "the best outcome: only a faster link or a smaller or compressed payload gives more"
            .to_owned();
    if let Some(bits) = bits_per_response {
        let each = rate_name(1000.0 * bits);
        text += &format!(", at least {each} for each 1,000 answers per second");
    }

    text
}

pub(super) fn loss(facts: &CellFacts) -> Ruling {
    require(facts.network != Network::Loopback, "no network")?;
    let retransmits = "what the server sent again";
    let server = facts
        .server
        .as_ref()
        .or_unknown(retransmits, "is not known: no agent there")?;
    let share = server
        .retransmit_share
        .or_unknown(retransmits, "could not be read")?;
    require(
        share > RETRANSMITS_MAX,
        format!("{} sent again", percent(share)),
    )?;
    // A full queue alone caused 0.145 % of retransmitted segments.
    require(
        facts.is_lossy_without_load != Some(false),
        "without load the path loses nothing",
    )?;

    let text = format!(
        "{} of the server's segments sent again, more than {}",
        percent(share),
        percent(RETRANSMITS_MAX)
    );
    let found = matched()
        .and(Condition::certain(text))
        .advice("find where with `linerate doctor`");

    // Queues that overflow under load lose as well.
    let found = if facts.is_lossy_without_load.is_none() {
        found.cap(Confidence::Medium)
    } else {
        found
    };
    has_room(facts, found, FULL)
}

/// Matches further when the link had room; a link whose share is not known lowers the confidence.
pub(super) fn has_room(facts: &CellFacts, found: Match, threshold: f64) -> Ruling {
    match (facts.network, used_share(facts)) {
        (Network::Loopback, _) => Ok(found),
        (_, None) => Ok(found.and(Condition::unsure(NOT_JUDGED))),
        (_, used) => match less_than("share of the link in use", used, threshold) {
            Some(condition) => Ok(found.and(condition)),
            None => clear("the link is full"),
        },
    }
}

/// Share of the link in use: bits of its speed, or responses of its ceiling where that is more. A
/// path that is slower than the link it begins with is full before the link is.
pub(super) fn used_share(facts: &CellFacts) -> Option<f64> {
    [facts.medians.nic_util, facts.medians.of_ceiling]
        .into_iter()
        .flatten()
        .reduce(f64::max)
}
