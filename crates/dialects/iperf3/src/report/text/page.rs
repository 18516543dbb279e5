//! Lines of text with their prefixes, and error lines.

use std::fmt::Write as _;
use std::sync::Arc;

use jiff::Zoned;
use jiff::fmt::strtime;
use linerate_document::Output;
use linerate_model::event::{ControlConnected, Endpoint, TestHeader};
use linerate_model::{
    Direction, EndCondition, Failure, SinkError, Stream, TestSpec, Transport, stored_name,
};

use super::row::display_id;
use crate::report::Options;
use crate::report::wording::{self, rfc1123};

/// Collects the lines of one event and sends them as a whole.
pub(crate) struct Page {
    options: Arc<Options>,
    output: Output,
    pending: String,
}

impl Page {
    pub(crate) fn new(options: Arc<Options>, output: Output) -> Self {
        Self {
            options,
            output,
            pending: String::new(),
        }
    }

    /// Adds one piece of text behind the user's prefixes; a piece of several lines gets them once.
    pub(crate) fn line(&mut self, text: &str) {
        self.pending.push_str(&self.timestamp());
        if let (Endpoint::Client, Some(title)) = (self.options.endpoint, &self.options.title) {
            // Only lines of a client have the title, with two blanks.
            let _ = write!(self.pending, "{title}:  ");
        }

        self.pending.push_str(text);
        self.pending.push('\n');
    }

    /// Program and host.
    pub(crate) fn identify(&mut self) {
        let options = Arc::clone(&self.options);
        self.line(&options.version);
        self.line(&options.system_info);
    }

    /// Writes the collected lines.
    pub(crate) fn send(&mut self) -> Result<(), SinkError> {
        let text = std::mem::take(&mut self.pending);
        Ok(self.output.report(text)?)
    }

    /// Writes a warning at once.
    pub(crate) fn warning(&self, text: &str) {
        self.output.error(&format!("warning: {text}\n"));
    }

    /// Writes the lines of a failure at once.
    pub(super) fn failure(&self, failure: &Failure) {
        let mut text = String::new();
        for line in wording::failure_lines(failure, self.options.endpoint) {
            let _ = writeln!(text, "{}{PROGRAM}: {line}", self.timestamp());
        }
        self.output.error(&text);
    }

    fn timestamp(&self) -> String {
        match &self.options.timestamps {
            Some(format) => local_time(format, &Zoned::now()),
            None => String::new(),
        }
    }
}

/// Formats a time like strftime(3) in the C locale. What is no conversion stays as it is.
fn local_time(format: &str, time: &Zoned) -> String {
    // An unknown conversion must not lose the line.
    let config = strtime::Config::new().lenient(true);
    let mut text = String::new();

    let broken_down = strtime::BrokenDownTime::from(time);
    match broken_down.format_with_config(&config, c_locale(format), &mut text) {
        Ok(()) => text,
        Err(_) => format.to_owned(),
    }
}

/// Spells out the conversions whose meaning depends on the locale.
fn c_locale(format: &str) -> String {
    let mut spelled = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        let conversion = if c == '%' { chars.next() } else { None };
        match (c, conversion) {
            ('%', Some('c')) => spelled.push_str("%a %b %e %H:%M:%S %Y"),
            ('%', Some('x')) => spelled.push_str("%m/%d/%y"),
            ('%', Some('X')) => spelled.push_str("%H:%M:%S"),
            ('%', Some('r')) => spelled.push_str("%I:%M:%S %p"),
            (c, conversion) => {
                spelled.push(c);
                spelled.extend(conversion);
            }
        }
    }

    spelled
}

const PROGRAM: &str = "iperf3";

/// Lines about the agreed parameters.
pub(super) fn accepted(header: &TestHeader, is_verbose: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if is_verbose {
        lines.push(format!("Time: {}", rfc1123(header.started_at_unix_ms)));
    }

    let host = &header.peer_host;
    let port = header.peer_port;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_of_the_c_locale_are_known() {
        let time = jiff::Timestamp::from_second(1_793_645_610).expect("in range");
        let time = time.to_zoned(jiff::tz::TimeZone::UTC);

        let rows = [
            ("%c ", "Mon Nov  2 18:53:30 2026 "),
            ("%Y-%m-%dT%H:%M:%S ", "2026-11-02T18:53:30 "),
            ("%x %X %r", "11/02/26 18:53:30 06:53:30 PM"),
            ("%%c 100%", "%c 100%"),
            ("%s", "1793645610"),
        ];
        for (format, expected) in rows {
            assert_eq!(local_time(format, &time), expected, "{format}");
        }
    }
}
