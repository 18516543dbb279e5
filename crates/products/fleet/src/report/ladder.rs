//! Ladders: rates over the number of hosts at the same time, and what a slow host does to the
//! others.

use linerate_model::fleet::{
    Cell, FleetReport, FleetTopology, HostId, HostPoisoning, LadderDirection, LadderRow,
};
use linerate_model::stats::median;

use super::not_run;
use crate::conclude::ladder::{host_rates, slow_hosts};
use crate::conclude::treatment_name;
use linerate_document::blocks::Block;
use linerate_document::chart::{Axis, Chart, LineStyle, Point, SERIES_MAX, Series, from_zero};
use linerate_document::number::counted;
use linerate_document::plot::Plot;
use linerate_document::table::Table;
use linerate_model::numbers::{digits, rate, scaled};

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

    let cells: Vec<&Cell> = report.cells.iter().collect();
    for lines in [not_run::lines(&cells), interference(report)] {
        if !lines.is_empty() {
            blocks.extend([Block::Space, Block::List(lines)]);
        }
    }

    blocks
}

/// A table of each direction, path and variant; none of a mesh.
pub(super) fn all_tables(report: &FleetReport) -> Vec<Block> {
    let (hub, directions) = match &report.header.topology {
        FleetTopology::Incast(hub) => (hub, vec![LadderDirection::Incast]),
        FleetTopology::Fanout(hub) => (hub, vec![LadderDirection::Fanout]),
        FleetTopology::IncastAndFanout(hub) => {
            let both = vec![LadderDirection::Incast, LadderDirection::Fanout];
            (hub, both)
        }
        FleetTopology::Mesh | FleetTopology::Pairs => return Vec::new(),
    };
    let mut blocks = Vec::new();
    for direction in directions {
        blocks.extend(tables(report, hub, direction));
    }

    blocks
}

/// The sum and the median host of each direction over the hosts at the same time.
pub(super) fn plot(report: &FleetReport) -> Option<Plot> {
    let mut series = Vec::new();
    let groups = report.ladder.chunk_by(is_one_ladder);
    for (hue, rows) in groups.enumerate().take(SERIES_MAX / 2) {
        let first = rows.first()?;
        let way = match first.direction {
            LadderDirection::Incast => "in",
            LadderDirection::Fanout => "out",
        };
        let place = treatment_name(&first.path, &first.variant);
        let mut sums = Vec::new();
        let mut hosts = Vec::new();
        for row in rows {
            let point = |bps: f64| Point::new(row.level as f64, bps);
            sums.extend(median(&row.sums_bps).map(point));
            hosts.extend(middle(row).map(point));
        }

        let name = format!("sum {way} {place}");
        series.push(Series::new(name.trim_end(), LineStyle::Main, hue, sums));
        let name = format!("host {way} {place}");
        series.push(Series::new(name.trim_end(), LineStyle::Thin, hue, hosts));
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

/// The rows are of one direction, path and variant, by which rows are sorted.
fn is_one_ladder(a: &LadderRow, b: &LadderRow) -> bool {
    (a.direction, &a.path, &a.variant) == (b.direction, &b.path, &b.variant)
}

/// A table of each path and variant of a direction.
fn tables(report: &FleetReport, hub: &HostId, direction: LadderDirection) -> Vec<Block> {
    let (kind, ends) = match direction {
        LadderDirection::Incast => ("incast into", "sender"),
        LadderDirection::Fanout => ("fanout from", "receiver"),
    };
    let hosts = &report.header.hosts;
    let others = hosts.iter().filter(|host| host.id != *hub).count();
    let of_hub = hosts.iter().find(|host| host.id == *hub);
    let link = match of_hub.and_then(|host| host.link_bps) {
        Some(bps) => format!(" ({})", link_rate(bps)),
        None => String::new(),
    };
    let head = format!("{kind} {hub}{link}, {}", counted(others, ends));

    let ladders = report.ladder.chunk_by(is_one_ladder);
    let ladders: Vec<_> = ladders
        .filter(|rows| rows[0].direction == direction)
        .collect();
    if ladders.is_empty() {
        return vec![Block::Paragraph(format!("{head}: no step has a result"))];
    }

    let is_one = ladders.len() < 2;
    let mut blocks = Vec::new();
    for rows in ladders {
        let mut title = head.clone();
        if !is_one {
            let place = treatment_name(&rows[0].path, &rows[0].variant);
            title += &format!(", {place}");
        }
        blocks.push(Block::Table(table(title, rows)));
    }

    blocks
}

fn table(title: String, rows: &[LadderRow]) -> Table {
    let absent = || "-".to_owned();
    Table::of("", title, rows)
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
        .text("slow", slow_names)
        .table()
}

/// `96 / 952 / 956 Mbit/s`
fn spread(row: &LadderRow) -> Option<String> {
    let mut rates = host_rates(row);
    rates.sort_by(f64::total_cmp);
    let low = *rates.first()?;
    let high = *rates.last()?;
    // One unit for all three rates makes them comparable at a glance: that of the highest.
    let units = ["bit/s", "Kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"];
    let (_, unit) = scaled(high, 1000.0, units);
    let mut divisor = 1.0;
    for known in units {
        if known == unit {
            break;
        }
        divisor *= 1e3;
    }

    let [low, middle, high] = [low, median(&rates)?, high].map(|rate| digits(rate / divisor));
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
    // The other levels show sharing; only the first one shows a host by itself.
    for row in report.ladder.iter().filter(|row| row.level == 1) {
        let slow = slow_hosts(row);
        let Some((first, bps)) = slow.first() else {
            continue;
        };
        let more = match slow.len() {
            1 => " is".to_owned(),
            all => format!(" and {} more are", all - 1),
        };
        let bps = rate(*bps);
        let middle = rate(middle(row)?);
        return Some(format!("{first}{more} slow alone ({bps}, median {middle})"));
    }

    None
}

fn middle(row: &LadderRow) -> Option<f64> {
    median(&host_rates(row))
}

/// `pc07, pc12`
fn slow_names(row: &LadderRow) -> String {
    let slow = slow_hosts(row);
    let mut names = Vec::new();
    for (host, _) in slow.iter().take(SLOW_SHOWN) {
        names.push(host.to_string());
    }
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
    if !rates.is_found() {
        return format!("{suspect} does not slow the others down: without it they {change}");
    }

    let expected = rate(rates.gain_explained_bps);
    format!(
        "{suspect} slows the others down: without it they {change}, and {expected} would be its \
         share"
    )
}
