//! Reports of other programs as events: text in, tests out.
//!
//! A text may hold any number of reports of any kind, one behind the other, with other lines
//! between them. What a program writes for "not known" becomes absent.

mod document;
mod flent;
mod numbers;
mod page;
mod path;
mod plausible;
mod speed_test;
mod text;
mod time;

use std::collections::HashMap;
use std::io::Read as _;

use flate2::read::GzDecoder;
use linerate_iperf2::report::reader as iperf2;
use linerate_iperf3::report::reader as iperf3;
use linerate_model::Event;
use linerate_model::event::Endpoint;
use linerate_model::record::{Import, Origin};
use linerate_store::keys;
use serde_json::{Map, Value};
use thiserror::Error;

use document::Document;
pub use path::{ImportedPath, PathTest};
pub use text::Command;
use text::{Taken, TextTest};

/// Prefix of the schema names of all versions.
const RUN_SCHEMA_PREFIX: &str = "linerate.run/";

/// Longest text that is read.
pub const TEXT_BYTES_MAX: usize = 64 << 20;

/// Contents of a text.
#[derive(Debug, Default)]
pub struct Contents {
    /// Tests that other programs reported, each once.
    pub tests: Vec<Imported>,
    /// Tests of whole paths, each once.
    pub paths: Vec<ImportedPath>,
    /// Records of this program, as JSON.
    pub records: Vec<String>,
    /// Reports of a test that the text contains several times, beyond the first.
    pub repeated: usize,
    /// Numbers of the lines, from 1 on, that belong to no report.
    pub unread: Vec<usize>,
    /// Numbers of those that belong to one and are about its host as well.
    pub of_host: Vec<usize>,
    /// Release of iperf3 that the text names, beside a test or alone.
    pub iperf3_version: Option<String>,
    /// Reports that are not read, because of values that cannot be: which, and why.
    pub refused: Vec<String>,
}

/// One test as one end reported it.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// Which program, and the document.
    pub origin: Origin,
    /// The end that wrote the report.
    pub endpoint: Endpoint,
    /// Name of its host.
    pub host_name: Option<String>,
    /// Start of the test in ms since 1970.
    pub started_unix_ms: Option<u64>,
    /// The test. Without `Finished` or `Failed` at the end the report is cut off.
    pub events: Vec<Event>,
    /// Equal for every report of this test by this end, whole, cut off or formatted again; the key
    /// of the origin's import.
    pub source_key: String,
    /// The source key of the other end's report.
    pub twin_key: Option<String>,
    /// The report as it was read.
    pub source: String,
}

impl Imported {
    /// True if the report is cut off.
    pub fn is_partial(&self) -> bool {
        !matches!(self.events.last(), Some(Event::Finished | Event::Failed(_)))
    }
}

/// A text that is not read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ImportError {
    /// It is too long.
    #[error("longer than {} MiB", TEXT_BYTES_MAX >> 20)]
    TooLong,
    /// A compressed file that ends early or is no gzip.
    #[error("a gzip file that is damaged")]
    Damaged,
    /// Its characters have two bytes each.
    #[error(
        "it is UTF-16, as `>` of Windows PowerShell writes it; convert it first: iconv -f UTF-16 \
         -t UTF-8, or `| Out-File -Encoding utf8` in PowerShell"
    )]
    Utf16,
    /// All of its reports have values that cannot be.
    #[error("{0}")]
    Refused(String),
    /// It contains nothing known.
    #[error(
        "no report of iperf3, iperf 2, Flent, a speed test (JSON) or linerate test --json, and no \
         record or page of one"
    )]
    Unknown,
}

/// The text of a file, which may be compressed (gzip). Bytes that are no characters are replaced.
///
/// # Errors
/// When it is UTF-16, or compressed and damaged or too long.
pub fn decode(bytes: &[u8]) -> Result<String, ImportError> {
    const GZIP: [u8; 2] = [0x1f, 0x8b];

    if !bytes.starts_with(&GZIP) {
        return decode_text(bytes);
    }

    // A small file can expand without bound; one byte above the limit shows it.
    let mut text = Vec::new();
    GzDecoder::new(bytes)
        .take(TEXT_BYTES_MAX as u64 + 1)
        .read_to_end(&mut text)
        .map_err(|_| ImportError::Damaged)?;
    if text.len() > TEXT_BYTES_MAX {
        return Err(ImportError::TooLong);
    }

    decode_text(&text)
}

