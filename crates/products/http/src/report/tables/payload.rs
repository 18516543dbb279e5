//! TCP without HTTP, and what each payload reaches.

use linerate_document::table::Table;
use linerate_model::http::{NegotiatedProtocol, Study};
use linerate_model::numbers::rate;

use crate::report::grid::{by_payload, runs_of};
use crate::report::labels::letters;
use crate::report::numbers::{self, cpus, fine, grouped, known, mebi, mega, per_s, percent};

/// One row per TCP test; none without any.
pub(in crate::report) fn baseline(study: &Study) -> Option<Table> {
    Table::of(
        "",
        "TCP without HTTP: received payload per second",
        &study.baseline,
    )
    .text(
        "sender",
        |test| if test.is_reverse { "server" } else { "client" },
    )
    .number("streams", |test| test.streams.to_string())
    .number("goodput", |test| rate(test.goodput_bps))
    .number("of theory", |test| known(test.of_theory, percent))
    .number("resent segments", |test| known(test.retransmits, grouped))
    .number("resent share", |test| known(test.retransmit_share, percent))
    .number("server CPU", |test| known(test.server_cpus, cpus))
    .number("client CPU", |test| known(test.client_cpus, cpus))
    .notes(["theory: what frames of this size let through on this link; CPU: 100 % is one CPU"])
    .non_empty()
}

const PAYLOAD_NOTE: &str = "payload: bodies of 2xx, 10^6 bytes; http: heads and bodies, 2^20 \
                            bytes; wire: frames and gaps, busier direction; of network: of the \
                            responses/s it allows; CPU: of the program, 100 % is one CPU; us/2xx: the \
                            server's CPU time per response; verdict: letters of the next table";

/// One row per payload; none without any.
pub(in crate::report) fn payload(study: &Study) -> Option<Table> {
    let cells = by_payload(study);
    let is_plain = study
        .protocol
        .iter()
        .all(NegotiatedProtocol::is_plain_http1);
    let unseen = "http is n/a inside TLS and in HTTP/2, where the bytes of heads are not seen";
    let title = format!("payloads by themselves; {}", runs_of(cells.iter().copied()));

    Table::of("", title, &cells)
        .text("payload", |cell| numbers::payload(cell.key.payload_bytes))
        .number("c", |cell| cell.key.connections.to_string())
        .number("responses/s", |cell| known(cell.median.ok_per_s, per_s))
        .number("payload MB/s", |cell| {
            known(cell.median.payload_bytes_per_s, mega)
        })
        .number("http MiB/s", |cell| {
            known(cell.median.http_bytes_per_s, mebi)
        })
        .number("wire Mbit/s", |cell| {
            known(cell.median.wire_bps, |bps| fine(bps / 1e6))
        })
        .number("of network", |cell| known(cell.median.of_ceiling, percent))
        .number("server CPU", |cell| known(cell.median.server_cpus, cpus))
        .number("client CPU", |cell| known(cell.median.client_cpus, cpus))
        .number("us/2xx", |cell| {
            known(cell.median.server_cpu_ns_per_request, |ns| fine(ns / 1e3))
        })
        .text("verdict", |cell| letters(&cell.verdict))
        .notes([PAYLOAD_NOTE])
        .notes((!is_plain).then_some(unseen))
        .non_empty()
}
