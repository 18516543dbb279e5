//! Output of `numactl -H`: nodes and their CPUs.

use linerate_model::snapshot::Snapshot;

use super::lines::LineReader;

const SRC: &str = "import:numactl";

/// Reads lines of numactl.
#[derive(Default)]
pub(super) struct Reader {
    is_active: bool,
}

impl LineReader for Reader {
    fn line(&mut self, snapshot: &mut Snapshot, line: &str) -> bool {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["available:", count, "nodes" | "node", ..] => {
                snapshot.set_known("numa.nodes", count.parse::<i64>().ok(), SRC);
                self.is_active = true;
                true
            }
            _ if !self.is_active => false,
            ["node", number, "cpus:", cpus @ ..] if number.parse::<u32>().is_ok() => {
                snapshot.set(format!("numa.node.{number}.cpus"), cpus.join(","), SRC);
                true
            }
            ["node", _, "size:" | "free:", ..] | ["node", "distances:"] => true,
            // The table of distances.
            ["node", nodes @ ..] => nodes.iter().all(|node| node.parse::<u32>().is_ok()),
            [node, distances @ ..] => {
                node.ends_with(':')
                    && !distances.is_empty()
                    && distances.iter().all(|word| word.parse::<u32>().is_ok())
            }
            [] => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::snapshot::Source;

    use super::*;

    #[test]
    fn nodes_and_their_cpus() {
        let text = "available: 2 nodes (0-1)\nnode 0 cpus: 0 1\nnode 0 size: 64000 MB\nnode 0 \
                    free: 1000 MB\nnode 1 cpus: 2 3\nnode distances:\nnode   0   1\n  0:  10  21\n";
        let (mut reader, mut snapshot) = (Reader::default(), Snapshot::new("a", Source::Import));

        for line in text.lines() {
            assert!(reader.line(&mut snapshot, line), "{line}");
        }

        assert_eq!(
            (
                snapshot.number("numa.nodes"),
                snapshot.text("numa.node.1.cpus")
            ),
            (Some(2.0), Some("2,3"))
        );
    }
}
