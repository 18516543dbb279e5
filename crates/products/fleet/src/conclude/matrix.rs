//! Rates of a fleet by source and sink.

use std::collections::BTreeMap;

use linerate_model::fleet::{Cell, HostId, Measurement};
use linerate_model::outliers::TOLERANCE_LN;
use linerate_model::stats::median;

/// Logarithms of the rates between hosts, one for each source and sink: the median over the
/// repetitions.
pub(super) struct Matrix {
    /// In the order of their ids.
    pub hosts: Vec<HostId>,
    pub entries: Vec<Entry>,
    /// Rates are shares of the nominal rate.
    pub is_relative: bool,
}

/// Rate from one host to another.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub source: usize,
    pub sink: usize,
    /// Natural logarithm of the rate.
    pub ln: f64,
}

impl Matrix {
    /// Makes a matrix of the measured cells. The rates are shares of the nominal rates where these
    /// are known of all.
    pub(super) fn of(cells: &[&Cell]) -> Self {
        let mut measured: Vec<(&Cell, &Measurement)> = Vec::new();
        let mut places: BTreeMap<&HostId, usize> = BTreeMap::new();
        // Shares and absolute rates are not comparable, so one unknown link makes all rates
        // absolute.
        let mut is_relative = true;
        for cell in cells {
            let Some(of) = cell.usable() else { continue };
            let nominal = of.nominal_bps.unwrap_or(0.0);
            is_relative &= nominal.is_finite() && nominal > 0.0;
            places.insert(&cell.task.source, 0);
            places.insert(&cell.task.sink, 0);
            measured.push((cell, of));
        }
        for (at, place) in places.values_mut().enumerate() {
            *place = at;
        }

        let mut rates: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
        for (Cell { task, .. }, of) in measured {
            let ends = (places[&task.source], places[&task.sink]);
            // A host with itself is no pair: one host would be both ends of the cell.
            if ends.0 == ends.1 {
                continue;
            }
            // A test that moved nothing counts as 1 bit/s: the logarithm of 0 is not finite and
            // would spoil every sum that it enters.
            let mut ln = of.goodput_bps.max(1.0).ln();
            // Effects of ends multiply the rate, so they add up in the logarithm.
            if let Some(nominal) = of.nominal_bps.filter(|_| is_relative) {
                ln -= nominal.ln();
            }
            rates.entry(ends).or_default().push(ln);
        }

        let mut entries = Vec::new();
        for ((source, sink), rates) in rates {
            if let Some(ln) = median(&rates) {
                entries.push(Entry { source, sink, ln });
            }
        }

        Self {
            hosts: places.into_keys().cloned().collect(),
            entries,
            is_relative,
        }
    }
}

/// Number of cells from which the second best counts: one cell may be high by chance.
const CELLS_SECOND_MIN: usize = 4;

/// Which ends are known to be good.
pub(super) struct KnownGood {
    /// Median over the hosts of their best cell. The median of all cells would count a slow host
    /// once for each partner.
    pub reference: f64,
    /// Distance from the reference within which an end is as good, a negative logarithm.
    pub tolerance: f64,
    pub sources: Vec<bool>,
    pub sinks: Vec<bool>,
}

impl KnownGood {
    /// `None` without cells.
    pub(super) fn of(matrix: &Matrix) -> Option<Self> {
        let hosts = matrix.hosts.len();
        let sent = by_end(&matrix.entries, hosts, |entry| entry.source);
        let received = by_end(&matrix.entries, hosts, |entry| entry.sink);
        let mut best_cells = Vec::new();
        for (sent, received) in sent.iter().zip(&received) {
            let mut all = [sent.as_slice(), received].concat();
            all.sort_unstable_by(|a, b| b.total_cmp(a));
            // A cell is bounded by its slower end, so the best cell shows the host most of all.
            best_cells.extend(best(&all));
        }
        let reference = median(&best_cells)?;

        // Noise beyond the tolerance would clear few ends, and the reference would be the highest
        // cells.
        let tolerance = TOLERANCE_LN.min(-TOLERANCE_NOISES * noise(sent.iter().chain(&received)));
        let are_cleared = |ends: &[Vec<f64>]| {
            let best = ends.iter().map(|rates| best(rates));
            best.map(|best| best.is_some_and(|rate| rate >= reference + tolerance))
                .collect()
        };

        Some(Self {
            reference,
            tolerance,
            sources: are_cleared(&sent),
            sinks: are_cleared(&received),
        })
    }

    pub(super) fn has_both(&self, entry: &Entry) -> bool {
        self.sources[entry.source] && self.sinks[entry.sink]
    }
}

/// Standard deviations of the noise that are tolerated.
const TOLERANCE_NOISES: f64 = 2.0;
/// Standard deviation of normal noise over the lower quartile of the distances from the best to the
/// third best of seven.
const NOISE_FACTOR: f64 = 1.6;

/// Standard deviation of the best cells of each end, in the logarithm: the lower quartile over the
/// ends, because slow partners and slow ends differ from it upwards only. 0 where no end has four
/// cells.
fn noise<'a>(ends: impl Iterator<Item = &'a Vec<f64>>) -> f64 {
    let ends = ends.filter(|rates| rates.len() >= CELLS_SECOND_MIN);
    let mut distances: Vec<f64> = ends
        .filter_map(|rates| Some(rates.first()? - rates.get(2)?))
        .collect();
    distances.sort_unstable_by(f64::total_cmp);
    NOISE_FACTOR * distances.get(distances.len() / 4).copied().unwrap_or(0.0)
}

/// The best of rates that are sorted, or the second best.
fn best(rates: &[f64]) -> Option<f64> {
    // An index of 1 is the second best.
    let at = usize::from(rates.len() >= CELLS_SECOND_MIN);
    rates.get(at).copied()
}

/// The rates of each end, the best first.
fn by_end(entries: &[Entry], hosts: usize, end: impl Fn(&Entry) -> usize) -> Vec<Vec<f64>> {
    let mut rates = vec![Vec::new(); hosts];
    for entry in entries {
        rates[end(entry)].push(entry.ln);
    }
    for rates in &mut rates {
        rates.sort_unstable_by(|a, b| b.total_cmp(a));
    }

    rates
}
