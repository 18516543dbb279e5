//! Rates of a path and variant by source and sink.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use linerate_model::fleet::{
    Cell, CellFlag, FleetEffects, FleetReport, FleetTopology, HostEffect, HostId,
};
use linerate_model::stats::median;

use crate::conclude::{by_treatment, strength, treatment_name};
use linerate_document::number::known;
use linerate_model::numbers::digits;

/// Cells of one path and variant.
pub(super) struct Matrix<'a> {
    /// Path and variant, where the report has several.
    pub name: Option<String>,
    /// By rack, then the slowest first, then by name.
    pub hosts: Vec<&'a HostId>,
    pub racks: BTreeMap<&'a HostId, &'a str>,
    /// Measurements by source and sink. A pair without an entry was not planned.
    pub entries: BTreeMap<(&'a HostId, &'a HostId), Entry>,
    /// All cells.
    pub cells: Vec<&'a Cell>,
    pub effects: Option<&'a FleetEffects>,
    /// Effects by host.
    pub host_effects: BTreeMap<&'a HostId, &'a HostEffect>,
    pub unit: RateUnit,
}

/// Result of a source and a sink.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Entry {
    /// Median rate over the repetitions.
    Measured(Rate),
    /// Median rate of cells that are in no statistic.
    Excluded(Rate),
    /// No repetition has a result.
    NotRun,
}

/// A rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rate {
    pub bps: f64,
    /// Share of the nominal rate, where that is known.
    pub share: Option<f64>,
}

/// Unit of all rates of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RateUnit {
    Percent,
    Mbps,
    Gbps,
}

impl RateUnit {
    /// Head of the column of sources where the table has no title.
    pub(super) const fn corner(self) -> &'static str {
        match self {
            Self::Percent => "from \\ to, %",
            Self::Mbps => "from \\ to, Mbit/s",
            Self::Gbps => "from \\ to, Gbit/s",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Percent => "Rates in percent of nominal",
            Self::Mbps => "Rates in Mbit/s",
            Self::Gbps => "Rates in Gbit/s",
        }
    }

    /// A rate in this unit. A measured one is never written as 0 unless it is 0.
    pub(super) fn text(self, rate: Rate) -> String {
        let value = match self {
            Self::Percent => return known(rate.share, percent),
            Self::Mbps => rate.bps / 1e6,
            Self::Gbps => rate.bps / 1e9,
        };
        if value > 0.0 && value < 0.005 {
            "<0.01".to_owned()
        } else {
            digits(value)
        }
    }
}

fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value > 0.0 && value < 0.5 {
        "<1".to_owned()
    } else {
        format!("{value:.0}")
    }
}

/// The tables of a mesh or of pairs; none of a ladder.
pub(super) fn matrices(report: &FleetReport) -> Vec<Matrix<'_>> {
    if !matches!(
        report.header.topology,
        FleetTopology::Mesh | FleetTopology::Pairs
    ) {
        return Vec::new();
    }

    // Cells of another mode are a control.
    let of_mode = |cell: &&Cell| cell.mode == report.header.mode;
    let treatments = by_treatment(report.cells.iter().filter(of_mode));
    let is_one = treatments.len() < 2;
    treatments
        .into_iter()
        .map(|((path, variant), cells)| matrix(report, (path, variant), cells, is_one))
        .collect()
}

fn matrix<'a>(
    report: &'a FleetReport,
    (path, variant): (&str, &str),
    cells: Vec<&'a Cell>,
    is_one: bool,
) -> Matrix<'a> {
    let mut grouped: BTreeMap<(&HostId, &HostId), Vec<&Cell>> = BTreeMap::new();
    for cell in &cells {
        let ends = (&cell.task.source, &cell.task.sink);
        grouped.entry(ends).or_default().push(cell);
    }
    let entries: BTreeMap<_, _> = grouped
        .into_iter()
        .map(|(ends, cells)| (ends, entry(&cells)))
        .collect();
    let effects = report
        .effects
        .iter()
        .find(|effects| effects.path == path && effects.variant == variant);

    let racks = report
        .header
        .hosts
        .iter()
        .filter_map(|host| Some((&host.id, host.rack.as_deref()?)))
        .collect();
    let hosts: BTreeSet<&HostId> = entries
        .keys()
        .flat_map(|(source, sink)| [*source, *sink])
        .collect();
    let unit = unit(&entries);

    let host_effects = effects
        .into_iter()
        .flat_map(|effects| &effects.hosts)
        .map(|of| (&of.host, of))
        .collect();
    let hosts = ordered(hosts, &racks, &host_effects);
    Matrix {
        name: (!is_one).then(|| treatment_name(path, variant)),
        hosts,
        racks,
        entries,
        cells,
        effects,
        host_effects,
        unit,
    }
}

