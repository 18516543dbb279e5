//! Both hosts: what they are, and the largest values of the runs.

use std::collections::BTreeMap;

use linerate_document::table::{Cell, Table};
use linerate_model::http::{CellKey, CellRun, EndpointStats, Environment, Peak, Study};
use linerate_model::numbers::{bytes, rate};
use linerate_model::words::joined;

use crate::report::labels::{MISSING, cell as cell_name, grouped, known, peak, percent};

/// One row per fact known of either host, side by side.
pub(in crate::report) fn environment(study: &Study) -> Table {
    let server = study.server.as_ref().map(numbers_of).unwrap_or_default();
    let mut rows = Vec::new();
    for (place, (name, client)) in numbers_of(&study.client).into_iter().enumerate() {
        let server = server.get(place).map_or(MISSING, |(_, text)| text.as_str());
        if client != MISSING || server != MISSING {
            rows.push([name.to_owned(), client, server.to_owned()]);
        }
    }

    let table = Table::of_words("", "environment", ["figure", "client", "server"], &rows);
    Table {
        notes: notes(study),
        ..table
    }
}

fn notes(study: &Study) -> Vec<String> {
    let mut notes = Vec::new();
    let ends = [
        ("client", Some(&study.client)),
        ("server", study.server.as_ref()),
    ];
    for (name, host) in ends {
        if let Some(host) = host.filter(|host| !host.missing.is_empty()) {
            let missing = host.missing.join("; ");
            notes.push(format!("not known of the {name}: {missing}"));
        }
    }

    notes
}

/// Numbers of a host with their names, always the same ones in the same order.
fn numbers_of(host: &Environment) -> Vec<(&'static str, String)> {
    let text = |value: &Option<String>| known(value.as_ref(), Clone::clone);
    let number = |value: Option<u64>| known(value, grouped);
    let yes = |value: bool| if value { "yes" } else { "no" }.to_owned();
    vec![
        ("linerate", host.version.clone()),
        ("kernel", text(&host.kernel)),
        ("CPUs", number(host.cpus.map(u64::from))),
        ("governor", text(&host.governor)),
        ("device", device(host)),
        ("link", known(host.link_bps, |bps| rate(bps as f64))),
        ("MTU", known(host.mtu_bytes, |mtu| format!("{mtu} bytes"))),
        ("full duplex", known(host.is_full_duplex, yes)),
        ("descriptors, soft of hard", descriptors(host)),
        ("fs.nr_open", number(host.nr_open)),
        ("fs.file-max", number(host.file_max)),
        (
            "local ports",
            known(host.port_range, |(low, high)| format!("{low} to {high}")),
        ),
        ("reserved ports", text(&host.reserved_ports)),
        ("TIME_WAIT before", known(host.time_wait, peak)),
        ("tcp_tw_reuse", number(host.tw_reuse.map(u64::from))),
        ("tcp_timestamps", number(host.timestamps.map(u64::from))),
        ("somaxconn", number(host.somaxconn)),
        ("listen backlog", number(host.backlog)),
        ("tcp_max_syn_backlog", number(host.max_syn_backlog)),
        ("conntrack", known(host.conntrack, peak)),
        (
            "memory available",
            known(host.memory_available_bytes, |memory| bytes(memory as f64)),
        ),
        (
            "tcp_mem, pages",
            known(host.tcp_mem_pages, |pages| pages.map(grouped).join(" ")),
        ),
        ("load of others", other_load(host)),
        ("steal", known(host.steal, percent)),
        ("control group throttled", known(host.is_throttled, yes)),
        ("NIC errors since boot", number(host.nic_errors)),
    ]
}

fn device(host: &Environment) -> String {
    let kind = match (host.is_loopback, host.is_wireless_or_tunnel, host.is_vlan) {
        (true, ..) => " (loopback)",
        (_, true, _) => " (wireless or tunnel)",
        (.., Some(true)) => " (VLAN)",
        _ => "",
    };
    known(host.device.as_ref(), |name| format!("{name}{kind}"))
}

fn descriptors(host: &Environment) -> String {
    let raised = if host.can_raise_nofile {
        ", may raise it"
    } else {
        ""
    };
    known(host.nofile_soft.zip(host.nofile_hard), |(soft, hard)| {
        format!("{} of {}{raised}", grouped(soft), grouped(hard))
    })
}

fn other_load(host: &Environment) -> String {
    let name = host
        .busiest_other
        .as_ref()
        .map_or_else(String::new, |name| format!(", most by {name}"));
    known(host.other_load, |share| format!("{}{name}", percent(share)))
}

type Figure = fn(&EndpointStats) -> Option<Peak>;

