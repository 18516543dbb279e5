//! Pasted text: output of commands, in any mixture, as snapshots.
//!
//! Blocks are recognised by their content, so a pasted terminal session works. A line
//! `### host=NAME cmd=COMMAND` or a shell prompt names host and command. Several texts that name no
//! host are of one host unless they contradict each other. Unknown lines are reported with their
//! number and are never an error.

mod annotations;
mod attribute;
mod bonding;
mod documents;
mod ethtool;
mod ethtool_headings;
mod hops;
mod hosts;
mod kernel_log;
mod lines;
mod load;
mod lshw;
mod lspci;
mod netstat;
mod network;
mod numactl;
mod ovs;
mod ping;
mod prompt;
mod reports;
mod sections;
mod ss;
mod subjects;
mod sysfs;
mod system;
mod tc;
mod wireless;

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::snapshot::{Snapshot, Source};

use attribute::UnattributedFacts;
use documents::Documents;
use reports::Runs;
pub use reports::{ReadTests, TestOutput, TestRun};
use sections::Block;

/// Bytes of one file that are read; more is cut.
pub const TEXT_BYTES_MAX: usize = 16 << 20;
/// Lines of one file that are kept because they were not understood; further ones are counted.
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
    /// Unknown lines: file, number and text. Of a file with very many, the first.
    pub unread: Vec<String>,
    /// How many lines are unknown.
    pub unread_count: usize,
    /// Prefixes of the rules that unknown lines concern: `QD`.
    pub unread_subjects: BTreeSet<&'static str>,
}

/// Reads the lines of one kind of output.
trait LineReader {
    /// Reads a line; returns whether it was understood.
    fn line(&mut self, snapshot: &mut Snapshot, line: &str) -> bool;

    /// Records what is known at the end of the block.
    fn finish(&mut self, _: &mut Snapshot) {}
}

/// Reads one text. `name` is the host where the text names none.
#[must_use]
pub fn import(name: &str, text: &str) -> Imported {
    import_all(&[(name, text)], &reports::none)
}

