//! Lines of a report before and around its rows: which program and end wrote it, with whom, and
//! how.

use std::time::Duration;

use linerate_model::event::Endpoint;
use linerate_model::{CpuUsage, EndCondition, TestSpec, Transport};

use super::command::Command;
use super::row::{Subject, quantity};
use super::stream::TextStream;
use super::{Taken, command};
use crate::readers::time;

/// The program that printed a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Iperf3,
    Iperf2,
}

/// A line with which a program announces a test.
#[derive(Debug)]
pub(super) struct Begun<'a> {
    tool: Tool,
    endpoint: Endpoint,
    rest: &'a str,
}

impl<'a> Begun<'a> {
    pub(super) fn find(line: &'a str) -> Option<Self> {
        let (endpoint, tool, rest) = [
            ("Connecting to host ", Endpoint::Client, Tool::Iperf3),
            ("Accepted connection from ", Endpoint::Server, Tool::Iperf3),
            ("Client connecting to ", Endpoint::Client, Tool::Iperf2),
            ("Server listening on ", Endpoint::Server, Tool::Iperf2),
        ]
        .into_iter()
        .find_map(|(words, endpoint, tool)| Some((endpoint, tool, line.split_once(words)?.1)))?;

        // The server of iperf3 names the port alone.
        let is_port =
            endpoint == Endpoint::Server && rest.starts_with(|c: char| c.is_ascii_digit());
        Some(Self {
            tool: if is_port { Tool::Iperf3 } else { tool },
            endpoint,
            rest,
        })
    }

    pub(super) fn is_iperf2(&self, endpoint: Endpoint) -> bool {
        self.tool == Tool::Iperf2 && self.endpoint == endpoint
    }

    /// The opening of the announced test. `former` is about this test where `is_same` says so and
    /// it does not contradict.
    pub(super) fn opening(&self, former: Opening, is_same: bool) -> Opening {
        // A server of iperf3 listens, then accepts.
        let is_next_of_server = former.is_server() && self.endpoint == Endpoint::Server;
        let is_of_command = former.peer_host.is_empty() || former.endpoint.is_none();
        let mut next = if is_same && (is_of_command || is_next_of_server) {
            former
        } else {
            former.again()
        };
        next.tool = Some(self.tool);
        next.endpoint = Some(self.endpoint);
        next.is_udp |= self.rest.contains("UDP port");
        next.peer(self.rest, self.tool);

        next
    }
}

/// The message of an error that iperf printed.
pub(super) fn error(line: &str) -> Option<&str> {
    let rest = ["iperf3: ", "iperf: "]
        .iter()
        .find_map(|name| Some(line.split_once(name)?.1))?;
    let is_end = rest.starts_with("interrupt - ");
    rest.strip_prefix("error - ")
        .or(Some(rest).filter(|_| is_end))
}

/// Facts of a test beside its streams.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::readers) struct Opening {
    pub(super) tool: Option<Tool>,
    pub version: Option<String>,
    pub endpoint: Option<Endpoint>,
    pub peer_host: String,
    /// Port of the server, where this end is the client; where it listens, where it is the server.
    pub server_port: Option<u16>,
    pub host_name: Option<String>,
    pub cookie: Option<String>,
    pub started_unix_ms: Option<u64>,
    pub mss_bytes: Option<u32>,
    pub datagram_bytes: Option<u32>,
    pub block_len_bytes: Option<u32>,
    pub is_reverse: bool,
    pub is_udp: bool,
    /// True if the columns of this end's rows are those of a sender.
    pub sends: Option<bool>,
    /// The test as the command and the report describe it, without the length of its blocks.
    pub spec: TestSpec,
    pub cpu: Option<(CpuUsage, CpuUsage)>,
    pub congestion: [Option<String>; 2],
    /// The program came to its end, so that both ends have exchanged their results.
    pub is_done: bool,
    pub source: String,
}

/// Lines that have nothing a test needs.
const OF_NO_USE: &str = "\
    Test Complete.|Control connection |TCP MSS|Setting UDP block size|Server JSON output:|\
    Event based writes|TCP near-congestion|Bounce-back test|Sent |Starting Test:|\
    Finished omit period|Server output:|TCP window size|UDP buffer size|Write buffer size|\
    Read buffer size|TCP congestion control|MSS |TOS |fair-queue |Bounceback test|Bursting|\
    Isochronous|Warn:|warning:|WARNING|Binding to local address|Joining multicast group|\
    Setting multicast TTL|Enabled |Barrier |Limiting |Kernel |Using |Clock sync|Client set to |\
    Server set to |Waiting for server threads|iperf Done|Optional features available|Set up";

impl Opening {
    /// That of the output of a command.
    pub(super) fn of_command(command: &Command) -> Self {
        let mut opening = Self {
            tool: Some(if command.is_iperf3 {
                Tool::Iperf3
            } else {
                Tool::Iperf2
            }),
            endpoint: command.is_server.map(|is_server| {
                if is_server {
                    Endpoint::Server
                } else {
                    Endpoint::Client
                }
            }),
            is_reverse: command.is_reverse,
            is_udp: command.is_udp,
            datagram_bytes: command.length_bytes.filter(|_| command.is_udp),
            block_len_bytes: command.length_bytes,
            ..Self::default()
        };
        command.apply(&mut opening.spec);
        opening
    }

