//! Rates of a fleet by source and sink.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::fleet::{Cell, HostId, Measurement};

use linerate_model::stats::median;

/// Logarithms of the rates between hosts, one for each source and sink: the median over the
/// repetitions.
pub(super) struct Matrix {
    /// In the order of their ids.
    pub(super) hosts: Vec<HostId>,
    pub(super) entries: Vec<Entry>,
    /// Rates are shares of the nominal rate.
    pub(super) is_relative: bool,
}

/// Rate from one host to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Entry {
    pub(super) source: usize,
    pub(super) sink: usize,
    /// Natural logarithm of the rate.
    pub(super) ln: f64,
}

impl Matrix {
    /// Makes a matrix of the measured cells. The rates are shares of the nominal rates where these
    /// are known of all.
    pub(super) fn of(cells: &[&Cell]) -> Self {
        let measured: Vec<(&Cell, &Measurement)> = cells
            .iter()
            .filter_map(|cell| Some((*cell, cell.usable()?)))
            .collect();
        // Shares and absolute rates are not comparable, so one unknown link makes all rates
        // absolute.
        let is_relative = measured.iter().all(|(_, of)| {
            of.nominal_bps
                .is_some_and(|nominal| nominal.is_finite() && nominal > 0.0)
        });
        let ids: BTreeSet<&HostId> = measured
            .iter()
            .flat_map(|(cell, _)| [&cell.task.source, &cell.task.sink])
            .collect();
        let places: BTreeMap<&HostId, usize> =
            ids.iter().enumerate().map(|(at, id)| (*id, at)).collect();
        let mut rates: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();

        for (cell, measurement) in measured {
            let ends = places
                .get(&cell.task.source)
                .copied()
                .zip(places.get(&cell.task.sink).copied());
            // A host with itself is no pair: one host would be both ends of the cell.
            let Some(ends) = ends.filter(|(source, sink)| source != sink) else {
                continue;
            };
            let nominal = measurement
                .nominal_bps
                .filter(|_| is_relative)
                .unwrap_or(1.0);
            rates
                .entry(ends)
                .or_default()
                // Effects of ends multiply the rate, so they add up in the logarithm.
                .push(ln_rate(measurement) - nominal.ln());
        }

        let entry = |((source, sink), rates): ((usize, usize), Vec<f64>)| {
            Some(Entry {
                source,
                sink,
                ln: median(&rates)?,
            })
        };
        let entries = rates.into_iter().filter_map(entry).collect();
        Self {
            hosts: ids.into_iter().cloned().collect(),
            entries,
            is_relative,
        }
    }
}

/// A test that moved nothing counts as 1 bit/s.
fn ln_rate(measurement: &Measurement) -> f64 {
    // The logarithm of 0 is not finite and would spoil every sum that it enters.
    measurement.goodput_bps.max(1.0).ln()
}
