//! Load of the CPUs in samples: `mpstat`, `vmstat` and `top`.

use std::collections::BTreeMap;

use super::lines::*;
use crate::prelude::*;

/// Samples that are kept, each of one CPU or of all.
const SAMPLES_MAX: usize = 65_536;

/// Shares of the time of one CPU, or of all, in one sample.
#[derive(Clone, Copy, Default)]
struct Load {
    busy: f64,
    softirq: f64,
    steal: f64,
}

/// Reads lines of these programs.
#[derive(Default)]
pub(super) struct Reader<'a> {
    program: &'a str,
    /// Names of the columns of the table that the lines belong to.
    columns: Vec<String>,
    source: &'static str,
    /// Samples by CPU; `all` is the mean of all CPUs.
    samples: BTreeMap<String, Vec<Load>>,
    /// Means that the program itself printed.
    means: BTreeMap<String, Load>,
    count: usize,
    /// Inside the table of processes of top.
    in_processes: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(block: &Block<'a>) -> Self {
        Self {
            program: block.program(),
            ..Self::default()
        }
    }

    fn heading(&mut self, line: &str) -> bool {
        let words: Vec<&str> = line.split_whitespace().collect();
        let has = |wanted: &str| words.contains(&wanted);
        self.source = match () {
            () if has("CPU") && has("%soft") => "import:mpstat",
            () if has("us") && has("sy") && has("id") => "import:vmstat",
            () => return line.starts_with("procs ") && line.contains("-cpu-"),
        };
        self.columns = words.iter().map(|word| (*word).to_owned()).collect();

        true
    }

    /// A row of the table: as many words as columns.
    fn row(&mut self, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_mean = words.first() == Some(&"Average:");

        // The heading has the time of the sample where the mean has its name, which may be one word
        // shorter.
        let skipped = self
            .columns
            .len()
            .checked_sub(words.len())
            .filter(|skipped| *skipped <= usize::from(is_mean))?;
        let columns = self.columns.get(skipped..)?;
        let word = |name: &str| {
            words
                .get(columns.iter().position(|column| column == name)?)
                .copied()
        };
        let share = |name: &str| Some(word(name)?.parse::<f64>().ok()? / 100.0);

        let is_mpstat = self.source == "import:mpstat";
        let cpu = if is_mpstat { word("CPU")? } else { "all" };

        let load = if is_mpstat {
            Load {
                busy: 1.0 - share("%idle")? - share("%iowait").unwrap_or(0.0),
                softirq: share("%soft")? + share("%irq").unwrap_or(0.0),
                steal: share("%steal").unwrap_or(0.0),
            }
        } else {
            // The kernel's own time has no parts here.
            let busy = 1.0 - share("id")? - share("wa").unwrap_or(0.0);
            Load {
                busy,
                // `finish` leaves out what is no number.
                softirq: f64::NAN,
                steal: share("st").unwrap_or(f64::NAN),
            }
        };
        self.add(cpu, load, is_mean);
        Some(())
    }

    /// `%Cpu(s):  1.0 us,  0.5 sy, ...`, `%Cpu0  :  1.0 us, ...`, `Cpu0 :  1.0%us, ...`
    fn top(&mut self, line: &str) -> Option<()> {
        let (name, rest) = line.strip_prefix('%').unwrap_or(line).split_once(':')?;
        let cpu = match name.strip_prefix("Cpu")?.trim() {
            "(s)" => "all",
            number if number.parse::<u32>().is_ok() => number,
            _ => return None,
        };

        let share = |wanted: &str| {
            let value = rest
                .split(',')
                .find_map(|part| part.trim().strip_suffix(wanted))?;
            Some(leading_number(value.trim().trim_end_matches('%'))? / 100.0)
        };
        let load = Load {
            busy: 1.0 - share("id")? - share("wa").unwrap_or(0.0),
            softirq: share("si")? + share("hi").unwrap_or(0.0),
            steal: share("st").unwrap_or(0.0),
        };

        self.source = "import:top";
        self.add(cpu, load, false);
        Some(())
    }

    fn add(&mut self, cpu: &str, load: Load, is_mean: bool) {
        if is_mean {
            self.means.insert(cpu.to_owned(), load);
        } else if self.count < SAMPLES_MAX {
            self.count += 1;
            self.samples.entry(cpu.to_owned()).or_default().push(load);
        }
    }

    /// Lines of top around the CPUs: its summary, and the table of processes.
    fn is_of_no_use(&mut self, line: &str) -> bool {
        if self.program != "top" && self.source != "import:top" && !line.starts_with("top - ") {
            return false;
        }

        const SUMMARY: [&str; 7] = [
            "top - ", "Tasks:", "Threads:", "MiB ", "KiB ", "Mem:", "Swap:",
        ];

        self.in_processes |= line.trim_start().starts_with("PID ");
        let is_process = || {
            line.split_whitespace()
                .next()
                .is_some_and(|pid| pid.parse::<u32>().is_ok())
        };
        SUMMARY.iter().any(|text| line.starts_with(text))
            || line.trim_start().starts_with("PID ")
            || (self.in_processes && is_process())
    }

    fn loads(&self, of: &[Load]) -> Option<Load> {
        // The first row of vmstat is the mean since boot.
        let skipped = usize::from(self.source == "import:vmstat" && of.len() > 1);
        let of = of.get(skipped..)?;
        let mean =
            |of_load: fn(&Load) -> f64| of.iter().map(of_load).sum::<f64>() / of.len() as f64;

        (!of.is_empty()).then(|| Load {
            busy: mean(|load| load.busy),
            softirq: mean(|load| load.softirq),
            steal: mean(|load| load.steal),
        })
    }
}