/// Reads texts, each with the name of its file. Several texts that name no host describe the same
/// one, unless they contradict each other.
#[must_use]
pub fn import_all(texts: &[(&str, &str)], read_tests: ReadTests<'_>) -> Imported {
    let mut imported = Imported::default();
    let mut pasted = Vec::new();

    for (name, text) in texts {
        let text = cut(text, TEXT_BYTES_MAX);
        match saved(text) {
            Some(snapshot) => {
                imported.snapshots.push(snapshot);
                (imported.blocks, imported.understood) =
                    (imported.blocks + 1, imported.understood + 1);
            }
            None => pasted.push((*name, prompt::lines(text))),
        }
    }

    let texts: Vec<(&str, Vec<Block<'_>>)> = pasted
        .iter()
        .map(|(name, lines)| (*name, sections::split(lines)))
        .collect();
    let mut hosts: BTreeMap<String, Draft> = BTreeMap::new();
    for ((name, blocks), host) in texts.iter().zip(hosts::of(&texts, read_tests)) {
        read_blocks((name, &host), blocks, read_tests, &mut hosts, &mut imported);
    }

    // Text around the outputs of named hosts is no host of its own.
    imported.snapshots.extend(
        hosts
            .into_values()
            .filter(|draft| draft.understood)
            .map(Draft::finish),
    );
    imported
}

fn read_blocks(
    (name, default_host): (&str, &str),
    blocks: &[Block<'_>],
    read_tests: ReadTests<'_>,
    hosts: &mut BTreeMap<String, Draft>,
    imported: &mut Imported,
) {
    let most = imported.unread.len().saturating_add(UNREAD_MAX);
    for block in blocks {
        let host = block
            .host
            .filter(|host| *host != "note")
            .unwrap_or(default_host);
        let draft = hosts
            .entry(host.to_owned())
            .or_insert_with(|| Draft::new(host));
        imported.blocks += 1;

        let understood = read_block(draft, block, read_tests, &mut |number, line| {
            imported.unread_count = imported.unread_count.saturating_add(1);
            imported.unread_subjects.extend(subjects::of(block, line));
            if imported.unread.len() < most {
                imported.unread.push(format!("{name}:{number}: {line}"));
            }
        });
        imported.understood += usize::from(understood);
        draft.understood |= understood;
    }
}

/// A snapshot that linerate itself saved.
fn saved(text: &str) -> Option<Snapshot> {
    text.trim_start()
        .starts_with('{')
        .then(|| serde_json::from_str::<Snapshot>(text).ok())?
}

/// A snapshot in the making, with what can only be attached once everything was read.
struct Draft {
    snapshot: Snapshot,
    loose: UnattributedFacts,
    runs: Runs,
    /// At least one line was understood.
    understood: bool,
}

impl Draft {
    fn new(host: &str) -> Self {
        Self {
            snapshot: Snapshot::new(host, Source::Import),
            loose: UnattributedFacts::default(),
            runs: Runs::default(),
            understood: false,
        }
    }

    fn finish(mut self) -> Snapshot {
        self.runs.finish(&mut self.snapshot);
        tc::hierarchies(&mut self.snapshot);
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
    let mut tools = tools(block);
    let mut ethtool = ethtool::Reader::new(block);
    let mut network = network::Reader::default();
    let mut tc = tc::Reader::new(block);
    let mut lspci = lspci::Reader::new(block);
    let mut ovs = ovs::Reader::default();
    let mut system = system::Reader::new(block);
    let mut ss = ss::Reader::default();
    let mut notes = annotations::Reader::new(block);
    let tests = draft.runs.read(block, read_tests);
    let mut any = tests.is_command;

    for reason in &tests.refused {
        unread(block.lines.first().map_or(0, |(number, _)| *number), reason);
    }

    let documents = Documents::of(block);
    let mut lines = block.lines.iter().enumerate();
    while let Some((index, (number, line))) = lines.next() {
        if tests.read.contains(&index) {
            any |= tests.refused.is_empty();
            continue;
        }

        if let Some(count) = read_document(draft, &documents, index) {
            any = true;
            lines.by_ref().take(count.saturating_sub(1)).for_each(drop);
            continue;
        }

        let snapshot = &mut draft.snapshot;
        let understood = tools.iter_mut().any(|reader| reader.line(snapshot, line))
            || system.lscpu(snapshot, line)
            || ethtool.line(snapshot, line)
            || ss.line(line)
            || network.line(snapshot, line)
            || tc.line(snapshot, line)
            || lspci.line(&mut draft.loose, line)
            || ovs.line(line)
            || system.line(snapshot, &mut draft.loose, line)
            || notes.line(snapshot, line);
        any |= understood;

        if !understood && !line.trim().is_empty() && !is_decoration(line) {
            unread(*number, line);
        }
    }

    tools
        .iter_mut()
        .for_each(|reader| reader.finish(&mut draft.snapshot));
    ss.finish(&mut draft.snapshot);
    ovs.finish(&mut draft.snapshot);
    system.finish(&mut draft.snapshot, &mut draft.loose);
    notes.finish(&mut draft.snapshot);

    any
}

/// Reads the JSON that begins in a line; returns the number of its lines.
fn read_document(draft: &mut Draft, documents: &Documents, line: usize) -> Option<usize> {
    let (document, count) = documents.at(line)?;
    hops::json(&mut draft.snapshot, &document).then_some(count)
}

/// Readers that need nothing but the snapshot.
fn tools<'a>(block: &Block<'a>) -> [Box<dyn LineReader + 'a>; 10] {
    [
        Box::new(bonding::Reader::new(block)),
        Box::new(ping::Reader::new(block)),
        Box::new(hops::Reader::new(block)),
        Box::new(load::Reader::new(block)),
        Box::new(kernel_log::Reader::new(block)),
        Box::new(lshw::Reader::new(block)),
        Box::new(wireless::Reader::new(block)),
        Box::new(numactl::Reader::default()),
        Box::new(sysfs::Reader::new(block)),
        Box::new(netstat::Reader::default()),
    ]
}

/// Rules and dots between parts of an output.
fn is_decoration(line: &str) -> bool {
    line.trim()
        .chars()
        .all(|c| matches!(c, '-' | '.' | ' ' | '=' | '_'))
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

#[cfg(test)]
mod tests {
    use linerate_model::snapshot::Source;

    use super::*;

    /// The facts in the output of a command, all lines of which its reader understands.
    pub(super) fn facts_of<'a, R: LineReader>(
        reader: impl Fn(&Block<'a>) -> R,
        command: &'a str,
        output: &str,
    ) -> Snapshot {
        let mut snapshot = Snapshot::new("a", Source::Import);
        let mut reader = reader(&Block {
            host: None,
            command,
            lines: Vec::new(),
        });

        for line in output.lines().filter(|line| !line.trim().is_empty()) {
            assert!(reader.line(&mut snapshot, line), "{line}");
        }

        reader.finish(&mut snapshot);
        snapshot
    }
}
