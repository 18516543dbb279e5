//! Rates of a fleet by source and sink.

use std::collections::BTreeMap;

use linerate_model::fleet::{Cell, HostId, Measurement};

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