fn decode_text(bytes: &[u8]) -> Result<String, ImportError> {
    let has_mark = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    let start = bytes.get(..bytes.len().min(64)).unwrap_or_default();
    // Text that is mostly ASCII has a zero in each of its characters of two bytes.
    let zeros = start.iter().filter(|byte| **byte == 0).count();
    if has_mark || (zeros > 0 && zeros >= start.len() / 2) {
        return Err(ImportError::Utf16);
    }

    Ok(String::from_utf8_lossy(bytes).into_owned())
}

/// Reads all reports in a text. `name` is the name of its file; `utc_offset_s` is the offset of
/// local time from UTC at a local time in seconds since 1970, for times without an offset.
///
/// # Errors
/// When the text is too long or contains no report.
pub fn import(
    name: Option<&str>,
    text: &str,
    utc_offset_s: &dyn Fn(i64) -> i64,
) -> Result<Contents, ImportError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(ImportError::TooLong);
    }

    let contents = Reader::new(name, utc_offset_s).read(text);

    let is_empty =
        contents.tests.is_empty() && contents.paths.is_empty() && contents.records.is_empty();
    match contents.refused.first() {
        // Reports that can be read count although others beside them cannot.
        _ if !is_empty => Ok(contents),
        Some(reason) => Err(ImportError::Refused(reason.clone())),
        None => Err(ImportError::Unknown),
    }
}

/// Reads the output of a command, which can have lines of other programs. Without the command its
/// options are not known.
pub fn import_output(command: Option<&Command>, output: &str) -> Contents {
    let mut reader = Reader::new(None, &|_| 0);
    if let Some(command) = command {
        reader.texts.command(command);
    }
    reader.read(output)
}

struct Reader<'a> {
    name: Option<&'a str>,
    contents: Contents,
    /// Position in the contents by source key.
    known: HashMap<String, usize>,
    stream: Option<EventStream>,
    csv: iperf2::Rows<'a>,
    texts: text::Texts,
    utc_offset_s: &'a dyn Fn(i64) -> i64,
    /// Number of the line that is read.
    line_number: usize,
}

/// The lines of `--json-stream` of one test, put together.
#[derive(Default)]
struct EventStream {
    members: Map<String, Value>,
    intervals: Vec<Value>,
    source: String,
}

impl<'a> Reader<'a> {
    fn new(name: Option<&'a str>, utc_offset_s: &'a dyn Fn(i64) -> i64) -> Self {
        Self {
            name,
            contents: Contents::default(),
            known: HashMap::new(),
            stream: None,
            csv: iperf2::Rows::new(utc_offset_s),
            texts: text::Texts::default(),
            utc_offset_s,
            line_number: 1,
        }
    }

    fn read(mut self, text: &str) -> Contents {
        // `Out-File -Encoding utf8` of Windows PowerShell writes a byte order mark.
        let text = numbers::without_nan(text.strip_prefix('\u{feff}').unwrap_or(text));
        let mut rest = text.as_ref();
        if page::is_page(rest) {
            // A page repeats its records as tables, which are not read.
            self.contents.records = page::records(rest);
            rest = "";
        }

        while !rest.is_empty() {
            let (read, behind) = rest.split_at(self.next(rest));
            self.line_number += read.matches('\n').count();
            rest = behind;
        }

        self.finish()
    }

    /// Reads the line or the document with which the text begins; returns its length.
    fn next(&mut self, text: &str) -> usize {
        let blank = text.len() - text.trim_start().len();
        if blank > 0 {
            return blank;
        }
        if is_list_mark(text) {
            return 1;
        }

        if text.starts_with('{')
            && let Some(document) = document::first(text)
        {
            let source = &text[..document.bytes];
            // An unknown document is read by lines: it may hold text of a report.
            if self.document(&document, source.trim_end()) {
                return document.bytes;
            }
        }

        let line_bytes = text.find('\n').unwrap_or(text.len());
        let line = text[..line_bytes].trim_end();
        self.line(line, line_bytes < text.len());

        // A document may follow directly behind the cut end of another one.
        document::next_start(text, line_bytes).unwrap_or((line_bytes + 1).min(text.len()))
    }

