//! Blocks of cells: all from the hosts of one rack to those of another.

use std::collections::{BTreeMap, BTreeSet};

use super::matrix::{KnownGood, Matrix};
use linerate_model::outliers::Gates;
use linerate_model::stats::median;

/// Racks between which hosts that are good elsewhere are slow.
#[derive(Debug)]
pub struct SlowUplink {
    /// The rack whose uplink explains it; absent where two racks are slow with each other and no
    /// third one decides.
    pub rack: Option<String>,
    /// Pairs of racks, source first, that are slow.
    pub blocks: Vec<(String, String)>,
    /// Median rate of these pairs against the reference, minus 1.
    pub effect: f64,
}

impl SlowUplink {
    /// What is slow: the uplink of a rack, or the links between two.
    pub(super) fn name(&self) -> String {
        match (&self.rack, self.blocks.as_slice()) {
            (Some(rack), _) => format!("uplink of {rack}"),
            (None, [(from, to)]) => format!("{from} to {to}"),
            (None, blocks) => blocks
                .first()
                .map_or_else(String::new, |(from, to)| format!("between {from} and {to}")),
        }
    }

    /// Tests between hosts of these racks pass it.
    pub(super) fn carries(&self, from: Option<&String>, to: Option<&String>) -> bool {
        let mut blocks = self.blocks.iter();
        blocks.any(|(source, sink)| (Some(source), Some(sink)) == (from, to))
    }
}

/// Cells that decide a block at least.
const BLOCK_CELLS_MIN: usize = 3;
/// Part of the cells of a slow block that are slow.
const SLOW_SHARE_MIN: f64 = 0.75;

/// Racks of source and sink.
pub(super) type Racks<'a> = (Option<&'a str>, Option<&'a str>);

/// Rack that sends, and rack that receives.
type Block<'a> = (&'a str, &'a str);

/// Uplinks that make pairs of racks slow. A rack all of whose blocks in one direction are slow
/// explains them; it needs two other racks.
pub(super) fn slow_uplinks(
    matrix: &Matrix,
    clearance: &KnownGood,
    racks: &[Option<&str>],
    reference: f64,
    gates: &Gates,
) -> Vec<SlowUplink> {
    let mut measured: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    let mut slow = BTreeSet::new();
    for (block, mut cells) in by_block(matrix, clearance, racks) {
        // Cells within one rack do not pass an uplink.
        if let (Some(from), Some(to)) = block
            && from != to
            && cells.len() >= BLOCK_CELLS_MIN
        {
            cells.iter_mut().for_each(|cell| *cell -= reference);
            let passed = cells.iter().filter(|cell| gates.are_passed(**cell)).count();
            if passed as f64 >= SLOW_SHARE_MIN * cells.len() as f64 {
                slow.insert((from, to));
            }
            measured.insert((from, to), cells);
        }
    }

    // Racks are decided first: the uplink of one explains all of its slow blocks.
    let mut explained: Vec<(Option<&str>, Vec<Block<'_>>)> = Vec::new();
    let guilty = guilty(measured.keys().copied().collect(), &slow);
    for rack in &guilty {
        let of_rack = slow.iter().filter(|(from, to)| rack == from || rack == to);
        explained.push((Some(*rack), of_rack.copied().collect()));
    }

    slow.retain(|(from, to)| !guilty.contains(from) && !guilty.contains(to));
    while let Some((from, to)) = slow.pop_first() {
        let mut blocks = vec![(from, to)];
        // Both directions of two racks are one statement.
        blocks.extend(slow.take(&(to, from)));
        explained.push((None, blocks));
    }

    let mut uplinks = Vec::new();
    for (rack, blocks) in explained {
        let mut cells = Vec::new();
        let mut named = Vec::new();
        for (from, to) in blocks {
            cells.extend_from_slice(&measured[&(from, to)]);
            named.push((from.to_owned(), to.to_owned()));
        }
        uplinks.push(SlowUplink {
            rack: rack.map(str::to_owned),
            blocks: named,
            effect: median(&cells).unwrap_or(0.0).exp_m1(),
        });
    }

    uplinks
}

/// Racks of whose blocks all from it or all to it are slow, at least two.
fn guilty<'a>(
    measured: Vec<(&'a str, &'a str)>,
    slow: &BTreeSet<(&'a str, &'a str)>,
) -> Vec<&'a str> {
    // The blocks of a rack in one direction, and how many of them are slow.
    let mut counts: BTreeMap<(&str, bool), (usize, usize)> = BTreeMap::new();
    for (from, to) in measured {
        for key in [(from, false), (to, true)] {
            let (all, slow_ones) = counts.entry(key).or_default();
            *all += 1;
            *slow_ones += usize::from(slow.contains(&(from, to)));
        }
    }

    let mut guilty = Vec::new();
    for ((rack, _), (all, slow_ones)) in counts {
        // One slow block has two racks, and decides for neither of them.
        if all >= 2 && all == slow_ones && guilty.last() != Some(&rack) {
            guilty.push(rack);
        }
    }

    guilty
}

