//! Effects of hosts and pairs: how much slower than the reference, and which of them are no chance.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::fleet::{
    Cell, EndEffect, FleetEffects, HostEffect, HostId, PairEffect, PairSuspect,
};

use super::blocks::{Reference, SlowUplink, slow_uplinks};
use super::matrix::{Entry, KnownGood, Matrix};
use linerate_model::outliers::{Candidate, Gates, residual_scale, slow};
use linerate_model::stats::median;

/// Effects in the cells of one path and variant.
#[derive(Debug)]
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
    let mut rack_of = Vec::new();
    for host in &matrix.hosts {
        rack_of.push(racks.get(host).map(String::as_str));
    }

    let clearance = KnownGood::of(&matrix)?;
    let reference = Reference::of(&matrix, &clearance, &rack_of);
    let fit = Fit::new(&matrix, &clearance, reference.rate);
    let scale = fit.scale(&reference, &rack_of);
    let gates = Gates { scale };
    let (hosts, pairs) = fit.judged(&gates);
    let uplinks = slow_uplinks(&matrix, &clearance, &rack_of, reference.rate, &gates);
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
#[derive(Clone, Copy)]
struct End {
    is_cleared: bool,
    /// Median over its cells with cleared ends; absent without one.
    effect: Option<f64>,
    cells: usize,
}

impl<'a> Fit<'a> {
    fn new(matrix: &'a Matrix, clearance: &'a KnownGood, reference: f64) -> Self {
        let hosts = matrix.hosts.len();
        let mut sent = vec![Vec::new(); hosts];
        let mut received = vec![Vec::new(); hosts];

        for entry in &matrix.entries {
            let distance = entry.ln - reference;
            // Cells with good sinks show the source; those of other sinks may be slow by either
            // end.
            if clearance.sinks[entry.sink] {
                sent[entry.source].push(distance);
            }
            if clearance.sources[entry.source] {
                received[entry.sink].push(distance);
            }
        }

        Self {
            matrix,
            clearance,
            reference,
            sends: ends(&sent, &clearance.sources),
            receives: ends(&received, &clearance.sinks),
        }
    }

    /// Scale of the residuals of good blocks and good cells.
    fn scale(&self, reference: &Reference<'_>, racks: &[Option<&str>]) -> f64 {
        let mut cleared = Vec::new();
        let mut all = Vec::new();
        for entry in &self.matrix.entries {
            let ends = (&self.sends[entry.source], &self.receives[entry.sink]);
            let (Some(sends), Some(receives)) = (ends.0.effect, ends.1.effect) else {
                continue;
            };
            let residual = entry.ln - self.reference - sends.min(receives).min(0.0);
            let block = (racks[entry.source], racks[entry.sink]);
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

    /// Suspect that alone can explain a slow entry.
    fn suspect(&self, entry: &Entry) -> Option<PairSuspect> {
        // Two good ends leave the path between them as the only cause.
        if self.clearance.has_both(entry) {
            return Some(PairSuspect::Pair);
        }

        let sends = &self.sends[entry.source];
        let receives = &self.receives[entry.sink];
        let is_undecided = sends.effect.is_none() && receives.effect.is_none();
        is_undecided.then_some(PairSuspect::OneOfTwo)
    }

    /// All effects with their significance, and the slow pairs.
    fn judged(&self, gates: &Gates) -> (Vec<HostEffect>, Vec<PairEffect>) {
        // Ends and pairs are candidates of one correction: all of them are tested on the same
        // cells. Positions: the sending ends, the receiving ends, then the pairs.
        let mut candidates = Vec::new();
        for end in self.sends.iter().chain(&self.receives) {
            candidates.push(Candidate {
                effect: end.effect.unwrap_or(0.0),
                cells: end.cells,
            });
        }
        let mut pairs = Vec::new();
        for entry in &self.matrix.entries {
            if let Some(suspect) = self.suspect(entry) {
                let effect = entry.ln - self.reference;
                candidates.push(Candidate { effect, cells: 0 });
                pairs.push((entry, suspect));
            }
        }

        let judged = slow(&candidates, gates);
        let verdict = |at: usize| judged.get(at).copied().unwrap_or((1.0, false));
        let end = |end: &End, at: usize| {
            let (p, is_slow) = verdict(at);
            let effect = end.effect.map(f64::exp_m1);
            EndEffect {
                is_cleared: end.is_cleared,
                effect,
                cells: u32::try_from(end.cells).unwrap_or(u32::MAX),
                p: effect.map(|_| p),
                is_slow,
            }
        };

        let count = self.matrix.hosts.len();
        let mut hosts = Vec::new();
        for (at, host) in self.matrix.hosts.iter().enumerate() {
            hosts.push(HostEffect {
                host: host.clone(),
                sends: end(&self.sends[at], at),
                receives: end(&self.receives[at], count + at),
            });
        }

        let places = 2 * count..;
        let mut slow = Vec::new();
        for (at, pair) in places.zip(pairs) {
            if verdict(at).1 {
                slow.push(pair);
            }
        }

        (hosts, self.named(slow))
    }

    /// Slow pairs, strongest first, with the names of their hosts. Where no end at all is cleared,
    /// there is no reference.
    fn named(&self, mut pairs: Vec<(&Entry, PairSuspect)>) -> Vec<PairEffect> {
        let mut entries = self.matrix.entries.iter();
        if !entries.any(|entry| self.clearance.has_both(entry)) {
            return Vec::new();
        }

        pairs.sort_by(|(a, _), (b, _)| a.ln.total_cmp(&b.ln));
        let mut named = Vec::new();
        for (entry, suspect) in pairs {
            named.push(PairEffect {
                source: self.matrix.hosts[entry.source].clone(),
                sink: self.matrix.hosts[entry.sink].clone(),
                effect: (entry.ln - self.reference).exp_m1(),
                suspect,
            });
        }

        named
    }
}

impl Analysis {
    /// Hosts that need more tests: slow ends, and ends of pairs that no third host decides.
    pub fn suspects(&self) -> BTreeSet<HostId> {
        let mut suspects = BTreeSet::new();
        for host in self.effects.hosts.iter().filter(|host| is_slow(host)) {
            suspects.insert(host.host.clone());
        }
        for pair in &self.effects.pairs {
            if pair.suspect == PairSuspect::OneOfTwo {
                suspects.extend([pair.source.clone(), pair.sink.clone()]);
            }
        }

        suspects
    }

    /// Hosts of which both directions are cleared, those of most cells first.
    pub fn references(&self) -> Vec<HostId> {
        let mut good: Vec<&HostEffect> = self.effects.hosts.iter().collect();
        good.retain(|host| host.sends.is_cleared && host.receives.is_cleared);
        good.sort_by_key(|host| std::cmp::Reverse(host.sends.cells + host.receives.cells));
        good.into_iter().map(|host| host.host.clone()).collect()
    }
}

/// One direction of each host, by its distances from the reference.
fn ends(distances: &[Vec<f64>], cleared: &[bool]) -> Vec<End> {
    let mut ends = Vec::new();
    for (distances, is_cleared) in distances.iter().zip(cleared) {
        ends.push(End {
            is_cleared: *is_cleared,
            // Else one slow pair would be an effect of both of its ends.
            effect: if *is_cleared {
                Some(0.0)
            } else {
                median(distances)
            },
            cells: distances.len(),
        });
    }

    ends
}
