//! Rate of a good fleet, and how far its cells lie apart.

use std::collections::BTreeMap;

use super::blocks::{BLOCK_CELLS_MIN, Racks, by_block};
use super::known_good::KnownGood;
use super::matrix::Matrix;
use linerate_model::stats::median;

/// Values that the cells of a good fleet have in common, in the logarithm.
pub(super) struct Reference<'a> {
    /// Median of the good cells between cleared ends, of the best block. Most pairs of a fleet may
    /// cross a slow uplink, and their cells would move the median of all.
    pub(super) rate: f64,
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
        let is_good = |cell: &f64| *cell >= clearance.reference + limit;
        let good = blocks
            .values()
            .map(|cells| cells.iter().copied().filter(is_good).collect::<Vec<f64>>());
        let decides = |cells: &Vec<f64>| cells.len() >= BLOCK_CELLS_MIN;
        let (deciding, few): (Vec<_>, Vec<_>) = good.partition(decides);
        let best = deciding
            .iter()
            .filter_map(|cells| median(cells))
            .reduce(f64::max);
        let rate = best
            // Small fleets have no block that decides, so the good cells of all blocks count
            // together.
            .or_else(|| median(&few.concat()))
            .unwrap_or(clearance.reference);
        let middles = blocks.iter().filter(|(_, cells)| decides(cells));
        let middles = middles
            .filter_map(|(block, cells)| Some((*block, median(cells)? - rate)))
            .collect();

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
