//! Subject of a line that was not understood, so that nothing is called fine of which a part was
//! not read.

use super::sections::Block;

/// The prefixes of the rules that the line of a block concerns; none where that is not known.
pub(super) fn of(block: &Block<'_>, line: &str) -> impl Iterator<Item = &'static str> {
    let (kind, subject) = match block.program() {
        "" => ("text", line.split(' ').next().unwrap_or_default()),
        "ethtool" => ("option", block.ethtool().map_or("", |(option, _)| option)),
        "cat" | "head" | "grep" | "tail" => ("file", block.kernel_file().unwrap_or_default()),
        program => ("program", program),
    };

    let rules = |row: &'static str| {
        let mut columns = row.split(" | ");
        let is_kind = columns.next() == Some(kind);
        let is_subject = |word: &str| match kind {
            "file" => subject.contains(word),
            _ => word == subject || word == "*",
        };
        let is_meant = is_kind && columns.next()?.split(' ').any(is_subject);
        columns.next().filter(|_| is_meant)
    };
    let found = include_str!("subjects.txt").lines().find_map(rules);
    found.into_iter().flat_map(|rules| rules.split(' '))
}
