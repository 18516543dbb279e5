//! Ladders: rates over the number of hosts at the same time, and what a slow host does to the
//! others.

use linerate_model::fleet::{
    FleetReport, FleetTopology, HostId, HostPoisoning, LadderDirection, LadderRow,
};
use linerate_model::stats::median;

use super::not_run;
use crate::conclude::ladder::host_rates;
use crate::conclude::treatment_name;
use linerate_document::blocks::Block;
use linerate_document::chart::{Axis, Chart, LineStyle, Point, SERIES_MAX, Series, from_zero};
use linerate_document::number::counted;
use linerate_document::plot::Plot;
use linerate_document::table::Table;
use linerate_model::numbers::{digits, rate, scaled};

/// Share of the median of a row below which a host is named.
const SLOW_SHARE: f64 = 0.5;
/// Part of a sum below which a change of it is none.
const UNCHANGED_SHARE: f64 = 0.001;
/// Slow hosts of a row that are named.
const SLOW_SHOWN: usize = 3;

/// A table of each direction, path and variant, cells without a result, and the suspects.
pub(super) fn blocks(report: &FleetReport) -> Vec<Block> {
    let mut blocks = all_tables(report);
    if blocks.is_empty() {
        return blocks;
    }

    let not_run = not_run::lines(&report.cells.iter().collect::<Vec<_>>());
    if !not_run.is_empty() {
        blocks.extend([Block::Space, Block::List(not_run)]);
    }

    let suspects = interference(report);
    if !suspects.is_empty() {
        blocks.extend([Block::Space, Block::List(suspects)]);
    }

    blocks
}

/// A table of each direction, path and variant; none of a mesh.
pub(super) fn all_tables(report: &FleetReport) -> Vec<Block> {
    let (hub, directions): (_, &[LadderDirection]) = match &report.header.topology {
        FleetTopology::Incast(hub) => (hub, &[LadderDirection::Incast]),
        FleetTopology::Fanout(hub) => (hub, &[LadderDirection::Fanout]),
        FleetTopology::IncastAndFanout(hub) => {
            (hub, &[LadderDirection::Incast, LadderDirection::Fanout])
        }
        _ => return Vec::new(),
    };
    directions
        .iter()
        .flat_map(|direction| tables(report, hub, *direction))
        .collect()
}

/// The sum and the median host of each direction over the hosts at the same time.
pub(super) fn plot(report: &FleetReport) -> Option<Plot> {
    let mut series = Vec::new();
    let groups = report
        .ladder
        .chunk_by(|a, b| (a.direction, &a.path, &a.variant) == (b.direction, &b.path, &b.variant));
    for (hue, rows) in groups.enumerate().take(SERIES_MAX / 2) {
        let first = rows.first()?;
        let way = match first.direction {
            LadderDirection::Incast => "in",
            LadderDirection::Fanout => "out",
        };
        let place = treatment_name(&first.path, &first.variant);
        let line = |what: &str, style, bps: fn(&LadderRow) -> Option<f64>| {
            let points = rows
                .iter()
                .filter_map(|row| Some(Point::new(row.level as f64, bps(row)?)));
            Series::new(
                format!("{what} {way} {place}").trim_end(),
                style,
                hue,
                points,
            )
        };
        series.push(line("sum", LineStyle::Main, |row| median(&row.sums_bps)));
        series.push(line("host", LineStyle::Thin, middle));
    }

    let x = Axis::linear("hosts at the same time", |level| format!("{level:.0}"));
    let chart = Chart::new(x, Axis::linear("rate", from_zero(rate)), 260, series).checked()?;
    Some(Plot {
        title: "Rate by number of hosts".to_owned(),
        key: "",
        note: "thin: the median host".to_owned(),
        charts: vec![chart],
    })
}

/// A table of each path and variant of a direction.
fn tables(report: &FleetReport, hub: &HostId, direction: LadderDirection) -> Vec<Block> {
    let (kind, ends) = match direction {
        LadderDirection::Incast => ("incast into", "sender"),
        LadderDirection::Fanout => ("fanout from", "receiver"),
    };
    let others = report
        .header
        .hosts
        .iter()
        .filter(|host| host.id != *hub)
        .count();

    let link = report
        .header
        .hosts
        .iter()
        .find(|host| host.id == *hub)
        .and_then(|host| host.link_bps);
    let link = link.map_or_else(String::new, |bps| format!(" ({})", link_rate(bps)));
    let head = format!("{kind} {hub}{link}, {}", counted(others, ends));

    let rows = report
        .ladder
        .iter()
        .filter(|row| row.direction == direction)
        .collect::<Vec<_>>();
    if rows.is_empty() {
        return vec![Block::Paragraph(format!("{head}: no step has a result"))];
    }

    let treatments: Vec<&[&LadderRow]> = rows
        // Rows are sorted by direction, path and variant, so equal ones are adjacent.
        .chunk_by(|a, b| (&a.path, &a.variant) == (&b.path, &b.variant))
        .collect();
    let is_one = treatments.len() < 2;
    treatments
        .into_iter()
        .map(|rows| Block::Table(table(&head, rows, is_one)))
        .collect()
}