    fn line(&mut self, line: &str, is_whole: bool) {
        if self.csv.line(line, is_whole) || is_rule(line) {
            return;
        }

        match self.texts.line(line) {
            Taken::Yes => {}
            Taken::AlsoOfHost => self.contents.of_host.push(self.line_number),
            Taken::No => self.contents.unread.push(self.line_number),
        }
    }

    /// Returns whether it is a known document.
    fn document(&mut self, document: &Document, source: &str) -> bool {
        let value = &document.value;
        let is_whole = document.cut_bytes.is_none();

        match (value["event"].as_str(), value.get("data")) {
            (Some(event), Some(data)) if is_whole => return self.stream_line(event, data, source),
            _ => self.end_stream(),
        }

        // Its reader names the missing part of a record that is cut off or of another version.
        if value["schema"]
            .as_str()
            .is_some_and(|schema| schema.starts_with(RUN_SCHEMA_PREFIX))
        {
            self.contents.records.push(source.to_owned());
            return true;
        }

        if is_whole && (self.path(value) || speed_test::is_progress(value)) {
            return true;
        }

        let is_report = iperf3::is_report(value) && (is_whole || iperf3::is_started(value));
        if is_report {
            self.iperf3("iperf3-json", value, source, document.cut_bytes);
        }

        is_report
    }

    fn stream_line(&mut self, event: &str, data: &Value, source: &str) -> bool {
        // A client without a connection writes an error and no start.
        if event == "start" || (event == "error" && self.stream.is_none()) {
            self.end_stream();
            self.stream = Some(EventStream::default());
        }

        let Some(stream) = &mut self.stream else {
            return false;
        };
        stream.source.push_str(source);
        stream.source.push('\n');

        match event {
            "interval" => stream.intervals.push(data.clone()),
            _ => {
                stream.members.insert(event.to_owned(), data.clone());
            }
        }

        if event == "end" {
            self.end_stream();
        }

        true
    }

    fn end_stream(&mut self) {
        let Some(EventStream {
            mut members,
            intervals,
            source,
        }) = self.stream.take()
        else {
            return;
        };
        // A failure may have neither.
        for name in if members.contains_key("error") {
            &["start", "end"][..]
        } else {
            &[]
        } {
            members
                .entry(*name)
                .or_insert_with(|| Value::Object(Map::new()));
        }

        members.insert("intervals".to_owned(), intervals.into());
        self.iperf3("iperf3-json-stream", &Value::Object(members), &source, None);
    }

    fn iperf3(&mut self, format: &str, value: &Value, source: &str, cut_bytes: Option<usize>) {
        if iperf3::is_idle_server(value) {
            return;
        }

        let report = iperf3::report(value, cut_bytes.is_some());
        let server_report = value
            .get("server_output_json")
            .filter(|server| iperf3::is_report(server));
        let mut notes = report.notes;

        if let Some(cut_bytes) = cut_bytes {
            notes.push(format!(
                "the report is cut off: its last {cut_bytes} bytes were not read"
            ));
        }

        let sha256 = document::sha256(value);
        // Both ends report the cookie of the test, so each finds the report of the other.
        let (own, twin_key) = keys_of(report.cookie.as_deref(), report.endpoint);
        let source_key = own.unwrap_or_else(|| sha256.clone());

        self.add(Imported {
            origin: self.origin(
                "iperf3",
                report.version,
                format,
                (sha256, &source_key),
                notes,
            ),
            source_key,
            endpoint: report.endpoint,
            host_name: report.host_name,
            started_unix_ms: report.started_unix_ms,
            events: report.events,
            twin_key,
            source: source.to_owned(),
        });
        // With `--get-server-output` the client's report contains the server's (iperf3(1)).
        // The parser bounds the depth of a document, and so this recursion.
        if let Some(server) = server_report {
            self.iperf3(format, server, &server.to_string(), None);
        }
    }

    /// Returns whether it is a report of a path.
    fn path(&mut self, value: &Value) -> bool {
        let test = match path::read(value)
            .or_else(|| speed_test::read(value))
            .or_else(|| flent::read(value))
        {
            None => return false,
            Some(Ok(test)) => test,
            Some(Err(reason)) => {
                self.contents
                    .refused
                    .push(format!("the report of a path is not read: {reason}"));
                return true;
            }
        };

        let source_key = document::sha256(value);
        if self
            .contents
            .paths
            .iter()
            .any(|known| known.source_key == source_key)
        {
            self.contents.repeated += 1;
            return true;
        }

        let hash_and_key = (source_key.clone(), source_key.as_str());
        let origin = self.origin(test.tool, None, test.format, hash_and_key, Vec::new());
        self.contents.paths.push(ImportedPath {
            origin,
            test,
            source_key,
        });

        true
    }

