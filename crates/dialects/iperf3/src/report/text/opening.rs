//! Lines before the first interval.

use linerate_model::event::{ControlConnected, Endpoint, TestHeader};
use linerate_model::{Direction, EndCondition, Stream, TestSpec, Transport, stored_name};

use super::row::display_id;
use crate::report::wording::rfc1123;

/// Lines about the agreed parameters.
pub(super) fn accepted(header: &TestHeader, is_verbose: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if is_verbose {
        lines.push(format!("Time: {}", rfc1123(header.started_at_unix_ms)));
    }

    let (host, port) = (&header.peer_host, header.peer_port);
    lines.push(match header.endpoint {
        Endpoint::Client => format!("Connecting to host {host}, port {port}"),
        Endpoint::Server => format!("Accepted connection from {host}, port {port}"),
    });
    if header.endpoint == Endpoint::Client && header.spec.direction == Direction::Reverse {
        lines.push(format!("Reverse mode, remote host {host} is sending"));
    }

    if is_verbose {
        lines.extend(parameter_lines(header));
    }
    lines
}

/// Verbose lines of a client about its control connection.
pub(crate) fn control_facts(control: &ControlConnected) -> Vec<String> {
    let mss = control
        .mss_bytes
        .map(|mss| format!("Control connection MSS {mss}"));
    let block_len = control
        .chosen_block_len_bytes
        .map(|len| format!("Setting UDP block size to {len}"));
    mss.into_iter().chain(block_len).collect()
}

pub(super) fn stream_line(stream: &Stream) -> String {
    format!(
        "[{:>3}] local {} port {} connected to {} port {}",
        display_id(stream.id),
        stream.local.ip(),
        stream.local.port(),
        stream.remote.ip(),
        stream.remote.port()
    )
}

fn parameter_lines(header: &TestHeader) -> impl Iterator<Item = String> {
    let spec = &header.spec;
    let mss = (spec.transport == Transport::Tcp).then(|| match spec.socket.mss_bytes {
        Some(mss) => format!("      TCP MSS: {mss}"),
        None => format!(
            "      TCP MSS: {} (default)",
            header.control_mss_bytes.unwrap_or(0)
        ),
    });

    let rate = spec.pacing.rate_bps.filter(|rate| *rate > 0);
    std::iter::once(format!("      Cookie: {}", header.cookie))
        .chain(mss)
        .chain(rate.map(|rate| format!("      Target Bitrate: {rate}")))
}

pub(super) fn starting_line(spec: &TestSpec) -> String {
    let protocol = stored_name(spec.transport).to_uppercase();
    let end = match spec.end {
        EndCondition::Duration(duration) => format!("{} second test", duration.as_secs()),
        // In the original no limit is a duration of 0.
        EndCondition::Unlimited => "0 second test".into(),
        EndCondition::Bytes(bytes) => format!("{bytes} bytes to send"),
        EndCondition::Blocks(blocks) => format!("{blocks} blocks to send"),
    };
    format!(
        "Starting Test: protocol: {protocol}, {} streams, {} byte blocks, omitting {} seconds, \
         {end}, tos {}",
        spec.streams,
        spec.block_len_bytes,
        spec.omit.as_secs(),
        spec.socket.tos
    )
}
