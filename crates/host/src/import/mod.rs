//! Pasted text: output of commands, in any mixture, as snapshots.
//!
//! Blocks are recognised by their content, so a pasted terminal session works. A line `### host=NAME cmd=COMMAND` or a
//! shell prompt names host and command; without either, the file is the host. Unknown lines are reported
//! with their number and are never an error.

mod blocks;
mod ethtool;
mod iperf;
mod join;
mod lines;
mod lspci;
mod network;
mod notes;
mod ovs;
mod system;

use std::collections::BTreeMap;

use linerate_model::snapshot::{Snapshot, Source};

use blocks::Block;
use iperf::Transcripts;
use join::Loose;

/// Bytes of one file that are read; more is cut.
pub const TEXT_BYTES_MAX: usize = 16 << 20;
/// Lines one file reports as not understood.
const UNREAD_MAX: usize = 200;

/// What a text contained.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Imported {
    /// One snapshot per host, in the order of the names.
    pub snapshots: Vec<Snapshot>,
    /// Blocks of output in the text.
    pub blocks: usize,
    /// Blocks of which at least one line was understood.
    pub understood: usize,
    /// Unknown lines: file, number and text.
    pub unread: Vec<String>,
}

/// Reads one text. `name` is the host where the text names none.
#[must_use]
pub fn import(name: &str, text: &str) -> Imported {
    let text = cut(text, TEXT_BYTES_MAX);
    if let Some(snapshot) = saved(text) {
        return Imported { snapshots: vec![snapshot], blocks: 1, understood: 1, unread: Vec::new() };
    }
    let blocks = blocks::split(text);
    let default_host = only_host(&blocks).unwrap_or(name).to_owned();
    let mut imported = Imported::default();
    let mut hosts: BTreeMap<String, Draft> = BTreeMap::new();
    for block in &blocks {
        let host = match block.host {
            Some("note") | None => default_host.as_str(),
            Some(host) => host,
        };
        let draft = hosts.entry(host.to_owned()).or_insert_with(|| Draft::new(host));
        imported.blocks += 1;
        let before = imported.unread.len();
        let understood = read_block(draft, block, &mut |number, line| {
            imported.unread.push(format!("{name}:{number}: {line}"));
        });
        imported.understood += usize::from(understood);
        imported.unread.truncate(UNREAD_MAX.max(before));
    }
    imported.snapshots = hosts.into_values().map(Draft::finish).collect();
    imported
}

/// A snapshot that linerate itself saved.
fn saved(text: &str) -> Option<Snapshot> {
    text.trim_start().starts_with('{').then(|| serde_json::from_str::<Snapshot>(text).ok())?
}

/// The host the observations of a text belong to: the only one it names.
fn only_host<'a>(blocks: &[Block<'a>]) -> Option<&'a str> {
    let mut named = blocks.iter().filter_map(|block| block.host).filter(|host| *host != "note");
    let first = named.next()?;
    named.all(|host| host == first).then_some(first)
}

/// A snapshot in the making, with what can only be attached once everything was read.
struct Draft {
    snapshot: Snapshot,
    loose: Loose,
    transcripts: Transcripts,
}

impl Draft {
    fn new(host: &str) -> Self {
        Self {
            snapshot: Snapshot::new(host, Source::Import),
            loose: Loose::default(),
            transcripts: Transcripts::default(),
        }
    }

    fn finish(mut self) -> Snapshot {
        self.transcripts.finish(&mut self.snapshot);
        self.loose.attach(&mut self.snapshot);
        self.snapshot
    }
}

/// Passes every line to the importers until one parses it. Returns whether any line was parsed.
fn read_block(draft: &mut Draft, block: &Block<'_>, unread: &mut dyn FnMut(usize, &str)) -> bool {
    let mut ethtool = ethtool::Reader::new(block);
    let mut network = network::Reader::new(block);
    let mut lspci = lspci::Reader::new(block);
    let mut ovs = ovs::Reader::default();
    let mut system = system::Reader::new(block);
    let mut notes = notes::Reader::new(block);
    let mut any = draft.transcripts.command(block);
    for (number, line) in &block.lines {
        let snapshot = &mut draft.snapshot;
        let understood = ethtool.line(snapshot, line)
            || draft.transcripts.line(line)
            || network.line(snapshot, line)
            || lspci.line(&mut draft.loose, line)
            || ovs.line(line)
            || system.line(snapshot, &mut draft.loose, line)
            || notes.line(snapshot, &mut draft.transcripts, line);
        any |= understood;
        if !understood && !line.trim().is_empty() && !is_decoration(line) {
            unread(*number, line);
        }
    }
    ovs.finish(&mut draft.snapshot);
    system.finish(&mut draft.snapshot, &mut draft.loose);
    notes.finish(&mut draft.snapshot);
    any
}

/// Rules and dots between parts of an output.
fn is_decoration(line: &str) -> bool {
    line.trim().chars().all(|c| matches!(c, '-' | '.' | ' ' | '=' | '_'))
}

/// The beginning of a text, at most `max` bytes, cut between characters.
fn cut(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let mut end = max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