/// Formatter of a value.
type Words = fn(Peak) -> String;

const RESOURCES: [(&str, Figure, Words); 7] = [
    ("descriptors", |side| side.fds, peak),
    ("local ports", |side| side.ports, peak),
    ("TIME_WAIT", |side| side.time_wait, peak),
    ("conntrack", |side| side.conntrack, peak),
    ("accept queue", |side| side.accept_queue, peak),
    ("group memory", |side| side.group_memory, memory),
    ("group tasks", |side| side.group_tasks, peak),
];
/// Share of a limit that is worth a mark.
const CLOSE: f64 = 0.9;
/// TCP knows no more states.
const STATES_MAX: usize = 13;

/// The largest of all runs, with the cell in which it was; none without any run.
pub(in crate::report) fn limits(study: &Study) -> Option<Table> {
    let client = ends(study, |run| Some(&run.client));
    let server = ends(study, |run| run.server.as_ref());
    let rows = RESOURCES
        .map(|(name, figure, words)| (name, words, top(&client, figure), top(&server, figure)));
    let cell = |top: Top<'_>| known(top, |(key, _)| cell_name(key));
    let title = "limits: largest value of all runs, and what it may reach";
    let table = Table::of("", title, &rows)
        .text("figure", |(name, ..)| *name)
        .number("client peak of limit", |(_, words, top, _)| {
            known(*top, |(_, peak)| words(peak))
        })
        .number("share", |(.., top, _)| share_of(*top))
        .text("in cell", |(.., top, _)| cell(*top))
        .number("server peak of limit", |(_, words, _, top)| {
            known(*top, |(_, peak)| words(peak))
        })
        .number("share", |(.., top)| share_of(*top))
        .text("in cell", |(.., top)| cell(*top))
        .notes(limit_notes(&client, &server))
        .table();

    (!client.is_empty()).then_some(table)
}

fn limit_notes(client: &[Found<'_>], server: &[Found<'_>]) -> Vec<String> {
    let mut notes = vec![format!("*: {:.0} % of the limit or more", CLOSE * 100.0)];
    for (end, sides) in [("client", client), ("server", server)] {
        notes.extend(
            states(sides)
                .map(|states| format!("most sockets of the test by state, {end}: {states}")),
        );
    }

    notes
}

/// `established 1,024, time-wait 13`
fn states(sides: &[Found<'_>]) -> Option<String> {
    let mut most: BTreeMap<&str, u64> = BTreeMap::new();
    for (state, count) in sides
        .iter()
        .filter_map(|(_, side)| side.sockets_by_state.as_ref())
        .flatten()
    {
        let peak = most.entry(state).or_default();
        *peak = (*peak).max(*count);
    }

    let most = most.into_iter().take(STATES_MAX);
    let words = joined(
        most.map(|(state, count)| format!("{state} {}", grouped(count))),
        ", ",
    );
    (!words.is_empty()).then_some(words)
}

fn memory(peak: Peak) -> String {
    let text = |value: u64| bytes(value as f64);
    match peak.limit {
        Some(limit) => format!("{} of {}", text(peak.peak), text(limit)),
        None => text(peak.peak),
    }
}

type Found<'a> = (&'a CellKey, &'a EndpointStats);

fn ends(study: &Study, end: fn(&CellRun) -> Option<&EndpointStats>) -> Vec<Found<'_>> {
    let runs = study.cells.iter().flat_map(|cell| &cell.runs);
    let loaded = runs.filter(|run| run.load.is_some());
    loaded
        .filter_map(|run| Some((&run.key, end(run)?)))
        .collect()
}

fn top<'a>(sides: &[Found<'a>], figure: Figure) -> Option<(&'a CellKey, Peak)> {
    let peaks = sides
        .iter()
        .filter_map(|(key, side)| Some((*key, figure(side)?)));
    // Without a limit all shares are 0, and the peaks decide.
    peaks.max_by(|(_, a), (_, b)| share(*a).total_cmp(&share(*b)).then(a.peak.cmp(&b.peak)))
}

fn share(peak: Peak) -> f64 {
    let limit = peak.limit.filter(|limit| *limit > 0);
    limit.map_or(0.0, |limit| peak.peak as f64 / limit as f64)
}

type Top<'a> = Option<(&'a CellKey, Peak)>;

fn share_of(top: Top<'_>) -> Cell {
    let part = top.filter(|(_, peak)| peak.limit.is_some_and(|limit| limit > 0));
    let share = part.map(|(_, peak)| share(peak));
    Cell::marked(
        known(share, percent),
        share.is_some_and(|share| share >= CLOSE),
    )
}
