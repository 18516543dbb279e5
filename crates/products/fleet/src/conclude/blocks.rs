//! Blocks of cells: all from the hosts of one rack to those of another.

use std::collections::{BTreeMap, BTreeSet};

use super::known_good::KnownGood;
use super::matrix::{Entry, Matrix};
use linerate_model::outliers::Gates;
use linerate_model::stats::median;

/// Racks between which hosts that are good elsewhere are slow.
#[derive(Debug, Clone, PartialEq)]
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
pub(super) const BLOCK_CELLS_MIN: usize = 3;
/// Part of the cells of a slow block that are slow.
const SLOW_SHARE_MIN: f64 = 0.75;

/// Racks of source and sink.
pub(super) type Racks<'a> = (Option<&'a str>, Option<&'a str>);

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
    for (block, cells) in by_block(matrix, clearance, racks) {
        // Cells within one rack do not pass an uplink.
        if let (Some(from), Some(to)) = block
            && from != to
            && cells.len() >= BLOCK_CELLS_MIN
        {
            measured.insert(
                (from, to),
                cells.into_iter().map(|cell| cell - reference).collect(),
            );
        }
    }

    let is_slow = |cells: &[f64]| {
        let slow = cells.iter().filter(|cell| gates.are_passed(**cell)).count();
        slow as f64 >= SLOW_SHARE_MIN * cells.len() as f64
    };
    let mut slow: BTreeSet<(&str, &str)> = measured
        .iter()
        .filter(|(_, cells)| is_slow(cells))
        .map(|(block, _)| *block)
        .collect();

    let uplink = |rack: Option<&str>, blocks: Vec<(&str, &str)>| {
        let cells: Vec<f64> = blocks
            .iter()
            .filter_map(|block| measured.get(block))
            .flatten()
            .copied()
            .collect();
        let blocks = blocks
            .into_iter()
            .map(|(from, to)| (from.to_owned(), to.to_owned()))
            .collect();
        SlowUplink {
            rack: rack.map(str::to_owned),
            blocks,
            effect: median(&cells).unwrap_or(0.0).exp_m1(),
        }
    };
    let mut uplinks = Vec::new();

    // Racks are decided first: the uplink of one explains all of its slow blocks.
    for rack in guilty(measured.keys().copied(), &slow) {
        let blocks = slow
            .iter()
            .filter(|(from, to)| rack == *from || rack == *to)
            .copied()
            .collect();
        uplinks.push(uplink(Some(rack), blocks));
    }

    for found in &uplinks {
        slow.retain(|(from, to)| {
            found.rack.as_deref() != Some(*from) && found.rack.as_deref() != Some(*to)
        });
    }

    while let Some((from, to)) = slow.pop_first() {
        // Both directions of two racks are one statement.
        let back = slow.take(&(to, from));
        uplinks.push(uplink(
            None,
            std::iter::once((from, to)).chain(back).collect(),
        ));
    }

    uplinks
}

/// Racks of whose blocks all from it or all to it are slow, at least two.
fn guilty<'a>(
    measured: impl Iterator<Item = (&'a str, &'a str)>,
    slow: &BTreeSet<(&'a str, &'a str)>,
) -> Vec<&'a str> {
    let measured: Vec<(&str, &str)> = measured.collect();
    let racks: BTreeSet<&str> = measured
        .iter()
        .flat_map(|(from, to)| [*from, *to])
        .collect();
    let are_slow = |blocks: Vec<&(&'a str, &'a str)>| {
        // One slow block has two racks, and decides for neither of them.
        blocks.len() >= 2 && blocks.iter().all(|block| slow.contains(block))
    };
    let is_guilty = |rack: &&str| {
        are_slow(measured.iter().filter(|(from, _)| from == rack).collect())
            || are_slow(measured.iter().filter(|(_, to)| to == rack).collect())
    };

    racks.into_iter().filter(is_guilty).collect()
}

/// Cells between cleared ends by the racks of source and sink.
pub(super) fn by_block<'a>(
    matrix: &Matrix,
    clearance: &KnownGood,
    racks: &[Option<&'a str>],
) -> BTreeMap<Racks<'a>, Vec<f64>> {
    let rack = |host: usize| racks.get(host).copied().flatten();
    let mut blocks: BTreeMap<Racks<'a>, Vec<f64>> = BTreeMap::new();

    for entry in matrix
        .entries
        .iter()
        .filter(|entry: &&Entry| clearance.has_both(entry))
    {
        blocks
            .entry((rack(entry.source), rack(entry.sink)))
            .or_default()
            .push(entry.ln);
    }

    blocks
}
