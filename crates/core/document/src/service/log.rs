//! Log lines: for people, or one JSON object each.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use linerate_model::numbers::{bytes, rate};
use linerate_model::printable::printable;
use linerate_model::service::{Outcome, Progress, TestFacts, TestRecord};
use linerate_model::units::{ns_to_s, rate_bps};
use linerate_model::{Event, EventSink, ServerEvent, ServerReporter, SinkError, stored_name};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::live::direction;
use crate::log_rate_limit::LogRateLimit;
use crate::number::counted;
use crate::{DroppedNotice, Output, members, present, pretty};

/// Severity of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The server cannot do its work.
    Error,
    /// Something is not as it should be.
    Warn,
    /// Facts that an operator needs afterwards.
    Info,
    /// Details that help to find a fault.
    Debug,
}

/// Format of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Time, level, sentence.
    Text,
    /// One JSON object per line.
    Json,
}

/// Selection and format of the log.
#[derive(Debug, Clone, Copy)]
pub struct LogOptions {
    /// The least important level that is written.
    pub level: Level,
    /// Format of lines.
    pub format: Format,
    /// Time between two lines about running tests.
    pub progress_interval: Duration,
}

/// Announcement of dropped lines of the log.
pub fn dropped_notice(options: LogOptions) -> DroppedNotice {
    DroppedNotice::report(move |lines| {
        let sentence = format!(
            "{lines} lines of the log were dropped: they could not be written in time, or at all"
        );
        text_of(
            options.format,
            line(Level::Warn, "dropped", sentence, json!({ "lines": lines })),
        )
    })
}

/// A reporter that writes log lines.
pub fn log_reporter(options: LogOptions, output: Output) -> Box<dyn ServerReporter> {
    Box::new(LogReporter {
        log: Log { options, output },
        flood: LogRateLimit::default(),
        warnings: LogRateLimit::default(),
        progress: Progress::default(),
    })
}

#[derive(Clone)]
struct Log {
    options: LogOptions,
    output: Output,
}

struct LogReporter {
    log: Log,
    flood: LogRateLimit,
    warnings: LogRateLimit,
    /// Events since the last line about it.
    progress: Progress,
}

/// One line before it is written: the sentence, and the same as members.
struct Line {
    level: Level,
    event: &'static str,
    sentence: String,
    members: Map<String, Value>,
}

impl ServerReporter for LogReporter {
    fn open_test(&mut self) -> Result<Box<dyn EventSink>, SinkError> {
        Ok(Box::new(self.log.clone()))
    }

    fn warning(&mut self, text: &str) {
        let line = line(Level::Warn, "warning", text.to_owned(), json!({}));
        self.write_if_rare(line, |reporter| &mut reporter.warnings);
    }

    fn server_event(&mut self, event: &ServerEvent) {
        match event {
            ServerEvent::Progress(progress) => self.on_progress(progress),
            // Its line is that of `ResultStored`.
            ServerEvent::PageResult(_) => {}
            ServerEvent::Refused { .. }
            | ServerEvent::HandshakeFailed { .. }
            | ServerEvent::LoginFailed { .. } => {
                self.write_if_rare(line_of(event), |reporter| &mut reporter.flood);
            }
            _ => self.log.write(line_of(event)),
        }
    }
}

impl LogReporter {
    /// Strangers decide how often these happen. Refusals and warnings are counted apart, so that
    /// neither hides the other.
    fn write_if_rare(&mut self, line: Line, gate: impl Fn(&mut Self) -> &mut LogRateLimit) {
        let now = Instant::now();
        if let Some(number) = gate(self).take_held_back(now) {
            let what = if line.event == "warning" {
                "warnings"
            } else {
                "messages about refused clients"
            };
            let sentence = format!("{number} more {what} were left out");
            self.log.write(self::line(
                Level::Warn,
                "left_out",
                sentence,
                json!({ "messages": number }),
            ));
        }

        if gate(self).passes(now) {
            self.log.write(line);
        }
    }

    fn on_progress(&mut self, progress: &Progress) {
        self.progress.elapsed += progress.elapsed;
        for client in &progress.clients {
            match self
                .progress
                .clients
                .iter_mut()
                .find(|c| c.number == client.number)
            {
                Some(sum) => {
                    // Progress has the bytes of its period, a line those of several.
                    sum.received_bytes += client.received_bytes;
                    sum.sent_bytes += client.sent_bytes;
                }
                None => self.progress.clients.push(client.clone()),
            }
        }

        // An idle server begins its next period with its next test.
        if progress.tests == 0 {
            self.progress = Progress::default();
        } else if self.progress.elapsed >= self.log.options.progress_interval {
            let mut whole = progress.clone();
            whole.elapsed = std::mem::take(&mut self.progress.elapsed);
            whole.clients = std::mem::take(&mut self.progress.clients);
            self.log.write_progress(&whole);
        }
    }
}