fn entry(cells: &[&Cell]) -> Entry {
    let usable: Vec<_> = cells.iter().filter_map(|cell| cell.usable()).collect();
    let measured: Vec<_> = match usable.is_empty() {
        true => cells.iter().filter_map(|cell| cell.measurement()).collect(),
        false => usable.clone(),
    };
    let rates: Vec<f64> = measured.iter().map(|of| of.goodput_bps).collect();
    let is_rate = |nominal: &f64| nominal.is_finite() && *nominal > 0.0;
    let shares = measured
        .iter()
        .map(|of| Some(of.goodput_bps / of.nominal_bps.filter(is_rate)?));
    let shares: Option<Vec<f64>> = shares.collect();

    match median(&rates) {
        None => Entry::NotRun,
        Some(bps) => {
            let rate = Rate {
                bps,
                share: shares.and_then(|shares| median(&shares)),
            };
            if usable.is_empty() {
                Entry::Excluded(rate)
            } else {
                Entry::Measured(rate)
            }
        }
    }
}

impl Entry {
    /// The rate, if it belongs into statistics.
    pub(super) const fn measured(self) -> Option<Rate> {
        match self {
            Self::Measured(rate) => Some(rate),
            Self::Excluded(_) | Self::NotRun => None,
        }
    }
}

/// Percent where the nominal rate of all pairs is known, else the unit of the median.
fn unit(entries: &BTreeMap<(&HostId, &HostId), Entry>) -> RateUnit {
    let rates: Vec<Rate> = entries
        .values()
        .filter_map(|entry| entry.measured())
        .collect();
    let bps: Vec<f64> = rates.iter().map(|rate| rate.bps).collect();
    match median(&bps) {
        Some(_) if rates.iter().all(|rate| rate.share.is_some()) => RateUnit::Percent,
        Some(middle) if middle >= 1e9 => RateUnit::Gbps,
        _ => RateUnit::Mbps,
    }
}

fn ordered<'a>(
    hosts: BTreeSet<&'a HostId>,
    racks: &BTreeMap<&HostId, &str>,
    effects: &BTreeMap<&HostId, &HostEffect>,
) -> Vec<&'a HostId> {
    let effect = |host: &HostId| effects.get(host).map_or(0.0, |effect| strength(effect));
    let mut hosts: Vec<&HostId> = hosts.into_iter().collect();
    hosts.sort_by(|a, b| {
        let rack = |host: &HostId| racks.get(host).copied();
        let by_rack = rack(a).is_none().cmp(&rack(b).is_none()).then_with(|| {
            let names = [rack(a), rack(b)].map(Option::unwrap_or_default);
            by_name(names[0], names[1])
        });
        by_rack
            .then_with(|| effect(a).total_cmp(&effect(b)))
            .then_with(|| by_name(a.as_str(), b.as_str()))
    });

    hosts
}

/// Compares names with their numbers as numbers: `h2` is before `h10`.
pub(super) fn by_name(a: &str, b: &str) -> Ordering {
    parts(a).cmp(&parts(b)).then_with(|| a.cmp(b))
}

fn parts(name: &str) -> Vec<(&str, u128)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let is_number = rest.starts_with(|c: char| c.is_ascii_digit());
        let end = rest
            .find(|c: char| c.is_ascii_digit() != is_number)
            .unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        parts.push(if is_number {
            ("", part.parse().unwrap_or(u128::MAX))
        } else {
            (part, 0)
        });
        rest = after;
    }

    parts
}

/// Flags that exclude a cell from statistics, in words.
pub(super) fn exclusion(cell: &Cell) -> Option<&'static str> {
    cell.measurement()?
        .flags
        .iter()
        .find_map(|flag| match flag {
            CellFlag::Implausible => Some("more than the path can carry"),
            CellFlag::NoCommonPeriod => Some("the tests of its round have no common period"),
            _ => None,
        })
}
