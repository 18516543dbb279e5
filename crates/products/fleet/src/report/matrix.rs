//! Rates of a path and variant by source and sink.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use linerate_model::fleet::{
    Cell, CellFlag, FleetEffects, FleetReport, FleetTopology, HostEffect, HostId, Measurement,
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
#[derive(Clone, Copy)]
pub(super) enum Entry {
    /// Median rate over the repetitions.
    Measured(Rate),
    /// Median rate of cells that are in no statistic.
    Excluded(Rate),
    /// No repetition has a result.
    NotRun,
}

/// A rate.
#[derive(Clone, Copy)]
pub(super) struct Rate {
    pub bps: f64,
    /// Share of the nominal rate, where that is known.
    pub share: Option<f64>,
}

/// Unit of all rates of a table.
#[derive(Clone, Copy, PartialEq)]
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
    let mut matrices = Vec::new();
    for ((path, variant), cells) in treatments {
        let mut matrix = matrix(report, (path, variant), cells);
        if !is_one {
            matrix.name = Some(treatment_name(path, variant));
        }
        matrices.push(matrix);
    }

    matrices
}

fn matrix<'a>(
    report: &'a FleetReport,
    (path, variant): (&str, &str),
    cells: Vec<&'a Cell>,
) -> Matrix<'a> {
    let mut grouped: BTreeMap<(&HostId, &HostId), Vec<&Cell>> = BTreeMap::new();
    let mut hosts = BTreeSet::new();
    for cell in &cells {
        let ends = (&cell.task.source, &cell.task.sink);
        hosts.extend([ends.0, ends.1]);
        grouped.entry(ends).or_default().push(cell);
    }
    let mut entries = BTreeMap::new();
    for (ends, cells) in grouped {
        entries.insert(ends, entry(&cells));
    }

    let mut racks = BTreeMap::new();
    for host in &report.header.hosts {
        racks.extend(host.rack.as_deref().map(|rack| (&host.id, rack)));
    }

    let mut effects = report.effects.iter();
    let effects = effects.find(|effects| effects.path == path && effects.variant == variant);
    let mut host_effects = BTreeMap::new();
    for of in effects.into_iter().flat_map(|effects| &effects.hosts) {
        host_effects.insert(&of.host, of);
    }

    Matrix {
        name: None,
        hosts: ordered(hosts, &racks, &host_effects),
        racks,
        unit: unit(&entries),
        entries,
        cells,
        effects,
        host_effects,
    }
}

fn entry(cells: &[&Cell]) -> Entry {
    let mut measured: Vec<&Measurement> = cells.iter().filter_map(|cell| cell.usable()).collect();
    let is_excluded = measured.is_empty();
    if is_excluded {
        measured.extend(cells.iter().filter_map(|cell| cell.measurement()));
    }

    let mut rates = Vec::new();
    let mut shares = Vec::new();
    for of in measured {
        rates.push(of.goodput_bps);
        let nominal = of.nominal_bps.unwrap_or(0.0);
        if nominal.is_finite() && nominal > 0.0 {
            shares.push(of.goodput_bps / nominal);
        }
    }

    let Some(bps) = median(&rates) else {
        return Entry::NotRun;
    };
    // The share of some alone would be none of the median.
    let share = median(&shares).filter(|_| shares.len() == rates.len());
    let rate = Rate { bps, share };
    if is_excluded {
        Entry::Excluded(rate)
    } else {
        Entry::Measured(rate)
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
    let mut rates = Vec::new();
    let mut has_shares = true;
    for rate in entries.values().filter_map(|entry| entry.measured()) {
        rates.push(rate.bps);
        has_shares &= rate.share.is_some();
    }
    match median(&rates) {
        Some(_) if has_shares => RateUnit::Percent,
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
        let [of_a, of_b] = [a, b].map(|host| racks.get(host));
        // Hosts without a rack are the last ones.
        let by_rack = match (of_a, of_b) {
            (Some(a), Some(b)) => by_name(a, b),
            _ => of_b.is_some().cmp(&of_a.is_some()),
        };
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
    let chars = name.as_bytes();
    for part in chars.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()) {
        let part = str::from_utf8(part).unwrap_or_default();
        if part.starts_with(|c: char| c.is_ascii_digit()) {
            parts.push(("", part.parse().unwrap_or(u128::MAX)));
        } else {
            parts.push((part, 0));
        }
    }

    parts
}

/// Flags that exclude a cell from statistics, in words.
pub(super) fn exclusion(cell: &Cell) -> Option<&'static str> {
    let flags = &cell.measurement()?.flags;
    if flags.contains(&CellFlag::Implausible) {
        Some("more than the path can carry")
    } else if flags.contains(&CellFlag::NoCommonPeriod) {
        Some("the tests of its round have no common period")
    } else {
        None
    }
}