fn table(head: &str, rows: &[&LadderRow], is_one: bool) -> Table {
    let place = match rows.first() {
        Some(row) if !is_one => format!(", {}", treatment_name(&row.path, &row.variant)),
        _ => String::new(),
    };
    let absent = || "-".to_owned();
    Table::of("", format!("{head}{place}"), rows)
        .number("hosts", |row| row.level.to_string())
        .number("sum", |row| median(&row.sums_bps).map_or_else(absent, rate))
        .number("slowest/median/fastest", |row| {
            spread(row).unwrap_or_else(absent)
        })
        .number("fairness", |row| {
            row.jain.map_or_else(absent, |jain| format!("{jain:.2}"))
        })
        .number("retrans", |row| {
            row.retransmits
                .map_or_else(absent, |count| count.to_string())
        })
        .number("RTT", |row| row.rtt_us.map_or_else(absent, round_trip))
        .text("slow", |row| slow_hosts(row))
        .table()
}

/// `96 / 952 / 956 Mbit/s`
fn spread(row: &LadderRow) -> Option<String> {
    let rates = host_rates(row);
    let (low, high) = (
        rates.iter().copied().reduce(f64::min)?,
        rates.iter().copied().reduce(f64::max)?,
    );
    // One unit for all three rates makes them comparable at a glance: that of the highest.
    let (_, unit) = scaled(
        high,
        1000.0,
        ["bit/s", "Kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"],
    );
    let divisor = match unit {
        "Kbit/s" => 1e3,
        "Mbit/s" => 1e6,
        "Gbit/s" => 1e9,
        "Tbit/s" => 1e12,
        _ => 1.0,
    };
    let [low, middle, high] = [low, middle(row)?, high].map(|rate| digits(rate / divisor));

    Some(format!("{low} / {middle} / {high} {unit}"))
}

fn round_trip(us: u64) -> String {
    match us {
        0..1000 => format!("{us} us"),
        _ => format!("{} ms", digits(us as f64 / 1000.0)),
    }
}

/// `10 Gbit/s`
pub(super) fn link_rate(bps: f64) -> String {
    let text = rate(bps);
    match text.split_once(' ') {
        Some((value, unit)) if value.contains('.') => {
            // Speeds of links are round numbers, so zeros after the point carry nothing.
            format!(
                "{} {unit}",
                value.trim_end_matches('0').trim_end_matches('.')
            )
        }
        _ => text,
    }
}

/// Hosts that are slow without others, as a sentence:
/// `pc07 is slow alone (96.0 Mbit/s, median 952 Mbit/s)`. `None` where no host is.
pub(super) fn slow_alone(report: &FleetReport) -> Option<String> {
    let of_row = |row: &LadderRow| {
        let slow = slow(row);
        let (first, bps) = slow.first()?;

        let more = if slow.len() > 1 {
            format!(" and {} more are", slow.len() - 1)
        } else {
            " is".to_owned()
        };
        Some(format!(
            "{first}{more} slow alone ({}, median {})",
            rate(*bps),
            rate(middle(row)?)
        ))
    };
    report
        .ladder
        .iter()
        // The other levels show sharing; only the first one shows a host by itself.
        .filter(|row| row.level == 1)
        .find_map(of_row)
}

fn middle(row: &LadderRow) -> Option<f64> {
    median(&host_rates(row))
}

/// Hosts of a row that are far below the others, the slowest first.
fn slow(row: &LadderRow) -> Vec<&(HostId, f64)> {
    // Without rates the limit is 0, which no rate is below.
    let limit = middle(row).map_or(0.0, |middle| SLOW_SHARE * middle);
    let mut slow: Vec<&(HostId, f64)> = row
        .hosts_bps
        .iter()
        .filter(|(_, rate)| *rate < limit)
        .collect();
    slow.sort_by(|(_, a), (_, b)| a.total_cmp(b));

    slow
}

/// `pc07, pc12`
fn slow_hosts(row: &LadderRow) -> String {
    let slow = slow(row);
    let named = slow.iter().take(SLOW_SHOWN);
    let mut names: Vec<String> = named.map(|(host, _)| host.to_string()).collect();

    if slow.len() > SLOW_SHOWN {
        names.push(format!("{} more", slow.len() - SLOW_SHOWN));
    }

    names.join(", ")
}

/// What a slow host does to the others, each once: `pc07 does not slow the others down: without it
/// they gain nothing`.
pub(super) fn interference(report: &FleetReport) -> Vec<String> {
    let mut found: Vec<String> = report.poisonings.iter().map(effect_on_others).collect();
    found.dedup();
    found
}

fn effect_on_others(HostPoisoning { suspect, rates, .. }: &HostPoisoning) -> String {
    let change = match rates.gain_bps {
        gain if gain.abs() < UNCHANGED_SHARE * rates.without_bps => "gain nothing".to_owned(),
        loss if loss < 0.0 => format!("lose {}", rate(-loss)),
        gain => format!("gain {}", rate(gain)),
    };
    let expected = rate(rates.gain_explained_bps);

    if rates.is_found() {
        format!(
            "{suspect} slows the others down: without it they {change}, and {expected} would be \
             its share"
        )
    } else {
        format!("{suspect} does not slow the others down: without it they {change}")
    }
}
