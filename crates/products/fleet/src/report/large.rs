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
    let mut blocks = brief(matrix, usize::MAX);
    blocks.extend(slowest(matrix).map(Block::Table));
    let notes = notes(matrix);
    if !notes.is_empty() {
        blocks.extend([Block::Space, Block::List(notes)]);
    }

    blocks
}

/// Racks and at most `shown` hosts with an effect.
pub(super) fn brief(matrix: &Matrix<'_>, shown: usize) -> Vec<Block> {
    let racks = racks(matrix).map(Block::Table);
    slow_hosts(matrix, shown).into_iter().chain(racks).collect()
}

fn slow_hosts(matrix: &Matrix<'_>, shown: usize) -> Option<Block> {
    let effects = matrix.effects?;
    let mut slow: Vec<&HostEffect> = effects.hosts.iter().filter(|host| is_slow(host)).collect();
    let all = counted(effects.hosts.len(), "host");
    if slow.is_empty() {
        return Some(Block::Paragraph(format!("No host of {all} has an effect.")));
    }

    slow.sort_by(|a, b| {
        strength(a)
            .total_cmp(&strength(b))
            .then_with(|| by_name(a.host.as_str(), b.host.as_str()))
    });
    let title = format!("{} of {all} with an effect", slow.len());
    let hidden = slow.len().saturating_sub(shown);
    slow.truncate(shown);

    let rack = |host: &HostEffect| matrix.racks.get(&host.host).copied().unwrap_or("-");
    let table = Table::of("", title, &slow)
        .text("host", |host| host.host.to_string())
        .text("rack", |host| rack(host).to_owned())
        .number("sends", |host| effect(Some(host.sends)))
        .number("cells", |host| host.sends.cells.to_string())
        .number("receives", |host| effect(Some(host.receives)))
        .number("cells", |host| host.receives.cells.to_string());
    let more = (hidden > 0).then(|| format!("{hidden} more: -v shows them"));
    Some(Block::Table(table.notes(more).table()))
}

/// Medians over the cells between the hosts of two racks; `None` of fewer than two racks.
fn racks(matrix: &Matrix<'_>) -> Option<Table> {
    let rack = |host: &HostId| matrix.racks.get(host).copied();
    let mut names: Vec<&str> = matrix.hosts.iter().filter_map(|host| rack(host)).collect();
    names.dedup();
    let all = names.len();
    if all < 2 {
        return None;
    }

    names.truncate(RACKS_MAX);
    let mut blocks: BTreeMap<(&str, &str), Vec<Entry>> = BTreeMap::new();
    for ((source, sink), entry) in &matrix.entries {
        if let Some(from) = rack(source)
            && let Some(to) = rack(sink)
        {
            blocks.entry((from, to)).or_default().push(*entry);
        }
    }

    let cell = |from: &&str, to: usize| {
        let entries = blocks.get(&(*from, names[to]));
        let middle = entries.map(|entries| middle(entries, matrix.unit));
        Cell::from(shown(matrix.unit, *from == names[to], middle.as_ref()))
    };
    let hidden = (all > names.len()).then(|| format!("{} of {all} racks", names.len()));
    let title = format!("{}, medians by rack", title(matrix));
    let table = Table::of("", title, &names)
        .text("from \\ to", |rack| *rack)
        .numbers(0..names.len(), |at| names[at].to_owned(), cell);
    Some(table.notes(hidden).table())
}

fn middle(entries: &[Entry], unit: RateUnit) -> Entry {
    let mut rates = Vec::new();
    let mut shares = Vec::new();
    for rate in entries.iter().filter_map(|entry| entry.measured()) {
        rates.push(rate.bps);
        shares.extend(rate.share);
    }

    let share = median(&shares).filter(|_| unit == RateUnit::Percent);
    match median(&rates) {
        Some(bps) => Entry::Measured(Rate { bps, share }),
        None => Entry::NotRun,
    }
}

/// The slowest pairs between hosts without an effect; `None` without any.
fn slowest(matrix: &Matrix<'_>) -> Option<Table> {
    let has_effect = |host: &HostId| {
        let effect = matrix.host_effects.get(host);
        effect.is_some_and(|host| strength(host) < 0.0)
    };
    let mut pairs: Vec<((&HostId, &HostId), Rate)> = Vec::new();
    for ((source, sink), entry) in &matrix.entries {
        if !has_effect(source) && !has_effect(sink) {
            pairs.extend(entry.measured().map(|rate| ((*source, *sink), rate)));
        }
    }

    let is_percent = matrix.unit == RateUnit::Percent;
    let key = |rate: &Rate| rate.share.filter(|_| is_percent).unwrap_or(rate.bps);
    pairs.sort_by(|(_, a), (_, b)| key(a).total_cmp(&key(b)));
    let all = counted(pairs.len(), "pair");
    pairs.truncate(PAIRS_SHOWN);

    let slower = |(source, sink): (&HostId, &HostId)| {
        let mut pairs = matrix.effects?.pairs.iter();
        let pair = pairs.find(|pair| pair.source == *source && pair.sink == *sink);
        Some(change(pair?.effect))
    };
    let title = format!(
        "Slowest {} of {all} between hosts without an effect",
        pairs.len()
    );
    let mut table = Table::of("", title, &pairs)
        .text("from", |((source, _), _)| source.to_string())
        .text("to", |((_, sink), _)| sink.to_string())
        .number("rate", |(_, of)| rate(of.bps));
    if is_percent {
        table = table.number("of nominal", |(_, of)| {
            format!("{} %", matrix.unit.text(*of))
        });
    }
    if pairs.iter().any(|(ends, _)| slower(*ends).is_some()) {
        table = table.number("pair effect", |(ends, _)| {
            slower(*ends).unwrap_or_else(|| "-".to_owned())
        });
    }

    table.non_empty()
}
