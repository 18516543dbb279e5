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
mod draft;
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

use linerate_model::snapshot::Snapshot;

use draft::{Draft, read_block};
pub use reports::{ReadTests, TestOutput, TestRun};
use sections::Block;

/// Bytes of one file that are read; more is cut.
pub const TEXT_BYTES_MAX: usize = 16 << 20;
/// Lines of one file that are kept because they were not understood; further ones are counted.
const UNREAD_MAX: usize = 10_000;

/// Content of a text.
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
    /// Number of unknown lines.
    pub unread_count: usize,
    /// Prefixes of the rules that unknown lines concern: `QD`.
    pub unread_subjects: BTreeSet<&'static str>,
}

/// Reads one text. `name` is the host where the text names none.
pub fn import(name: &str, text: &str) -> Imported {
    import_all(&[(name, text)], &reports::none)
}

/// Reads texts, each with the name of its file. Several texts that name no host describe the same
/// one, unless they contradict each other.
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
    // Reports of iperf3 begin with a brace as well: what is no snapshot is read as pasted text.
    text.trim_start()
        .starts_with('{')
        .then(|| serde_json::from_str::<Snapshot>(text).ok())?
}

/// The beginning of a text, at most `max` bytes, cut between characters.
fn cut(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }

    let mut end = max;
    // 0 is a boundary, so that the loop ends.
    while !text.is_char_boundary(end) {
        end -= 1;
    }

    &text[..end]
}

#[cfg(test)]
mod tests {
    use linerate_model::snapshot::Source;

    use super::lines::LineReader;
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
