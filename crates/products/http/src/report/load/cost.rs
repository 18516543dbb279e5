//! Cost of a run at both ends.

use linerate_document::blocks::Block;
use linerate_model::http::EndpointStats;
use linerate_model::numbers::bytes;

use super::{LoadReport, named};
use crate::report::numbers::{cpus, peak, percent, time};

/// Both ends, known or not.
pub(super) fn ends(report: &LoadReport<'_>) -> Vec<Block> {
    let ends = [
        ("client", report.client, "its figures were not taken"),
        (
            "server",
            report.server,
            "no agent there, so what it cost is not known",
        ),
    ];
    let line = |(name, end, unknown): (&str, Option<&EndpointStats>, &str)| {
        named(
            name,
            end.map_or_else(|| unknown.to_owned(), |end| cost(end, report.load.ok)),
        )
    };
    ends.into_iter().map(line).collect()
}

/// Cost of a run at one end.
fn cost(side: &EndpointStats, ok: u64) -> String {
    let mut words = Vec::new();
    if let Some(ns) = side.process_cpu_ns.filter(|_| side.window_ns > 0) {
        words.push(format!(
            "program {} of one CPU",
            cpus(ns as f64 / side.window_ns as f64)
        ));
        if ok > 0 {
            words.push(format!("{} of it per 2xx", time(ns as f64 / ok as f64)));
        }
    }

    words.extend(side.cpu_busy.map(|busy| match side.cpus {
        Some(cpus) => format!("all {cpus} CPUs {} busy", percent(busy)),
        None => format!("all CPUs {} busy", percent(busy)),
    }));
    words.extend(side.busiest_cpu_busy.map(|busy| match side.busiest_cpu {
        Some(cpu) => format!("busiest CPU ({cpu}) {}", percent(busy)),
        None => format!("busiest CPU {}", percent(busy)),
    }));
    words.extend(
        side.rss_bytes
            .map(|rss| format!("{} resident", bytes(rss as f64))),
    );
    words.extend(side.fds.map(|fds| format!("descriptors {}", peak(fds))));
    words.extend(
        side.time_wait
            .map(|sockets| format!("TIME_WAIT {}", peak(sockets))),
    );

    if words.is_empty() {
        words.push("nothing could be measured".to_owned());
    }

    words.join(", ")
}
