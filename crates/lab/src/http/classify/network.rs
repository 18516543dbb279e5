//! Rule 3: the link is full, or the path loses segments.

use linerate_model::http::VerdictClass;

use super::evidence::{Condition, Match, RuleResult, at_least, less_than};
use super::{Facts, Network};
use crate::http::units::{percent, rate_name};

/// A link is full from here on, in answers as a share of the ceiling or in bits as a share of its speed.
const FULL: f64 = 0.97;
/// Below this share of a link it is not what holds a cell back.
pub(super) const ROOM: f64 = 0.95;
/// Segments may be lost for this share of those that were sent.
const RETRANSMITS_MAX: f64 = 0.001;

pub(super) fn bound(facts: &Facts<'_>) -> RuleResult {
    let Network::Link { bps, bits_per_response } = facts.network else {
        return RuleResult::NoMatch;
    };
    let speed = rate_name(bps);
    let full = [
        at_least(
            "answers as a share of what the link allows",
            facts.medians.of_ceiling,
            FULL,
        ),
        at_least(&format!("share of {speed} in use"), facts.medians.nic_util, FULL),
    ];
    let found = full
        .into_iter()
        .flatten()
        .map(|condition| (condition, advice(bits_per_response)));
    Match::any(VerdictClass::NetworkBound, found.collect()).map_or(RuleResult::NoMatch, RuleResult::Matched)
}

fn advice(bits_per_response: Option<f64>) -> String {
    let mut text = "the best outcome: only a faster link or a smaller or compressed payload gives more".to_owned();
    if let Some(bits) = bits_per_response {
        let each = rate_name(1000.0 * bits);
        text += &format!(", at least {each} for each 1,000 answers per second");
    }
    text
}

pub(super) fn loss(facts: &Facts<'_>) -> RuleResult {
    if facts.network == Network::Loopback {
        return RuleResult::NoMatch;
    }
    let Some(server) = &facts.server else {
        return RuleResult::Unknown("what the server sent again is not known: no agent there".to_owned());
    };
    let Some(share) = server.retransmit_share else {
        return RuleResult::Unknown("what the server sent again could not be read".to_owned());
    };
    if share <= RETRANSMITS_MAX {
        return RuleResult::NoMatch;
    }
    let text = format!(
        "{} of the server's segments sent again, more than {}",
        percent(share),
        percent(RETRANSMITS_MAX)
    );
    let fit = Match::new(VerdictClass::NetworkLoss, "find where with `linerate doctor`").and(Condition::certain(text));
    has_room(facts, fit, FULL).map_or(RuleResult::NoMatch, RuleResult::Matched)
}

/// The same when the link had room; a link whose share is not known makes it less sure.
pub(super) fn has_room(facts: &Facts<'_>, fit: Match, threshold: f64) -> Option<Match> {
    match (facts.network, used_share(facts)) {
        (Network::Loopback, _) => Some(fit),
        (_, None) => Some(fit.and(Condition::unsure("the share of the link in use is not known"))),
        (_, used) => Some(fit.and(less_than("share of the link in use", used, threshold)?)),
    }
}

/// Share of the link in use: bits of its speed, or answers of what it allows where that is more. A path that is slower
/// than the link it begins with is full before the link is.
pub(super) fn used_share(facts: &Facts<'_>) -> Option<f64> {
    let medians = facts.medians;
    [medians.nic_util, medians.of_ceiling]
        .into_iter()
        .flatten()
        .reduce(f64::max)
}
