//! Effects of hosts and pairs: how much slower than the reference, and which of them are no chance.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::fleet::{
    Cell, EndEffect, FleetEffects, HostEffect, HostId, PairEffect, PairSuspect,
};

use super::blocks::{SlowUplink, slow_uplinks};
use super::known_good::KnownGood;
use super::matrix::{Entry, Matrix};
use super::reference::Reference;
use linerate_model::outliers::{Candidate, Gates, residual_scale, slow};
use linerate_model::stats::median;

/// Effects in the cells of one path and variant.
#[derive(Debug, Clone, PartialEq)]
pub struct Analysis {
    /// Effects of hosts and pairs.
    pub effects: FleetEffects,
    /// Racks between which hosts that are good elsewhere are slow. Their pairs are among those of
    /// the effects.
    pub uplinks: Vec<SlowUplink>,
}

/// Analyses cells of one path, variant and mode; `None` without a usable one. `racks` has the rack
/// of each host whose rack is known.
///
/// The logarithm of a rate is the reference plus the least of 0, the effect of the source and the
/// effect of the sink.
pub fn analyse(cells: &[&Cell], racks: &BTreeMap<HostId, String>) -> Option<Analysis> {
    let first = cells.first()?;
    let matrix = Matrix::of(cells);
    let racks: Vec<Option<&str>> = matrix
        .hosts
        .iter()
        .map(|host| racks.get(host).map(String::as_str))
        .collect();

    let clearance = KnownGood::of(&matrix)?;
    let reference = Reference::of(&matrix, &clearance, &racks);
    let fit = Fit::new(&matrix, &clearance, reference.rate);
    let scale = fit.scale(&reference, &racks);
    let gates = Gates { scale };
    let (hosts, pairs) = fit.judged(&gates);
    let uplinks = slow_uplinks(&matrix, &clearance, &racks, reference.rate, &gates);
    let effects = FleetEffects {
        path: first.task.path.to_string(),
        variant: first.task.variant.to_string(),
        reference: reference.rate.exp(),
        is_relative: matrix.is_relative,
        scale,
        hosts,
        pairs,
    };

    Some(Analysis { effects, uplinks })
}

/// A direction of a host is slow.
pub(crate) fn is_slow(host: &HostEffect) -> bool {
    host.sends.is_slow || host.receives.is_slow
}

/// The stronger effect of a slow host; 0 of another.
pub(crate) fn strength(host: &HostEffect) -> f64 {
    let of = |end: &EndEffect| end.effect.filter(|_| end.is_slow).unwrap_or(0.0);
    of(&host.sends).min(of(&host.receives))
}

/// Effects of both directions of each host, in the logarithm.
struct Fit<'a> {
    matrix: &'a Matrix,
    clearance: &'a KnownGood,
    reference: f64,
    sends: Vec<End>,
    receives: Vec<End>,
}

/// One direction of a host.
#[derive(Debug, Clone, Copy, Default)]
struct End {
    is_cleared: bool,
    /// Median over its cells with cleared ends; absent without one.
    effect: Option<f64>,
    cells: usize,
}

impl<'a> Fit<'a> {
    fn new(matrix: &'a Matrix, clearance: &'a KnownGood, reference: f64) -> Self {
        let hosts = matrix.hosts.len();
        let (mut sent, mut received) = (vec![Vec::new(); hosts], vec![Vec::new(); hosts]);

        for entry in &matrix.entries {
            let distance = entry.ln - reference;
            // Cells with good sinks show the source; those of other sinks may be slow by either
            // end.
            if let Some(sent) = sent
                .get_mut(entry.source)
                .filter(|_| clearance.has_sink(entry))
            {
                sent.push(distance);
            }

            if let Some(received) = received
                .get_mut(entry.sink)
                .filter(|_| clearance.has_source(entry))
            {
                received.push(distance);
            }
        }

        let end = |(distances, is_cleared): (Vec<f64>, &bool)| {
            // Else one slow pair would be an effect of both of its ends.
            let effect = if *is_cleared {
                Some(0.0)
            } else {
                median(&distances)
            };
            End {
                is_cleared: *is_cleared,
                effect,
                cells: distances.len(),
            }
        };
        let sends = sent.into_iter().zip(&clearance.sources).map(end).collect();

        let receives = received
            .into_iter()
            .zip(&clearance.sinks)
            .map(end)
            .collect();
        Self {
            matrix,
            clearance,
            reference,
            sends,
            receives,
        }
    }

    /// Scale of the residuals of good blocks and good cells.
    fn scale(&self, reference: &Reference<'_>, racks: &[Option<&str>]) -> f64 {
        let rack = |host: usize| racks.get(host).copied().flatten();
        let (mut cleared, mut all) = (Vec::new(), Vec::new());

        for entry in &self.matrix.entries {
            let effects = self
                .sends
                .get(entry.source)
                .zip(self.receives.get(entry.sink));
            let effects = effects.and_then(|(sends, receives)| sends.effect.zip(receives.effect));
            let Some((sends, receives)) = effects else {
                continue;
            };
            let residual = entry.ln - self.reference - sends.min(receives).min(0.0);
            let block = (rack(entry.source), rack(entry.sink));
            let Some(residual) = reference.within_block(block, residual) else {
                continue;
            };
            all.push(residual);

            if self.clearance.has_both(entry) {
                cleared.push(residual);
            }
        }

        residual_scale(&cleared, &all)
    }

