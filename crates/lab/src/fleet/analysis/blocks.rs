//! Blocks of cells: all from the hosts of one rack to those of another.

use std::collections::{BTreeMap, BTreeSet};

use super::clearance::{Clearance, TOLERANCE_LN};
use super::discovery::Gates;
use super::matrix::{Entry, Matrix};
use crate::stats::{median, median_deviation};

/// Racks between which hosts that are good elsewhere are slow.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowUplink {
    /// The rack whose uplink explains it; absent where two racks are slow with each other and no third one decides.
    pub rack: Option<String>,
    /// Pairs of racks, source first, that are slow.
    pub blocks: Vec<(String, String)>,
    /// Median rate of these pairs against the reference, minus 1.
    pub effect: f64,
}

/// Cells that decide a block at least.
const BLOCK_CELLS_MIN: usize = 3;
/// Part of the cells of a slow block that are slow.
const SLOW_SHARE_MIN: f64 = 0.75;
/// Standard deviation of normal noise over the median of its absolute values.
const DEVIATION_FACTOR: f64 = 1.4826;
/// No scale is smaller: rates differ by as much from one test to the next.
const SCALE_MIN: f64 = 0.005;

/// Racks of source and sink.
pub(super) type Racks<'a> = (Option<&'a str>, Option<&'a str>);

/// What the cells of a good fleet have in common, in the logarithm.
pub(super) struct Reference<'a> {
    /// Median of the best block of cells between cleared ends: most pairs of a fleet cross racks, so that a slow uplink would
    /// move the median of all. Without racks all cells are one block.
    pub(super) rate: f64,
    /// Median of each block that decides.
    middles: BTreeMap<Racks<'a>, f64>,
}

impl<'a> Reference<'a> {
    pub(super) fn of(matrix: &Matrix, clearance: &Clearance, racks: &[Option<&'a str>]) -> Self {
        let blocks = by_block(matrix, clearance, racks);
        let all: Vec<f64> = blocks.values().flatten().copied().collect();
        let decides = |(_, cells): &(&Racks<'a>, &Vec<f64>)| cells.len() >= BLOCK_CELLS_MIN;
        let middle = |(block, cells): (&Racks<'a>, &Vec<f64>)| Some((*block, median(cells)?));
        let middles: BTreeMap<Racks<'a>, f64> = blocks.iter().filter(decides).filter_map(middle).collect();
        let best = middles.values().copied().reduce(f64::max);
        Self { rate: best.or_else(|| median(&all)).unwrap_or(clearance.reference), middles }
    }

    /// Median of a block against the reference; `None` of a slow block, in which rates depend on the number of pairs that
    /// share its uplink.
    pub(super) fn good_block(&self, block: Racks<'_>) -> Option<f64> {
        let middle = self.middles.get(&block).map_or(0.0, |middle| middle - self.rate);
        Some(middle).filter(|middle| *middle >= TOLERANCE_LN)
    }
}

/// Scale of what the effects do not explain, from the residuals of cells between cleared ends and from those of all cells:
/// few cells of cleared ends may agree by chance.
pub(super) fn scale(cleared: &[f64], all: &[f64]) -> f64 {
    let scales = [cleared, all].into_iter().filter_map(median_deviation).map(|deviation| deviation * DEVIATION_FACTOR);
    scales.fold(SCALE_MIN, f64::max)
}

/// Uplinks that make pairs of racks slow. A rack all of whose blocks in one direction are slow explains them; it needs two
/// other racks.
pub(super) fn slow_uplinks(
    matrix: &Matrix,
    clearance: &Clearance,
    racks: &[Option<&str>],
    reference: f64,
    gates: &Gates,
) -> Vec<SlowUplink> {
    let mut measured: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for (block, cells) in by_block(matrix, clearance, racks) {
        if let (Some(from), Some(to)) = block
            && from != to
            && cells.len() >= BLOCK_CELLS_MIN
        {
            measured.insert((from, to), cells.into_iter().map(|cell| cell - reference).collect());
        }
    }
    let is_slow = |cells: &[f64]| {
        let slow = cells.iter().filter(|cell| gates.are_passed(**cell)).count();
        slow as f64 >= SLOW_SHARE_MIN * cells.len() as f64
    };
    let mut slow: BTreeSet<(&str, &str)> =
        measured.iter().filter(|(_, cells)| is_slow(cells)).map(|(block, _)| *block).collect();
    let uplink = |rack: Option<&str>, blocks: Vec<(&str, &str)>| {
        let cells: Vec<f64> = blocks.iter().filter_map(|block| measured.get(block)).flatten().copied().collect();
        let blocks = blocks.into_iter().map(|(from, to)| (from.to_owned(), to.to_owned())).collect();
        SlowUplink { rack: rack.map(str::to_owned), blocks, effect: median(&cells).unwrap_or(0.0).exp_m1() }
    };
    let mut uplinks = Vec::new();
    for rack in guilty(measured.keys().copied(), &slow) {
        let blocks = slow.iter().filter(|(from, to)| rack == *from || rack == *to).copied().collect();
        uplinks.push(uplink(Some(rack), blocks));
    }
    for found in &uplinks {
        slow.retain(|(from, to)| found.rack.as_deref() != Some(*from) && found.rack.as_deref() != Some(*to));
    }
    while let Some((from, to)) = slow.pop_first() {
        let back = slow.take(&(to, from));
        uplinks.push(uplink(None, std::iter::once((from, to)).chain(back).collect()));
    }
    uplinks
}

/// Racks of whose blocks all from it or all to it are slow, at least two.
fn guilty<'a>(measured: impl Iterator<Item = (&'a str, &'a str)>, slow: &BTreeSet<(&'a str, &'a str)>) -> Vec<&'a str> {
    let measured: Vec<(&str, &str)> = measured.collect();
    let racks: BTreeSet<&str> = measured.iter().flat_map(|(from, to)| [*from, *to]).collect();
    let are_slow =
        |blocks: Vec<&(&'a str, &'a str)>| blocks.len() >= 2 && blocks.iter().all(|block| slow.contains(block));
    let is_guilty = |rack: &&str| {
        are_slow(measured.iter().filter(|(from, _)| from == rack).collect())
            || are_slow(measured.iter().filter(|(_, to)| to == rack).collect())
    };
    racks.into_iter().filter(is_guilty).collect()
}

/// Cells between cleared ends by the racks of source and sink.
fn by_block<'a>(matrix: &Matrix, clearance: &Clearance, racks: &[Option<&'a str>]) -> BTreeMap<Racks<'a>, Vec<f64>> {
    let rack = |host: usize| racks.get(host).copied().flatten();
    let mut blocks: BTreeMap<Racks<'a>, Vec<f64>> = BTreeMap::new();
    for entry in matrix.entries.iter().filter(|entry: &&Entry| clearance.has_both(entry)) {
        blocks.entry((rack(entry.source), rack(entry.sink))).or_default().push(entry.ln);
    }
    blocks
}
