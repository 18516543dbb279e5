//! Lines before the first interval.

use linerate_model::event::{ControlConnected, Endpoint, TestHeader};
use linerate_model::{Direction, EndCondition, Stream, TestSpec, Transport, stored_name};

use super::row::{Columns, display_id};
use super::{Test, TextWriter};
use crate::report::wording::rfc1123;

impl TextWriter {
    pub(super) fn control_connected(&mut self, control: &ControlConnected) {
        if self.options.verbose {
            control_facts(control)
                .iter()
                .for_each(|line| self.page.line(line));
        }
    }

    pub(super) fn test_accepted(&mut self, header: &TestHeader) {
        if self.options.verbose {
            self.page
                .line(&format!("Time: {}", rfc1123(header.started_at_unix_ms)));
        }

        let (host, port) = (&header.peer_host, header.peer_port);
        match header.endpoint {
            Endpoint::Client => self
                .page
                .line(&format!("Connecting to host {host}, port {port}")),
            Endpoint::Server => self
                .page
                .line(&format!("Accepted connection from {host}, port {port}")),
        }

        if header.endpoint == Endpoint::Client && header.spec.direction == Direction::Reverse {
            self.page
                .line(&format!("Reverse mode, remote host {host} is sending"));
        }

        if self.options.verbose {
            parameter_lines(header)
                .iter()
                .for_each(|line| self.page.line(line));
        }

        self.test = Some(Test {
            header: header.clone(),
            columns: Columns::new(header.endpoint, &header.spec, self.options.format),
            has_interval: false,
        });
    }

    pub(super) fn test_started(&mut self) {
        if let Some(test) = self.test.as_ref().filter(|_| self.options.verbose) {
            let line = starting_line(&test.header.spec);
            self.page.line(&line);
        }
    }
}

/// Verbose lines of a client about its control connection.
pub(in crate::report) fn control_facts(control: &ControlConnected) -> Vec<String> {
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

fn parameter_lines(header: &TestHeader) -> Vec<String> {
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
        .collect()
}

fn starting_line(spec: &TestSpec) -> String {
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
