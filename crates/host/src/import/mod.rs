//! Pasted text: output of commands, in any mixture, as snapshots.
//!
//! Blocks are recognised by their content, so a pasted terminal session works. A line `### host=NAME cmd=COMMAND` or a
//! shell prompt names host and command. Several texts that name no host are of one host unless they contradict each
//! other. Unknown lines are reported with their number and are never an error.

mod blocks;
mod ethtool;
mod iperf;
mod iperf_json;
mod join;
mod lines;
mod lspci;
mod network;
mod notes;
mod ovs;
mod paste;
mod system;

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::runs;
use linerate_model::snapshot::{Fact, Snapshot, Source};

use blocks::Block;
use iperf::Transcripts;
use iperf_json::Documents;
use join::Loose;

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
    import_all(&[(name, text)])
}

/// Reads texts, each with the name of its file. Several texts that name no host describe the same one, unless they
/// contradict each other.
#[must_use]
pub fn import_all(texts: &[(&str, &str)]) -> Imported {
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
    for ((name, blocks), host) in texts.iter().zip(default_hosts(&texts)) {
        read_blocks(name, &host, blocks, &mut hosts, &mut imported);
    }
    // Text around the outputs of named hosts is no host of its own.
    let has_facts = |host: &Snapshot| !host.facts.is_empty() || !host.counters.is_empty() || host.kernel.is_some();
    imported.snapshots.extend(hosts.into_values().map(Draft::finish).filter(has_facts));
    imported
}

fn read_blocks(
    name: &str,
    default_host: &str,
    blocks: &[Block<'_>],
    hosts: &mut BTreeMap<String, Draft>,
    imported: &mut Imported,
) {
    let before = imported.unread.len();
    for block in blocks {
        let host = block.host.filter(|host| *host != "note").unwrap_or(default_host);
        let draft = hosts.entry(host.to_owned()).or_insert_with(|| Draft::new(host));
        imported.blocks += 1;
        let understood = read_block(draft, block, &mut |number, line| {
            imported.unread.push(format!("{name}:{number}: {line}"));
        });
        imported.understood += usize::from(understood);
        imported.unread.truncate(UNREAD_MAX + before);
    }
}

/// The host of the lines of each text that name none.
fn default_hosts(texts: &[(&str, Vec<Block<'_>>)]) -> Vec<String> {
    let named: Vec<Option<&str>> =
        texts.iter().map(|(name, blocks)| only_host(blocks).or_else(|| role(name))).collect();
    if texts.len() < 2 {
        return texts.iter().zip(named).map(|((name, _), host)| host.unwrap_or(name).to_owned()).collect();
    }
    let in_blocks = texts.iter().flat_map(|(_, blocks)| blocks).filter_map(|block| block.host);
    let hosts: BTreeSet<&str> =
        in_blocks.filter(|host| *host != "note").chain(named.iter().flatten().copied()).collect();
    let only = hosts.first().copied().filter(|_| hosts.len() == 1);
    // Texts of one host each: its name, and what is known of it.
    let mut groups: Vec<(&str, Vec<Snapshot>)> = Vec::new();
    let mut group_of = Vec::new();
    // A text that names its host comes first, so that the others are compared with it.
    let mut order: Vec<usize> = (0..texts.len()).collect();
    order.sort_by_key(|index| named[*index].is_none());
    for index in order {
        let (name, blocks) = &texts[index];
        let facts = facts_of(name, blocks);
        let fits = |(host, members): &(&str, Vec<Snapshot>)| match named[index] {
            Some(named) => *host == named,
            None => (only.is_some() || hosts.is_empty()) && members.iter().all(|member| !contradict(member, &facts)),
        };
        let group = groups.iter().position(fits).unwrap_or_else(|| {
            groups.push((named[index].unwrap_or(name), Vec::new()));
            groups.len() - 1
        });
        groups[group].1.push(facts);
        group_of.push((index, group));
    }
    if let ([(host, _)], None) = (groups.as_mut_slice(), only) {
        *host = "host";
    }
    group_of.sort_unstable();
    group_of.into_iter().map(|(_, group)| groups[group].0.to_owned()).collect()
}

fn facts_of(name: &str, blocks: &[Block<'_>]) -> Snapshot {
    let mut draft = Draft::new(name);
    for block in blocks {
        read_block(&mut draft, block, &mut |_, _| {});
    }
    draft.finish()
}

/// The end of a test a file is named after, as in `server-ethtool.txt`.
fn role(name: &str) -> Option<&str> {
    let word = name.split(|c: char| !c.is_ascii_alphabetic()).next()?;
    matches!(word.to_ascii_lowercase().as_str(), "server" | "client" | "sender" | "receiver").then_some(word)
}

/// Whether two sets of facts cannot be of one host: a setting differs, or each has another end of one path.
fn contradict(a: &Snapshot, b: &Snapshot) -> bool {
    let is_setting = |key: &str| {
        ["nic.", "sysctl.", "cpu.", "numa."].iter().any(|tree| key.starts_with(tree)) && !key.ends_with("cur_khz")
    };
    let differs = a.facts.iter().filter(|(key, _)| is_setting(key)).any(|(key, fact)| match (fact, b.facts.get(key)) {
        (Fact::Known { v: a, .. }, Some(Fact::Known { v: b, .. })) => a != b,
        _ => false,
    });
    let ends = |snapshot: &Snapshot| -> Vec<[Option<String>; 2]> {
        let fact = |index: usize, name: &str| snapshot.text(&format!("run.{index}.{name}")).map(str::to_owned);
        (0..runs::count(snapshot)).map(|index| ["path", "local"].map(|name| fact(index, name))).collect()
    };
    let others = ends(b);
    let opposite = |[path, local]: &[Option<String>; 2]| {
        path.is_some() && others.iter().any(|[other, end]| other == path && end != local)
    };
    differs || (a.kernel.is_some() && b.kernel.is_some() && a.kernel != b.kernel) || ends(a).iter().any(opposite)
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
    let documents = Documents::of(block);
    let mut lines = block.lines.iter().enumerate();
    while let Some((index, (number, line))) = lines.next() {
        if let Some((_, count)) = documents.at(index).filter(|(document, _)| draft.transcripts.json(document)) {
            any = true;
            lines.by_ref().take(count.saturating_sub(1)).for_each(drop);
            continue;
        }
        let snapshot = &mut draft.snapshot;
        let understood = system.lscpu(snapshot, line)
            || ethtool.line(snapshot, line)
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
