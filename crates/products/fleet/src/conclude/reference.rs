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