/// Cells between cleared ends by the racks of source and sink.
fn by_block<'a>(
    matrix: &Matrix,
    clearance: &KnownGood,
    racks: &[Option<&'a str>],
) -> BTreeMap<Racks<'a>, Vec<f64>> {
    let mut blocks: BTreeMap<Racks<'a>, Vec<f64>> = BTreeMap::new();
    for entry in &matrix.entries {
        if clearance.has_both(entry) {
            let block = (racks[entry.source], racks[entry.sink]);
            blocks.entry(block).or_default().push(entry.ln);
        }
    }

    blocks
}

/// Values that the cells of a good fleet have in common, in the logarithm.
pub(super) struct Reference<'a> {
    /// Median of the good cells between cleared ends, of the best block. Most pairs of a fleet may
    /// cross a slow uplink, and their cells would move the median of all.
    pub rate: f64,
    /// Cells within this distance are good: twice the tolerance of the ends, so that noise cuts no
    /// tail off.
    limit: f64,
    /// Median of each block that decides, against the reference.
    middles: BTreeMap<Racks<'a>, f64>,
}

impl<'a> Reference<'a> {
    pub(super) fn of(matrix: &Matrix, clearance: &KnownGood, racks: &[Option<&'a str>]) -> Self {
        let blocks = by_block(matrix, clearance, racks);
        let limit = 2.0 * clearance.tolerance;
        let mut best: Option<f64> = None;
        let mut few = Vec::new();
        for cells in blocks.values() {
            let mut good = cells.clone();
            good.retain(|cell| *cell >= clearance.reference + limit);
            if good.len() < BLOCK_CELLS_MIN {
                few.extend(good);
            } else {
                best = best.into_iter().chain(median(&good)).reduce(f64::max);
            }
        }

        // Small fleets have no block that decides, so the good cells of all blocks count together.
        let rate = best.or_else(|| median(&few)).unwrap_or(clearance.reference);
        let mut middles = BTreeMap::new();
        for (block, cells) in blocks {
            if let Some(middle) = median(&cells)
                && cells.len() >= BLOCK_CELLS_MIN
            {
                middles.insert(block, middle - rate);
            }
        }

        Self {
            rate,
            limit,
            middles,
        }
    }

    /// The residual of a block without the median of a good block. Absent in a slow block, where
    /// rates depend on the number of pairs that share its uplink, but for good cells.
    pub(super) fn within_block(&self, block: Racks<'_>, residual: f64) -> Option<f64> {
        // A block that is not known has no median to subtract.
        match self.middles.get(&block).copied().unwrap_or(0.0) {
            middle if middle >= self.limit => Some(residual - middle),
            _ => Some(residual).filter(|residual| *residual >= self.limit),
        }
    }
}