    /// Suspect that alone can explain a slow entry, and the distance of its rate to the reference,
    /// in the logarithm.
    fn suspect(&self, entry: &Entry) -> Option<(PairSuspect, f64)> {
        let distance = entry.ln - self.reference;
        // Two good ends leave the path between them as the only cause.
        if self.clearance.has_both(entry) {
            return Some((PairSuspect::Pair, distance));
        }

        let sends = self.sends.get(entry.source)?;
        let receives = self.receives.get(entry.sink)?;
        let is_undecided = sends.effect.is_none() && receives.effect.is_none();
        is_undecided.then_some((PairSuspect::OneOfTwo, distance))
    }

    /// All effects with their significance, and the slow pairs.
    fn judged(&self, gates: &Gates) -> (Vec<HostEffect>, Vec<PairEffect>) {
        let pairs: Vec<(&Entry, PairSuspect, f64)> = self
            .matrix
            .entries
            .iter()
            .filter_map(|entry| {
                self.suspect(entry)
                    .map(|(suspect, effect)| (entry, suspect, effect))
            })
            .collect();
        let of_end = |end: &End| Candidate {
            effect: end.effect.unwrap_or(0.0),
            cells: end.cells,
        };
        let ends = self.sends.iter().chain(&self.receives).map(of_end);
        let of_pair = pairs.iter().map(|(.., effect)| Candidate {
            effect: *effect,
            cells: 0,
        });
        // Ends and pairs are candidates of one correction: all of them are tested on the same
        // cells.
        let judged = slow(&ends.chain(of_pair).collect::<Vec<_>>(), gates);
        let hosts = self.matrix.hosts.len();
        // Positions: the sending ends, the receiving ends, then the pairs.
        let verdict = |at: usize| judged.get(at).copied().unwrap_or((1.0, false));
        let end = |end: &End, at: usize| {
            let (p, is_slow) = verdict(at);
            let effect = end.effect.map(f64::exp_m1);
            let cells = u32::try_from(end.cells).unwrap_or(u32::MAX);

            EndEffect {
                is_cleared: end.is_cleared,
                effect,
                cells,
                p: effect.map(|_| p),
                is_slow,
            }
        };

        let ends = self
            .matrix
            .hosts
            .iter()
            .zip(self.sends.iter().zip(&self.receives))
            .enumerate();
        let of_host =
            |(at, (host, (sends, receives))): (usize, (&HostId, (&End, &End)))| HostEffect {
                host: host.clone(),
                sends: end(sends, at),
                receives: end(receives, hosts + at),
            };
        let effects = ends.map(of_host).collect();
        let is_slow = |(at, _): &(usize, &(&Entry, PairSuspect, f64))| verdict(2 * hosts + at).1;
        let slow = pairs
            .iter()
            .enumerate()
            .filter(is_slow)
            .map(|(_, pair)| *pair)
            .collect();

        (effects, self.named(slow))
    }

    /// Slow pairs, strongest first, with the names of their hosts. Where no end at all is cleared,
    /// there is no reference.
    fn named(&self, mut pairs: Vec<(&Entry, PairSuspect, f64)>) -> Vec<PairEffect> {
        let has_reference = self
            .matrix
            .entries
            .iter()
            .any(|entry| self.clearance.has_both(entry));
        pairs.retain(|_| has_reference);
        pairs.sort_by(|(.., a), (.., b)| a.total_cmp(b));

        let host = |at: usize| self.matrix.hosts.get(at).cloned();
        let named = pairs.into_iter().filter_map(|(entry, suspect, effect)| {
            let (source, sink) = (host(entry.source)?, host(entry.sink)?);
            Some(PairEffect {
                source,
                sink,
                effect: effect.exp_m1(),
                suspect,
            })
        });
        named.collect()
    }
}

impl Analysis {
    /// Hosts that need more tests: slow ends, and ends of pairs that no third host decides.
    pub fn suspects(&self) -> Vec<HostId> {
        let slow = self.effects.hosts.iter().filter(|host| is_slow(host));
        let undecided = self
            .effects
            .pairs
            .iter()
            .filter(|pair| pair.suspect == PairSuspect::OneOfTwo);
        let undecided = undecided.flat_map(|pair| [&pair.source, &pair.sink]);
        let all: BTreeSet<&HostId> = slow.map(|host| &host.host).chain(undecided).collect();

        all.into_iter().cloned().collect()
    }

    /// Hosts of which both directions are cleared, those of most cells first.
    pub fn references(&self) -> Vec<HostId> {
        let is_good = |host: &&HostEffect| host.sends.is_cleared && host.receives.is_cleared;
        let mut good: Vec<&HostEffect> = self.effects.hosts.iter().filter(is_good).collect();
        good.sort_by_key(|host| std::cmp::Reverse(host.sends.cells + host.receives.cells));
        good.into_iter().map(|host| host.host.clone()).collect()
    }
}
