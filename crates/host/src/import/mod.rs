//! Pasted text: output of commands, in any mixture, as snapshots.
//!
//! Blocks are recognised by their content, so a pasted terminal session works. A line `### host=NAME cmd=COMMAND` or a
//! shell prompt names host and command. Several texts that name no host are of one host unless they contradict each
//! other. Unknown lines are reported with their number and are never an error.

mod blocks;
mod ethtool;
mod ethtool_headings;
mod hosts;
mod join;
mod lines;
mod lspci;
mod network;
mod notes;
mod ovs;
mod paste;
mod reports;
mod ss;
mod system;

use std::collections::BTreeMap;

use linerate_model::snapshot::{Snapshot, Source};

use blocks::Block;
use join::Loose;
use reports::Runs;
pub use reports::{ReadTests, TestOutput, TestRun};

/// Bytes of one file that are read; more is cut.
pub const TEXT_BYTES_MAX: usize = 16 << 20;
/// Lines one file reports as not understood.
const UNREAD_MAX: usize = 10_000;

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
    import_all(&[(name, text)], &reports::none)
}

/// Reads texts, each with the name of its file. Several texts that name no host describe the same one, unless they
/// contradict each other.
#[must_use]
pub fn import_all(texts: &[(&str, &str)], read_tests: ReadTests<'_>) -> Imported {
    let mut imported = Imported::default();
    let mut pasted = Vec::new();
    for (name, text) in texts {
        let text = cut(text, TEXT_BYTES_MAX);
        match saved(text) {
            Some(snapshot) => {
                imported.snapshots.push(snapshot);
                (imported.blocks, imported.understood) = (imported.blocks + 1, imported.understood + 1);
            }
            None => pasted.push((*name, paste::lines(text))),
        }
    }
    let texts: Vec<(&str, Vec<Block<'_>>)> = pasted.iter().map(|(name, lines)| (*name, blocks::split(lines))).collect();
    let mut hosts: BTreeMap<String, Draft> = BTreeMap::new();
    for ((name, blocks), host) in texts.iter().zip(hosts::of(&texts, read_tests)) {
        read_blocks((name, &host), blocks, read_tests, &mut hosts, &mut imported);
    }
    // Text around the outputs of named hosts is no host of its own.
    imported.snapshots.extend(hosts.into_values().filter(|draft| draft.understood).map(Draft::finish));
    imported
}

fn read_blocks(
    (name, default_host): (&str, &str),
    blocks: &[Block<'_>],
    read_tests: ReadTests<'_>,
    hosts: &mut BTreeMap<String, Draft>,
    imported: &mut Imported,
) {
    let before = imported.unread.len();
    for block in blocks {
        let host = block.host.filter(|host| *host != "note").unwrap_or(default_host);
        let draft = hosts.entry(host.to_owned()).or_insert_with(|| Draft::new(host));
        imported.blocks += 1;
        let understood = read_block(draft, block, read_tests, &mut |number, line| {
            imported.unread.push(format!("{name}:{number}: {line}"));
        });
        imported.understood += usize::from(understood);
        draft.understood |= understood;
        imported.unread.truncate(UNREAD_MAX + before);
    }
}

/// A snapshot that linerate itself saved.
fn saved(text: &str) -> Option<Snapshot> {
    text.trim_start().starts_with('{').then(|| serde_json::from_str::<Snapshot>(text).ok())?
}

/// A snapshot in the making, with what can only be attached once everything was read.
struct Draft {
    snapshot: Snapshot,
    loose: Loose,
    runs: Runs,
    /// At least one line was understood.
    understood: bool,
}

impl Draft {
    fn new(host: &str) -> Self {
        Self {
            snapshot: Snapshot::new(host, Source::Import),
            loose: Loose::default(),
            runs: Runs::default(),
            understood: false,
        }
    }

    fn finish(mut self) -> Snapshot {
        self.runs.finish(&mut self.snapshot);
        self.loose.attach(&mut self.snapshot);
        self.snapshot
    }
}

/// Passes every line to the importers until one parses it. Returns whether any line was parsed.
fn read_block(
    draft: &mut Draft,
    block: &Block<'_>,
    read_tests: ReadTests<'_>,
    unread: &mut dyn FnMut(usize, &str),
) -> bool {
    let mut ethtool = ethtool::Reader::new(block);
    let mut network = network::Reader::new(block);
    let mut lspci = lspci::Reader::new(block);
    let mut ovs = ovs::Reader::default();
    let mut system = system::Reader::new(block);
    let mut ss = ss::Reader::default();
    let mut notes = notes::Reader::new(block);
    let tests = draft.runs.read(block, read_tests);
    let mut any = tests.is_command;
    for reason in &tests.refused {
        unread(block.lines.first().map_or(0, |(number, _)| *number), reason);
    }
    for (index, (number, line)) in block.lines.iter().enumerate() {
        if tests.read.contains(&index) {
            any |= tests.refused.is_empty();
            continue;
        }
        let snapshot = &mut draft.snapshot;
        let understood = system.lscpu(snapshot, line)
            || ethtool.line(snapshot, line)
            || ss.line(line)
            || network.line(snapshot, line)
            || lspci.line(&mut draft.loose, line)
            || ovs.line(line)
            || system.line(snapshot, &mut draft.loose, line)
            || notes.line(snapshot, line);
        any |= understood;
        if !understood && !line.trim().is_empty() && !is_decoration(line) {
            unread(*number, line);
        }
    }
    ss.finish(&mut draft.snapshot);
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
