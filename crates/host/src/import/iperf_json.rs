//! Reports of iperf3 in JSON: whole (`-J`), or one event per line (`--json-stream`).

use serde_json::Value;

use super::blocks::Block;
use super::iperf::{Transcript, Transcripts};

/// JSON objects among the lines of a block.
pub(super) struct Documents {
    text: String,
    /// Where each line begins.
    starts: Vec<usize>,
}

impl Documents {
    pub(super) fn of(block: &Block<'_>) -> Self {
        let (mut text, mut starts) = (String::new(), Vec::new());
        if block.lines.iter().any(|(_, line)| line.trim_start().starts_with('{')) {
            for (_, line) in &block.lines {
                starts.push(text.len());
                text.extend([line, "\n"]);
            }
        }
        Self { text, starts }
    }

    /// The object that begins in a line, and the number of its lines.
    pub(super) fn at(&self, line: usize) -> Option<(Value, usize)> {
        let text = self.text.get(*self.starts.get(line)?..)?;
        text.trim_start().strip_prefix('{')?;
        let mut values = serde_json::Deserializer::from_str(text).into_iter();
        let value = values.next()?.ok()?;
        Some((value, text.get(..values.byte_offset())?.lines().count()))
    }
}

impl Transcripts {
    /// Reads a report or an event; returns whether it is one of iperf3.
    pub(super) fn json(&mut self, document: &Value) -> bool {
        match (document["event"].as_str(), &document["data"]) {
            (Some("start"), start) => self.begin(start),
            (Some("interval"), interval) => self.on_last(|run| run.json_interval(interval)),
            (Some("end"), end) => self.on_last(|run| run.json_end(end)),
            (Some("error"), _) => self.on_last(|run| run.interrupted = true),
            (Some(_), _) => self.on_last(|_| {}),
            (None, _) => {
                let is_report = document["start"].is_object() && self.begin(&document["start"]);
                is_report
                    && self.on_last(|run| {
                        document["intervals"].as_array().into_iter().flatten().for_each(|one| run.json_interval(one));
                        run.json_end(&document["end"]);
                        run.interrupted |= document["error"].is_string();
                        let server = document["server_output_json"]["start"]["version"].as_str();
                        run.peer_version = server.and_then(|text| text.strip_prefix("iperf ")).map(str::to_owned);
                    })
            }
        }
    }

    fn begin(&mut self, start: &Value) -> bool {
        let Some(version) = start["version"].as_str().and_then(|text| text.strip_prefix("iperf ")) else {
            return false;
        };
        self.version = Some(version.to_owned());
        let server = start["accepted_connection"].is_object();
        if !self.fresh(server) {
            self.start("iperf3", &command(start, server), server);
        }
        self.on_last(|run| run.json_start(start))
    }

    fn on_last(&mut self, read: impl FnOnce(&mut Transcript)) -> bool {
        self.runs.last_mut().map(read).is_some()
    }
}

/// The command a report results from.
fn command(start: &Value, server: bool) -> String {
    let test = &start["test_start"];
    if server {
        return "iperf3 -s".to_owned();
    }
    let mut command = format!("iperf3 -c {}", start["connecting_to"]["host"].as_str().unwrap_or_default());
    let options = [
        ("duration", "-t", 0.0),
        ("num_streams", "-P", 1.0),
        ("omit", "-O", 0.0),
        ("blksize", "-l", 131_072.0),
        ("target_bitrate", "-b", 0.0),
    ];
    for (key, option, default) in options {
        if let Some(number) = test[key].as_f64().filter(|number| *number > 0.0 && *number != default) {
            command.push_str(&format!(" {option} {number}"));
        }
    }
    let is_udp = test["protocol"] == "UDP";
    command + if test["reverse"] == 1 { " -R" } else { "" } + if is_udp { " -u" } else { "" }
}

impl Transcript {
    fn json_start(&mut self, start: &Value) {
        let test = &start["test_start"];
        self.udp |= test["protocol"] == "UDP";
        self.reverse |= test["reverse"] == 1;
        self.mss_bytes =
            start["tcp_mss_default"].as_f64().or_else(|| start["tcp_mss"].as_f64()).filter(|mss| *mss > 0.0);
        for stream in start["connected"].as_array().into_iter().flatten() {
            let host = |key: &str| stream[key].as_str().unwrap_or_default();
            let port = |key: &str| stream[key].to_string();
            self.connected(host("local_host"), &port("local_port"), host("remote_host"), &port("remote_port"));
        }
    }

    fn json_interval(&mut self, interval: &Value) {
        let sum = &interval["sum"];
        if let (Some(seconds), Some(rate), false) =
            (sum["seconds"].as_f64(), sum["bits_per_second"].as_f64(), sum["omitted"] == true)
        {
            self.interval(seconds, rate);
        }
    }

    fn json_end(&mut self, end: &Value) {
        let total = |key: &str| {
            let sum = &end[key];
            Some((sum["bits_per_second"].as_f64()?, sum["bytes"].as_f64()?))
        };
        // A server prints 0 for what only its client knows.
        let is_known = |total: &(f64, f64)| !self.server || total.1 > 0.0;
        let sent = total("sum_sent").filter(is_known);
        let received = total("sum_received").or_else(|| total("sum")).filter(is_known);
        (self.sent, self.received) = (sent, received);
        self.retransmits = end["sum_sent"]["retransmits"].as_f64();
        let rtt = |stream: &Value| stream["sender"]["mean_rtt"].as_f64().filter(|rtt| *rtt > 0.0);
        self.rtt_us = end["streams"].as_array().into_iter().flatten().filter_map(rtt).reduce(f64::max);
        let longest = end["sum_received"]["end"].as_f64().or_else(|| end["sum"]["end"].as_f64());
        self.longest_seconds = longest.unwrap_or(self.longest_seconds);
    }
}