    fn origin(
        &self,
        tool: &str,
        version: Option<String>,
        format: &str,
        (sha256, key): (String, &str),
        notes: Vec<String>,
    ) -> Origin {
        let import = Import {
            name: self.name.map(str::to_owned),
            key: Some(key.to_owned()),
            notes,
            format: format.to_owned(),
            sha256,
        };
        Origin {
            tool: tool.to_owned(),
            version,
            imported: Some(import),
            ..Origin::default()
        }
    }

    /// Keeps one report of each test: the longest, and a whole one before one that is cut off.
    fn add(&mut self, imported: Imported) {
        if let Err(reason) = plausible::check(&imported.events) {
            self.contents.refused.push(format!(
                "the report of {} is not read: {reason}",
                imported.origin.tool
            ));
            return;
        }

        let tests = &mut self.contents.tests;
        match self
            .known
            .get(&imported.source_key)
            .and_then(|at| tests.get_mut(*at))
        {
            Some(known) => {
                self.contents.repeated += 1;
                let length = |test: &Imported| (test.events.len(), test.source.len());
                let is_longer = length(&imported) > length(known);
                if is_longer || (known.is_partial() && !imported.is_partial()) {
                    *known = imported;
                }
            }
            None => {
                self.known.insert(imported.source_key.clone(), tests.len());
                tests.push(imported);
            }
        }
    }

    fn finish(mut self) -> Contents {
        self.end_stream();
        for run in self.csv.take_runs() {
            // Every copy of the report has its first row, also one that is cut off.
            let key = keys::sha256(run.first_row().as_bytes());
            let sha256 = keys::sha256(run.source().as_bytes());
            let origin = self.origin("iperf", None, "iperf2-csv", (sha256, &key), run.notes());
            self.add(Imported {
                origin,
                endpoint: run.endpoint(),
                host_name: None,
                started_unix_ms: run.started_unix_ms(),
                events: run.events(),
                source_key: key,
                twin_key: None,
                source: run.source(),
            });
        }

        self.contents.iperf3_version = self.texts.iperf3_version.take();
        for test in self.texts.take_tests() {
            self.text(&test);
        }

        self.contents
    }

    fn text(&mut self, test: &TextTest) {
        let opening = &test.opening;
        let (own, twin_key) = keys_of(opening.cookie.as_deref(), test.endpoint());
        let source_key = own.unwrap_or_else(|| keys::sha256(test.key_text().as_bytes()));
        let sha256 = keys::sha256(test.source.as_bytes());
        let format = format!("{}-text", test.tool_name());
        let note = "the values are those that were printed, with three digits";

        let imported = Imported {
            origin: self.origin(
                test.tool_name(),
                opening.version.clone(),
                &format,
                (sha256, &source_key),
                vec![note.to_owned()],
            ),
            endpoint: test.endpoint(),
            host_name: opening.host_name.clone(),
            started_unix_ms: test.started_unix_ms(self.utc_offset_s),
            events: test.events(self.utc_offset_s),
            source_key,
            twin_key,
            source: test.source.clone(),
        };
        self.add(imported);
    }
}

/// The key of the report of an end, and that of the other end, by the cookie of the test.
fn keys_of(cookie: Option<&str>, endpoint: Endpoint) -> (Option<String>, Option<String>) {
    let (own, other) = match endpoint {
        Endpoint::Client => ("client", "server"),
        Endpoint::Server => ("server", "client"),
    };
    let key = |role: &str| Some(format!("iperf3:{}:{role}", cookie?));
    (key(own), key(other))
}

/// A bracket or a comma of a list of documents.
fn is_list_mark(text: &str) -> bool {
    match text.as_bytes() {
        [b'[' | b',', rest @ ..] => rest.trim_ascii_start().starts_with(b"{"),
        [b']', rest @ ..] => {
            rest.is_empty() || rest.starts_with(b"\n") || rest.starts_with(b"\r\n")
        }
        _ => false,
    }
}

/// A line between the parts of a report.
fn is_rule(line: &str) -> bool {
    line.chars()
        .all(|c| matches!(c, '-' | '.' | ' ' | '=' | '_'))
}
