//! Reads the blocks of one host into a snapshot.

use super::attribute::UnattributedFacts;
use super::documents::Documents;
use super::lines::*;
use super::reports::{ReadTests, Runs};
use super::{
    annotations, bonding, ethtool, hops, kernel_log, load, lshw, lspci, netstat, network, numactl,
    ovs, ping, ss, sysfs, system, tc, wireless,
};
use crate::prelude::*;

/// A snapshot being assembled, with facts that can only be attached once everything was read.
pub(super) struct Draft {
    pub snapshot: Snapshot,
    loose: UnattributedFacts,
    runs: Runs,
    /// At least one line was understood.
    pub understood: bool,
}

impl Draft {
    pub(super) fn new(host: &str) -> Self {
        Self {
            snapshot: Snapshot::new(host, Source::Import),
            loose: UnattributedFacts::default(),
            runs: Runs::default(),
            understood: false,
        }
    }

    pub(super) fn finish(mut self) -> Snapshot {
        self.runs.finish(&mut self.snapshot);
        tc::hierarchies(&mut self.snapshot);
        // Last: devices are attached by bus addresses, which any block may have.
        self.loose.attach(&mut self.snapshot);
        self.snapshot
    }
}

/// Passes every line to the importers until one parses it. True if any line was parsed.
pub(super) fn read_block(
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
            // The iterator has passed the first line of the document already.
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
            || system.line(snapshot, line)
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