impl LineReader for Reader<'_> {
    fn line(&mut self, _: &mut Snapshot, line: &str) -> bool {
        self.heading(line)
            || (!self.columns.is_empty() && self.row(line).is_some())
            || self.top(line).is_some()
            || self.is_of_no_use(line)
    }

    fn finish(&mut self, snapshot: &mut Snapshot) {
        let mut loads: BTreeMap<&String, Load> = self
            .samples
            .iter()
            .filter_map(|(cpu, of)| Some((cpu, self.loads(of)?)))
            .collect();
        // Means that the program printed replace those of its samples.
        loads.extend(self.means.iter().map(|(cpu, mean)| (cpu, *mean)));

        for (cpu, load) in loads {
            for (fact, share) in [
                ("busy", load.busy),
                ("softirq", load.softirq),
                ("steal", load.steal),
            ] {
                let known = share.is_finite().then(|| share.clamp(0.0, 1.0));
                snapshot.set_known(format!("cpu.load.{cpu}.{fact}_share"), known, self.source);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::snapshot::Source;

    use super::super::tests::facts_of;
    use super::*;

    fn facts(command: &str, output: &str) -> Snapshot {
        facts_of(Reader::new, command, output)
    }

    fn shares(snapshot: &Snapshot, cpu: &str) -> [Option<f64>; 3] {
        ["busy", "softirq", "steal"].map(|fact| {
            snapshot
                .number(&format!("cpu.load.{cpu}.{fact}_share"))
                .map(|share| (share * 1000.0).round() / 1000.0)
        })
    }

    #[test]
    fn mpstat_with_and_without_means_and_with_a_clock_of_12_hours() {
        let table = "12:00:01 PM  CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  \
                     %guest  %gnice   %idle\n\
                     12:00:02 PM  all    0.50    0.00    1.26    0.00    0.00   25.19    0.00    \
                     0.00    0.00   73.05\n\
                     12:00:02 PM    1    1.00    0.00    2.00    0.00    1.00   94.00    2.00    \
                     0.00    0.00    0.00\n";
        let plain = table.replace(" PM", "");
        let with_mean = format!(
            "{table}Average:       1    0.00    0.00    0.00    0.00    0.00   50.00    0.00    \
             0.00    0.00   50.00\n"
        );

        assert_eq!(
            shares(&facts("mpstat -P ALL 1", table), "1"),
            [Some(1.0), Some(0.95), Some(0.02)]
        );
        assert_eq!(
            shares(&facts("", &plain), "all"),
            [Some(0.27), Some(0.252), Some(0.0)]
        );
        assert_eq!(
            shares(&facts("", &with_mean), "1"),
            [Some(0.5), Some(0.5), Some(0.0)]
        );
    }

    #[test]
    fn first_row_of_vmstat_is_the_mean_since_boot() {
        let table = "procs -----------memory---------- ---swap-- -----io---- -system-- \
                     ------cpu-----\n\
                     \x20r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id \
                     wa st\n\
                     \x203  0      0 201212  10212 402112    0    0     0     4 9012 8012  1  1 98  0  0\n\
                     \x204  0      0 201212  10212 402112    0    0     0     0 9912 8912 10 32  0  0 58\n";
        assert_eq!(
            shares(&facts("vmstat 1 2", table), "all"),
            [Some(1.0), None, Some(0.58)]
        );
    }

    #[test]
    fn top_of_new_and_old_releases() {
        let new = "top - 12:00:00 up 1 day\nTasks: 120 total,   1 running\n%Cpu0  :  1.0 us,  2.0 \
                   sy,  0.0 ni,  0.0 id,  0.0 wa,  0.0 hi, 97.0 si,  0.0 st\n\
                   MiB Mem :   3900.0 total\n    PID USER      PR  NI    VIRT    RES    SHR S  \
                   %CPU  %MEM     TIME+ COMMAND\n\
                   \x20    9 root      20   0       0      0      0 R  97.0   0.0   9:00.00 \
                   ksoftirqd/0\n";
        let old =
            "Cpu0  :  1.0%us,  2.0%sy,  0.0%ni,  0.0%id,  0.0%wa,  0.0%hi, 97.0%si,  0.0%st\n";
        assert_eq!(
            shares(&facts("top -b -n1", new), "0"),
            [Some(1.0), Some(0.97), Some(0.0)]
        );
        assert_eq!(
            shares(&facts("", old), "0"),
            [Some(1.0), Some(0.97), Some(0.0)]
        );
    }

    #[test]
    fn other_lines_are_no_loads() {
        let mut snapshot = Snapshot::new("a", Source::Import);
        let mut reader = Reader::new(&Block {
            host: None,
            command: "",
            lines: Vec::new(),
        });

        for line in ["", "1 2 3 4", "Speed: 1", "CPU(s): 4", "cpu  1 2 3 4 5"] {
            assert!(!reader.line(&mut snapshot, line), "{line}");
        }
    }
}
