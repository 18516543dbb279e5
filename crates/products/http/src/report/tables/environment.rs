//! Both hosts.

use linerate_document::table::Table;
use linerate_model::http::{Environment, Study};
use linerate_model::numbers::{bytes, rate};

use crate::report::numbers::{MISSING, grouped, known, peak, percent};

/// One row per fact known of either host, side by side.
pub(in crate::report) fn environment(study: &Study) -> Table {
    let client = numbers_of(&study.client);
    let server = study.server.as_ref().map(numbers_of);

    let rows = client
        .into_iter()
        .enumerate()
        .filter_map(|(place, (name, client))| {
            let server = server.as_ref().and_then(|numbers| numbers.get(place));
            let server = server.map_or_else(|| MISSING.to_owned(), |(_, text)| text.clone());
            (client != MISSING || server != MISSING).then(|| [name.to_owned(), client, server])
        });
    let rows: Vec<[String; 3]> = rows.collect();
    let table = Table::of_words("", "environment", ["figure", "client", "server"], &rows);

    Table {
        notes: notes(study),
        ..table
    }
}

fn notes(study: &Study) -> Vec<String> {
    let missing = |name: &str, environment: &Environment| {
        let missing = &environment.missing;
        (!missing.is_empty()).then(|| format!("not known of the {name}: {}", missing.join("; ")))
    };
    let server = study
        .server
        .as_ref()
        .and_then(|server| missing("server", server));
    missing("client", &study.client)
        .into_iter()
        .chain(server)
        .collect()
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