    /// Another test of the same program and end.
    pub(super) fn again(&self) -> Self {
        Self {
            tool: self.tool,
            version: self.version.clone(),
            endpoint: self.endpoint,
            host_name: self.host_name.clone(),
            peer_host: self.peer_host.clone(),
            server_port: self.server_port,
            // The client of iperf3 chooses the protocol, the server of iperf 2 listens for one.
            is_udp: self.tool == Some(Tool::Iperf2) && self.is_udp,
            datagram_bytes: self.datagram_bytes,
            ..Self::default()
        }
    }

    pub(super) fn is_server(&self) -> bool {
        self.endpoint == Some(Endpoint::Server)
    }

    /// True if a client has named its server.
    pub(super) fn is_announced_client(&self) -> bool {
        self.endpoint == Some(Endpoint::Client) && !self.peer_host.is_empty()
    }

    /// Host and port of a banner: `192.0.2.1, port 51738`,
    /// `192.0.2.9, TCP port 5001 with pid 22911`, `5201 (test #1)`.
    fn peer(&mut self, rest: &str, tool: Tool) {
        let port = |text: &str| {
            text.split(|c: char| !c.is_ascii_digit())
                .next()?
                .parse()
                .ok()
        };
        match (self.endpoint, tool) {
            (Some(Endpoint::Server), Tool::Iperf2) => {
                self.server_port = rest.split_once("port ").and_then(|(_, text)| port(text));
            }
            (Some(Endpoint::Server), Tool::Iperf3) if !rest.contains(", port ") => {
                self.server_port = port(rest);
            }
            _ => {
                let (host, rest) = rest.split_once(", ").unwrap_or((rest, ""));
                self.peer_host = host.trim().to_owned();
                let named = rest.split_once("port ").and_then(|(_, text)| port(text));

                if self.endpoint == Some(Endpoint::Client) {
                    self.server_port = named;
                }
            }
        }
    }

    /// Reads the head of a table: `Interval           Transfer     Bitrate         Retr  Cwnd`.
    pub(super) fn head(&mut self, rest: &str) {
        let has_loss = rest.contains("Jitter");
        self.is_udp |= has_loss || rest.contains("Total Datagrams") || rest.contains("PPS");
        let sends = !has_loss
            && ["Retr", "Write/Err", "Total Datagrams"]
                .iter()
                .any(|column| rest.contains(column));
        self.sends = self.sends.or(Some(sends));
    }

    /// Adds the facts of the line of its first stream.
    pub(super) fn with_stream(mut self, subject: Subject, stream: &TextStream) -> Self {
        // A server of iperf 2 that connects back marks the stream.
        if matches!(
            subject,
            Subject::Stream {
                is_marked: true,
                ..
            }
        ) {
            self.endpoint = Some(Endpoint::Server);
        }

        if self.peer_host.is_empty() {
            self.peer_host = stream
                .remote
                .map_or_else(String::new, |(host, _)| host.to_string());
        }

        if self.endpoint.is_none() {
            let ports = stream
                .local
                .zip(stream.remote)
                .map(|((_, local), (_, remote))| (local, remote));
            self.endpoint = ports.map(|(local, remote)| {
                // The port of a client is ephemeral, and mostly higher than that of its server.
                if local < remote {
                    Endpoint::Server
                } else {
                    Endpoint::Client
                }
            });
        }

        self
    }

    /// Reads a line around the rows.
    pub(super) fn line(&mut self, line: &str) -> Taken {
        let text = line.trim();
        if let Some(version) = text
            .strip_prefix("iperf 3")
            .filter(|rest| rest.starts_with('.'))
        {
            self.tool = Some(Tool::Iperf3);
            self.version = Some(format!(
                "3{}",
                version.split_whitespace().next().unwrap_or_default()
            ));
            return Taken::Yes;
        }

        if let Some(version) = text.strip_prefix("iperf version ") {
            self.tool = Some(Tool::Iperf2);
            self.version = version.split_whitespace().next().map(str::to_owned);
            return Taken::Yes;
        }

        if let Some(rest) = text
            .strip_prefix("Linux ")
            // iperf3 prints uname(2) after its version; other lines may begin with the same word.
            .filter(|_| self.tool == Some(Tool::Iperf3))
        {
            self.host_name = rest.split_whitespace().next().map(str::to_owned);
            return Taken::AlsoOfHost;
        }

        if self.tool.is_none() && self.endpoint.is_none() {
            return Taken::No;
        }

        // A title or a time may be before it.
        self.is_done |= text.ends_with("iperf Done.");
        let is_known = self.fact(text)
            || OF_NO_USE.split('|').any(|known| text.starts_with(known))
            || text.ends_with("iperf Done.")
            || text.ends_with("- - - - -")
            || text.ends_with("-----")
            || error(text).is_some();
        if is_known { Taken::Yes } else { Taken::No }
    }