impl Log {
    fn write(&self, line: Line) {
        // Levels ascend from errors to details.
        if line.level > self.options.level {
            return;
        }

        let text = text_of(self.options.format, line);
        // A log that cannot be written must not end the tests of others.
        let _ = self.output.report(text);
    }

    fn write_progress(&self, progress: &Progress) {
        let seconds = progress.elapsed.as_secs_f64();
        let sum = |bytes: fn(&linerate_model::service::ClientProgress) -> u64| {
            rate_bps(progress.clients.iter().map(bytes).sum(), seconds)
        };
        let received = sum(|c| c.received_bytes);
        let sent = sum(|c| c.sent_bytes);
        let sentence = format!(
            "{} with {} running: {} received, {} sent",
            counted(progress.tests as usize, "test"),
            counted(progress.streams as usize, "stream"),
            rate(received),
            rate(sent)
        );

        let members = json!({
            "tests": progress.tests, "streams": progress.streams,
            "received_bps": received, "sent_bps": sent,
        });
        self.write(line(Level::Info, "progress", sentence, members));

        for client in &progress.clients {
            let received = rate_bps(client.received_bytes, seconds);
            let sent = rate_bps(client.sent_bytes, seconds);
            let sentence = format!(
                "test {} of {}: {} received, {} sent",
                client.number,
                endpoint(client.peer),
                rate(received),
                rate(sent)
            );

            let members = json!({
                "test": client.number, "peer": client.peer.to_string(),
                "received_bps": received, "sent_bps": sent,
            });
            self.write(line(Level::Debug, "test_progress", sentence, members));
        }
    }
}

fn text_of(format: Format, line: Line) -> String {
    let time = Timestamp::now();
    // Clients and files are quoted in it; a line end of theirs would begin a line of its own.
    let sentence = printable(&line.sentence);

    match format {
        Format::Text => format!("{time:.3} {:<5} {sentence}\n", stored_name(line.level)),
        Format::Json => {
            let mut object = members(json!({
                "time": format!("{time:.3}"),
                "level": stored_name(line.level),
                "event": line.event,
                "message": sentence,
            }));
            object.extend(line.members);
            format!("{}\n", pretty::compact(&Value::Object(object)))
        }
    }
}

/// Lines of a single test besides its begin and end.
impl EventSink for Log {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        if let Event::Warning(text) | Event::Notice(text) | Event::Debug(text) = event {
            self.write(line(Level::Debug, "detail", text.clone(), json!({})));
        }
        Ok(())
    }
}

fn line(level: Level, event: &'static str, sentence: String, members: Value) -> Line {
    Line {
        level,
        event,
        sentence,
        members: crate::members(members),
    }
}

fn line_of(event: &ServerEvent) -> Line {
    use ServerEvent as E;

    match event {
        E::Listening { address } => {
            listening("listening", format!("listening on {address}"), *address)
        }
        E::Iperf2 { address } => {
            let sentence = format!("iperf 2: listening on {address} (TCP and UDP)");
            listening("iperf2", sentence, *address)
        }
        E::Stamp { address } => {
            let sentence = format!("STAMP: session reflector at {address} (UDP)");
            listening("stamp", sentence, *address)
        }
        E::HostKey { text } => {
            let sentence = format!("native tests: host key {text}");
            line(
                Level::Info,
                "host_key",
                sentence,
                json!({ "host_key": text }),
            )
        }
        E::Browsers { url, may_test } => {
            let sentence = if *may_test {
                format!("browsers: {url}")
            } else {
                format!("operator's page: {url}status")
            };
            let members = json!({ "url": url, "may_test": may_test });
            line(Level::Info, "browsers", sentence, members)
        }
        E::TestStarted(facts) => started(facts),
        E::TestEnded(record) => ended(record),
        E::ResultStored { peer, label, path } => result_stored(*peer, label.as_deref(), path),
        E::Refused { peer, reason } => {
            let sentence = format!("{} refused: {reason}", endpoint(*peer));
            let members = json!({ "peer": peer.to_string(), "reason": reason });
            line(Level::Warn, "refused", sentence, members)
        }
        E::LoginFailed {
            peer,
            cause,
            explanation,
        } => {
            let sentence = format!("login from {} refused: {explanation}", endpoint(*peer));
            let members = json!({ "peer": peer.to_string(), "cause": cause });
            line(Level::Warn, "login_failed", sentence, members)
        }
        E::HandshakeFailed {
            peer,
            cause,
            explanation,
        } => {
            let sentence = format!("{} started no test: {explanation}", endpoint(*peer));
            let members = json!({ "peer": peer.to_string(), "cause": cause });
            line(Level::Info, "handshake_failed", sentence, members)
        }
        E::Reloaded => {
            let sentence = "address lists, limits and tokens read again".to_owned();
            line(Level::Info, "reloaded", sentence, json!({}))
        }
        E::Stopping { signal_text } => {
            let sentence = format!("stopping: {signal_text}");
            let members = json!({ "signal": signal_text });
            line(Level::Info, "stopping", sentence, members)
        }
        E::Progress(_) | E::PageResult(_) => {
            line(Level::Debug, "progress", String::new(), json!({}))
        }
    }
}

