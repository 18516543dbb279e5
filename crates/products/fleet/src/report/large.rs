//! A path of a fleet that is too large for a table of all cells: hosts with an effect, racks, the
//! slowest pairs.

use std::collections::BTreeMap;

use linerate_model::fleet::{HostEffect, HostId};
use linerate_model::stats::median;

use super::cells::{effect, notes, shown, title};
use super::matrix::{Entry, Matrix, Rate, RateUnit, by_name};
use crate::conclude::{is_slow, strength};
use linerate_document::blocks::Block;
use linerate_document::number::counted;
use linerate_document::table::{Cell, Table};
use linerate_model::numbers::{change, rate};

/// Most racks of a table.
const RACKS_MAX: usize = 24;
/// Slowest pairs that are shown.
const PAIRS_SHOWN: usize = 10;

pub(super) fn blocks(matrix: &Matrix<'_>) -> Vec<Block> {
    let mut blocks = slow_hosts(matrix, usize::MAX);
    blocks.extend(racks(matrix).map(Block::Table));
    blocks.extend(slowest(matrix).map(Block::Table));

    let notes = notes(matrix);
    if !notes.is_empty() {
        blocks.extend([Block::Space, Block::List(notes)]);
    }

    blocks
}

/// Racks and at most `shown` hosts with an effect.
pub(super) fn brief(matrix: &Matrix<'_>, shown: usize) -> Vec<Block> {
    let mut blocks = slow_hosts(matrix, shown);
    blocks.extend(racks(matrix).map(Block::Table));
    blocks
}

fn slow_hosts(matrix: &Matrix<'_>, shown: usize) -> Vec<Block> {
    let Some(effects) = matrix.effects else {
        return Vec::new();
    };
    let mut slow: Vec<&HostEffect> = effects.hosts.iter().filter(|host| is_slow(host)).collect();
    slow.sort_by(|a, b| {
        strength(a)
            .total_cmp(&strength(b))
            .then_with(|| by_name(a.host.as_str(), b.host.as_str()))
    });

    if slow.is_empty() {
        let all = counted(effects.hosts.len(), "host");
        return vec![Block::Paragraph(format!("No host of {all} has an effect."))];
    }

    let hidden = slow.len().saturating_sub(shown);

    let title = format!(
        "{} of {} with an effect",
        slow.len(),
        counted(effects.hosts.len(), "host")
    );
    slow.truncate(shown);

    let rack = |host: &HostEffect| {
        matrix
            .racks
            .get(&host.host)
            .copied()
            .unwrap_or("-")
            .to_owned()
    };
    let table = Table::of("", title, &slow)
        .text("host", |host| host.host.to_string())
        .text("rack", |host| rack(host))
        .number("sends", |host| effect(Some(host.sends)))
        .number("cells", |host| host.sends.cells.to_string())
        .number("receives", |host| effect(Some(host.receives)))
        .number("cells", |host| host.receives.cells.to_string());

    let more = (hidden > 0).then(|| format!("{hidden} more: -v shows them"));
    vec![Block::Table(table.notes(more).table())]
}

/// Medians over the cells between the hosts of two racks; `None` of fewer than two racks.
fn racks(matrix: &Matrix<'_>) -> Option<Table> {
    let mut names: Vec<&str> = matrix
        .hosts
        .iter()
        .filter_map(|host| matrix.racks.get(host).copied())
        .collect();
    names.dedup();
    let all = names.len();

    names.truncate(RACKS_MAX);
    let mut blocks: BTreeMap<(&str, &str), Vec<Entry>> = BTreeMap::new();

    for ((source, sink), entry) in &matrix.entries {
        if let Some(racks) = matrix
            .racks
            .get(source)
            .copied()
            .zip(matrix.racks.get(sink).copied())
        {
            blocks.entry(racks).or_default().push(*entry);
        }
    }

    let cell = |from: &&str, to: usize| {
        let to = names.get(to).copied().unwrap_or_default();
        let middle = blocks
            .get(&(*from, to))
            .map(|entries| middle(entries, matrix.unit));
        Cell::from(shown(matrix.unit, *from == to, middle.as_ref()))
    };
    let head = |at: usize| names.get(at).copied().unwrap_or_default().to_owned();
    let table = Table::of("", format!("{}, medians by rack", title(matrix)), &names)
        .text("from \\ to", |rack| *rack)
        .numbers(0..names.len(), head, cell);
    let hidden = (all > names.len()).then(|| format!("{} of {all} racks", names.len()));

    (all > 1).then(|| table.notes(hidden).table())
}

fn middle(entries: &[Entry], unit: RateUnit) -> Entry {
    let rates: Vec<Rate> = entries
        .iter()
        .filter_map(|entry| entry.measured())
        .collect();
    let of = |value: fn(&Rate) -> Option<f64>| {
        median(&rates.iter().filter_map(value).collect::<Vec<_>>())
    };
    let share = of(|rate| rate.share).filter(|_| unit == RateUnit::Percent);

    match of(|rate| Some(rate.bps)) {
        Some(bps) => Entry::Measured(Rate { bps, share }),
        None => Entry::NotRun,
    }
}

/// The slowest pairs between hosts without an effect; `None` without any.
fn slowest(matrix: &Matrix<'_>) -> Option<Table> {
    let has_effect = |host: &HostId| {
        matrix
            .host_effects
            .get(host)
            .is_some_and(|host| strength(host) < 0.0)
    };
    let measured = matrix
        .entries
        .iter()
        .filter_map(|(ends, entry)| Some((*ends, entry.measured()?)))
        .filter(|((source, sink), _)| !has_effect(source) && !has_effect(sink));
    let mut pairs: Vec<((&HostId, &HostId), Rate)> = measured.collect();

    let key = |rate: &Rate| {
        rate.share
            .filter(|_| matrix.unit == RateUnit::Percent)
            .unwrap_or(rate.bps)
    };
    pairs.sort_by(|(_, a), (_, b)| key(a).total_cmp(&key(b)));
    let all = pairs.len();

    pairs.truncate(PAIRS_SHOWN);
    let slower = |ends: (&HostId, &HostId)| {
        let pairs = &matrix.effects?.pairs;
        pairs
            .iter()
            .find(|pair| (&pair.source, &pair.sink) == ends)
            .map(|pair| change(pair.effect))
    };

    let table = Table::of(
        "",
        format!(
            "Slowest {} of {} between hosts without an effect",
            pairs.len(),
            counted(all, "pair")
        ),
        &pairs,
    )
    .text("from", |((source, _), _)| source.to_string())
    .text("to", |((_, sink), _)| sink.to_string())
    .number("rate", |(_, of)| rate(of.bps));
    let table = match matrix.unit {
        RateUnit::Percent => table.number("of nominal", |(_, of)| {
            format!("{} %", matrix.unit.text(*of))
        }),
        RateUnit::Mbps | RateUnit::Gbps => table,
    };

    let has_effects = pairs.iter().any(|(ends, _)| slower(*ends).is_some());
    let table = match has_effects {
        true => table.number("pair effect", |(ends, _)| {
            slower(*ends).unwrap_or_else(|| "-".to_owned())
        }),
        false => table,
    };
    table.non_empty()
}