    /// Reads a line that has a fact of the test.
    fn fact(&mut self, text: &str) -> bool {
        let after = |words: &str| text.strip_prefix(words).map(str::trim);
        let number = |words: &str| after(words)?.split_whitespace().next()?.parse::<u64>().ok();
        let small = |words: &str| {
            number(words)
                .and_then(|number| u32::try_from(number).ok())
                .filter(|number| *number > 0)
        };

        if let Some(time) = after("Time: ") {
            self.started_unix_ms = time::rfc2822_ms(time);
        } else if let Some(cookie) = after("Cookie: ") {
            self.cookie = Some(cookie.to_owned()).filter(|cookie| !cookie.is_empty());
        } else if let Some(mss) = small("TCP MSS: ").or_else(|| small("Control connection MSS ")) {
            self.mss_bytes = Some(mss);
        } else if let Some(rate) =
            number("Target Bitrate: ").or_else(|| number("Target Bandwidth: "))
        {
            self.spec.pacing.rate_bps = Some(rate).filter(|rate| *rate > 0);
        } else if text.starts_with("Reverse mode") {
            self.is_reverse = true;
        } else if let Some(rest) = after("Starting Test: ") {
            self.parameters(rest);
        } else if let Some(bytes) = small("Sending ").filter(|_| text.contains("byte datagrams")) {
            self.datagram_bytes = Some(bytes);
            self.is_udp = true;
        } else if small("Receiving ").is_some() && text.contains("byte datagrams") {
            self.is_udp = true;
        } else if let Some(rest) =
            after("Write buffer size: ").or_else(|| after("Write buffer size "))
        {
            let mut words = rest.split_whitespace();
            let bytes = words
                .next()
                .zip(words.next())
                .and_then(|(number, unit)| quantity(number, unit));
            self.block_len_bytes = bytes.map(|bytes| bytes as u32);
        } else if let Some(rest) = after("CPU Utilization: ") {
            self.cpu = self.cpu.or_else(|| cpu(rest));
        } else if let Some(name) = after("snd_tcp_congestion ") {
            self.congestion[0] = Some(name.to_owned());
        } else if let Some(name) = after("rcv_tcp_congestion ") {
            self.congestion[1] = Some(name.to_owned());
        } else if let Some(name) = after("TCP congestion control using ") {
            self.congestion[0] = Some(name.to_owned());
        } else {
            return false;
        }

        true
    }

    /// `protocol: TCP, 1 streams, 131072 byte blocks, omitting 0 seconds, 10 second test, tos 0`
    fn parameters(&mut self, text: &str) {
        for part in text.split(", ") {
            let words: Vec<&str> = part.split_whitespace().collect();
            match words.as_slice() {
                ["protocol:", protocol] => self.is_udp = *protocol == "UDP",
                [number, "streams"] => self.spec.streams = number.parse().unwrap_or(1),
                [number, "byte", "blocks"] => {
                    self.block_len_bytes = number.parse().ok();
                }
                ["omitting", number, "seconds"] => {
                    self.spec.omit =
                        Duration::from_secs(number.parse().ok().filter(|s| *s < 3600).unwrap_or(0));
                }
                [number, "second", "test"] => {
                    if let Some(seconds) = number.parse().ok().filter(|seconds| *seconds < 1 << 32)
                    {
                        self.spec.end = EndCondition::Duration(Duration::from_secs(seconds));
                    }
                }
                _ => {}
            }
        }
    }

    pub(super) fn transport(&self) -> Transport {
        if self.is_udp {
            Transport::Udp
        } else {
            Transport::Tcp
        }
    }
}

/// `local/sender 1.0% (1.0%u/0.0%s), remote/receiver 1.4% (0.0%u/1.4%s)`
fn cpu(text: &str) -> Option<(CpuUsage, CpuUsage)> {
    let (local, remote) = text.split_once(", ")?;
    let usage = |text: &str| {
        let mut numbers = text
            .split(|c: char| !(c.is_ascii_digit() || c == '.'))
            .filter_map(|word| word.parse::<f64>().ok());
        Some(CpuUsage {
            total_percent: numbers.next()?,
            user_percent: numbers.next()?,
            system_percent: numbers.next()?,
        })
    };

    let usages = usage(local)?;
    let others = usage(remote)?;
    Some((usages, others))
}

impl command::Command {
    /// The options that a test has.
    fn apply(&self, spec: &mut TestSpec) {
        spec.streams = self.streams.unwrap_or(spec.streams);
        spec.omit = self
            .omit_s
            .and_then(|s| Duration::try_from_secs_f64(s).ok())
            .unwrap_or(spec.omit);

        if let Some(duration) = self
            .seconds
            .and_then(|s| Duration::try_from_secs_f64(s).ok())
        {
            spec.end = EndCondition::Duration(duration);
        }

        spec.socket.window_bytes = self.window_bytes;
        spec.pacing.rate_bps = self.target_bps;
    }
}