fn listening(event: &'static str, sentence: String, address: SocketAddr) -> Line {
    let members = json!({ "address": address.to_string() });
    line(Level::Info, event, sentence, members)
}

fn result_stored(peer: SocketAddr, label: Option<&str>, path: &str) -> Line {
    let client = endpoint(peer);
    let sentence = match label {
        Some(label) => format!("result of {client} ({label}): {path}"),
        None => format!("result of {client}: {path}"),
    };
    let members = json!({ "peer": peer.to_string(), "label": label, "path": path });
    line(Level::Info, "result", sentence, members)
}

fn started(facts: &TestFacts) -> Line {
    let sentence = format!("test {} started: {}", facts.number, description(facts));
    let mut members = members_of(facts);
    members.insert("running_beside".into(), facts.running_beside.into());
    line(
        Level::Info,
        "test_started",
        sentence,
        Value::Object(members),
    )
}

fn ended(record: &TestRecord) -> Line {
    let facts = &record.facts;
    let seconds = ns_to_s(record.duration_ns);

    let mut sentence = format!("test {} ", facts.number);
    let (level, outcome, reason) = match &record.outcome {
        Outcome::Complete => (Level::Info, "complete", None),
        Outcome::Partial { reason } => (Level::Warn, "partial", Some(reason)),
    };
    let word = if reason.is_some() {
        "ended early"
    } else {
        "finished"
    };
    let _ = write!(sentence, "{word}: {}, {seconds:.2} s", description(facts));

    for (amount, what) in [
        (record.received_bytes, "received"),
        (record.sent_bytes, "sent"),
    ] {
        if amount > 0 {
            let _ = write!(
                sentence,
                ", {} {what} ({})",
                bytes(amount as f64),
                rate(rate_bps(amount, seconds))
            );
        }
    }

    if record.ran_beside_max > 0 {
        let others = counted(record.ran_beside_max as usize, "other test");
        let _ = write!(sentence, ", up to {others} at the same time");
    }

    if let Some(reason) = reason {
        let _ = write!(sentence, "; partial result: {reason}");
    }

    let mut members = members_of(facts);
    members.extend(present(json!({
        "cookie": record.cookie,
        "received_bytes": record.received_bytes,
        "sent_bytes": record.sent_bytes,
        "seconds": seconds,
        "ran_beside_max": record.ran_beside_max,
        "outcome": outcome,
        "reason": reason,
    })));

    line(level, "test_ended", sentence, Value::Object(members))
}

fn description(facts: &TestFacts) -> String {
    let mut text = format!(
        "{}, {} {}, {}",
        endpoint(facts.peer),
        stored_name(facts.transport).to_uppercase(),
        direction(facts.direction),
        counted(facts.streams as usize, "stream")
    );
    if let Some(user) = &facts.user {
        let _ = write!(text, ", user {user}");
    }

    text
}

fn members_of(facts: &TestFacts) -> Map<String, Value> {
    present(json!({
        "test": facts.number,
        "peer": facts.peer.to_string(),
        "protocol": facts.transport,
        "direction": facts.direction,
        "streams": facts.streams,
        "user": facts.user,
    }))
}

fn endpoint(peer: SocketAddr) -> String {
    format!("{} port {}", peer.ip(), peer.port())
}
