//! T1: what each payload reaches.

use linerate_model::http::{self as model, NegotiatedProtocol, Study};

use crate::document::table::{Cell, Column, Table, numbers};
use crate::http::grid::{by_payload, runs_of};
use crate::http::labels::letters;
use crate::http::numbers::{self, cpus, fine, known, mebi, mega, per_s, percent};

/// One row per payload; none without any.
pub(in crate::http) fn payload(study: &Study) -> Option<Table> {
    let cells = by_payload(study);
    if cells.is_empty() {
        return None;
    }
    let heads = [
        "c",
        "2xx/s",
        "payload MB/s",
        "http MiB/s",
        "wire Mbit/s",
        "of X_net",
        "server CPU",
        "client CPU",
        "us/2xx",
    ];
    let mut notes = vec![
        "payload: bodies of 2xx, 10^6 bytes; http: heads and bodies, 2^20 bytes; wire: frames and gaps, busier \
         direction; X_net: 2xx/s the network allows; CPU: of the program, 100 % is one processor; us/2xx: the \
         server's processor time per answer; verdict: letters of T2a"
            .to_owned(),
    ];
    if !study.protocol.iter().all(NegotiatedProtocol::is_plain_http1) {
        notes.push("http is n/a inside TLS and in HTTP/2, where the bytes of heads are not seen".to_owned());
    }
    if study.server.is_none() {
        notes.push("There was no agent at the server, so its figures are n/a".to_owned());
    }
    Some(Table {
        id: "T1",
        title: format!("payloads by themselves; {}", runs_of(cells.iter().copied())),
        columns: std::iter::once(Column::Text("payload"))
            .chain(numbers(heads))
            .chain([Column::Text("verdict")])
            .collect(),
        rows: cells.into_iter().map(row).collect(),
        notes,
    })
}

fn row(cell: &model::Cell) -> Vec<Cell> {
    let median = &cell.median;
    vec![
        numbers::payload(cell.key.payload_bytes).into(),
        cell.key.connections.to_string().into(),
        known(median.ok_per_s, per_s).into(),
        known(median.payload_bytes_per_s, mega).into(),
        known(median.http_bytes_per_s, mebi).into(),
        known(median.wire_bps, |bps| fine(bps / 1e6)).into(),
        known(median.of_ceiling, percent).into(),
        known(median.server_cpus, cpus).into(),
        known(median.client_cpus, cpus).into(),
        known(median.server_cpu_ns_per_request, |ns| fine(ns / 1e3)).into(),
        letters(&cell.verdict).into(),
    ]
}
