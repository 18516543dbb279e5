//! The table of polling threads of Open vSwitch. Aggregates are computed from the rows that hold a
//! number, and the load they were taken under is kept beside them.

use linerate_model::snapshot::Snapshot;

const SRC: &str = "import:ovs pmd table";
const ROWS_MAX: usize = 65_536;

/// Reads the table row by row.
#[derive(Default)]
pub(super) struct Reader {
    columns: Vec<String>,
    rows: Vec<Vec<Option<f64>>>,
}

impl Reader {
    pub(super) fn line(&mut self, line: &str) -> bool {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.contains(&"core_id") && words.contains(&"kpps") {
            self.columns = words.iter().map(|word| (*word).to_owned()).collect();
            return true;
        }

        if self.columns.is_empty()
            || words.len() != self.columns.len()
            || self.rows.len() >= ROWS_MAX
        {
            return false;
        }

        let row: Option<Vec<Option<f64>>> = words.iter().map(|word| cell(word)).collect();
        row.map(|row| self.rows.push(row)).is_some()
    }

    pub(super) fn finish(self, snapshot: &mut Snapshot) {
        if self.rows.is_empty() {
            return;
        }

        let column = |name: &str| -> Vec<f64> {
            let at = self.columns.iter().position(|column| column == name);
            at.map_or_else(Vec::new, |at| {
                self.rows
                    .iter()
                    .filter_map(|row| row.get(at).copied().flatten())
                    .collect()
            })
        };
        let mut set = |key: &str, value: Option<f64>| {
            snapshot.set_known(format!("ovs.pmd.{key}"), value, SRC);
        };

        let kpps = column("kpps");
        let idle = column("idle");
        let cycles = column("cyclepp");
        let hits = column("emc");
        set("kpps_max", kpps.iter().copied().reduce(f64::max));
        set("kpps_median", upper_median(&kpps));
        set("idle_min", idle.iter().copied().reduce(f64::min));
        set("cyclepp_mean", mean(&cycles));
        set("cyclepp_median", upper_median(&cycles));
        set("cyclepp_min", cycles.iter().copied().reduce(f64::min));
        set("cyclepp_max", cycles.iter().copied().reduce(f64::max));
        set("emc_mean", mean(&hits));
        snapshot.set("ovs.pmd.rows", self.rows.len(), SRC);
        snapshot.set("ovs.pmd.rows_with_cycles", cycles.len(), SRC);

        let nodes: std::collections::BTreeSet<String> =
            column("numa_id").iter().map(f64::to_string).collect();
        snapshot.set(
            "ovs.pmd.numa_nodes",
            nodes.into_iter().collect::<Vec<_>>().join(", "),
            SRC,
        );
    }
}

/// `/` means no data.
fn cell(word: &str) -> Option<Option<f64>> {
    if word == "/" {
        return Some(None);
    }

    word.parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
        .map(Some)
}

fn mean(values: &[f64]) -> Option<f64> {
    let count = u32::try_from(values.len())
        .ok()
        .filter(|count| *count > 0)?;
    Some((values.iter().sum::<f64>() / f64::from(count) * 10.0).round() / 10.0)
}

/// The middle value; of an even number of values the upper one.
fn upper_median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}
