//! Resources that processes use: CPU time, memory, descriptors.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use linerate_sys::{cpu, errno, process};

use crate::kernel::file::{Buffer, KernelFile};
use crate::kernel::sockets::Sockets;
use crate::prelude::*;

/// Threads of one process that are read.
const THREADS_MAX: usize = 1024;
/// Processes of a host, and descriptors of one, that are read.
const PROCESSES_MAX: usize = 65_536;
/// Interval at which threads and limits are scanned.
const RESCAN_EVERY_NS: u64 = 1_000_000_000;
/// A thread that ran for less than this part of the time between two samples is not attributed to a
/// CPU.
const MIN_SHARE: u64 = 20;

/// Several processes as one: a server whose workers are processes.
#[derive(Debug)]
pub(crate) struct Processes {
    readers: Vec<ProcessReader>,
    rescanned_ns: u64,
    /// When the threads were last sampled, and how long each had run.
    before: Option<(u64, BTreeMap<u32, u64>)>,
    /// Time the threads ran since the first sample, by CPU.
    ran_on_ns: BTreeMap<u32, u64>,
}

impl Processes {
    pub(crate) fn open(pids: &[u32], now_ns: u64) -> Self {
        Self {
            readers: pids.iter().map(|pid| ProcessReader::open(*pid)).collect(),
            rescanned_ns: now_ns,
            before: None,
            ran_on_ns: BTreeMap::new(),
        }
    }

    /// Records what they use, without `own_ns` of CPU time. `is_full` adds what takes a walk over
    /// all their pages.
    pub(crate) fn record(
        &mut self,
        snapshot: &mut Snapshot,
        is_full: bool,
        own_ns: u64,
        buffer: &mut Buffer,
    ) {
        let now_ns = snapshot.monotonic_ns;
        // A walk over `/proc/PID/task` costs more than all samples of a second, and servers start
        // threads rarely.
        let is_due = |now_ns: u64| now_ns.saturating_sub(self.rescanned_ns) >= RESCAN_EVERY_NS;
        if is_full || now_ns.is_some_and(is_due) {
            self.readers.iter_mut().for_each(ProcessReader::rescan);
            self.rescanned_ns = now_ns.unwrap_or(self.rescanned_ns);
        }

        snapshot.set("process.count", self.readers.len(), "sampler");
        match self.sum(ProcessReader::cpu_ns) {
            Ok(ns) => snapshot.count("process.cpu_ns", ns.saturating_sub(own_ns)),
            Err(why) => record_absent(snapshot, "process.cpu_ns", &why, "clock_gettime"),
        }

        match self.threads_ns(buffer) {
            Ok(threads) => self.record_threads(snapshot, now_ns, threads),
            Err(why) => record_absent(snapshot, "process.thread", &why, "procfs:schedstat"),
        }

        self.record_memory(snapshot, is_full, buffer);
        match self.fds() {
            Ok((used, limit)) => {
                snapshot.set("process.fds", used, "procfs:fd");
                snapshot.set_known("process.fds_max", limit, "procfs:limits");
            }
            Err(why) => record_absent(snapshot, "process.fds", &why, "procfs:fd"),
        }
    }

    fn record_memory(&self, snapshot: &mut Snapshot, is_full: bool, buffer: &mut Buffer) {
        let rss = self.sum(|process| process.rss_bytes(buffer));
        record(snapshot, "process.rss_bytes", rss, "procfs:statm");
        if !is_full {
            return;
        }

        let high_water = self.sum(|process| process.line_bytes("status", "VmHWM"));
        record(
            snapshot,
            "process.rss_high_water_bytes",
            high_water,
            "procfs:status",
        );
        // Walks all page tables of the process (proc_pid_smaps(5)), so only at the ends of a
        // period.
        let pss = self.sum(|process| process.line_bytes("smaps_rollup", "Pss"));
        record(snapshot, "process.pss_bytes", pss, "procfs:smaps_rollup");

        // The kernel keeps the total of statm per CPU, so it lags behind.
        if let Ok(exact) = self.sum(|process| process.line_bytes("smaps_rollup", "Rss")) {
            snapshot.set("process.rss_bytes", exact, "procfs:smaps_rollup");
        }
    }

    /// Records how long each thread ran, and on which CPUs where the time between the samples is
    /// known.
    fn record_threads(
        &mut self,
        snapshot: &mut Snapshot,
        now_ns: Option<u64>,
        threads: BTreeMap<u32, u64>,
    ) {
        if let Some((before_ns, before)) = &self.before
            && let Some(now_ns) = now_ns
        {
            // The CPU of a thread is known for the instant of the sample only: a thread that hardly
            // ran may have run elsewhere.
            let least_ns = now_ns.saturating_sub(*before_ns) / MIN_SHARE;
            for (thread, ns) in &threads {
                // A thread that began since the last sample has no time to compare with yet.
                let ran_ns = ns.saturating_sub(before.get(thread).copied().unwrap_or(*ns));
                let cpu = || {
                    self.readers
                        .iter()
                        .find_map(|process| process.cpu_of(*thread))
                };

                if ran_ns > least_ns
                    && let Some(cpu) = cpu()
                {
                    *self.ran_on_ns.entry(cpu).or_default() += ran_ns;
                }
            }
        }

        for (thread, ns) in &threads {
            snapshot.count(format!("process.thread.{thread}.ns"), *ns);
        }

        for (cpu, ns) in &self.ran_on_ns {
            snapshot.count(format!("process.on_cpu.{cpu}.ns"), *ns);
        }

        self.before = now_ns.map(|now_ns| (now_ns, threads));
    }

    fn threads_ns(&self, buffer: &mut Buffer) -> Result<BTreeMap<u32, u64>, ReadError> {
        let mut all = BTreeMap::new();
        for process in &self.readers {
            all.extend(process.threads_ns(buffer)?);
        }
        Ok(all)
    }

    /// Descriptors and limit of the process that is closest to its limit.
    fn fds(&self) -> Result<(u64, Option<u64>), ReadError> {
        let mut closest: Option<(f64, u64, Option<u64>)> = None;
        for process in &self.readers {
            let (used, limit) = process.fds()?;
            // A process without a limit is the farthest from it.
            let share = used as f64 / limit.unwrap_or(u64::MAX) as f64;
            if closest.is_none_or(|(most, ..)| most < share) {
                closest = Some((share, used, limit));
            }
        }

        let (_, used, limit) = closest.ok_or_else(|| ReadError::missing("no process"))?;
        Ok((used, limit))
    }

    fn sum(
        &self,
        mut of: impl FnMut(&ProcessReader) -> Result<u64, ReadError>,
    ) -> Result<u64, ReadError> {
        self.readers
            .iter()
            .try_fold(0_u64, |sum, process| Ok(sum.saturating_add(of(process)?)))
    }
}

/// Reads one process. Threads and limits seldom change, so they are read only by a rescan.
#[derive(Debug)]
struct ProcessReader {
    pid: u32,
    root: PathBuf,
    statm: KernelFile,
    threads: BTreeMap<u32, KernelFile>,
    limit: Option<u64>,
    listed_fds: Option<u64>,
}

impl ProcessReader {
    fn open(pid: u32) -> Self {
        let root = PathBuf::from(format!("/proc/{pid}"));
        let mut reader = Self {
            pid,
            statm: KernelFile::open(root.join("statm")),
            root,
            threads: BTreeMap::new(),
            limit: None,
            listed_fds: None,
        };
        reader.rescan();

        reader
    }

    /// Finds threads that began or ended, and reads what changes as seldom.
    fn rescan(&mut self) {
        let alive: Vec<u32> = names(self.root.join("task"))
            .take(THREADS_MAX)
            .filter_map(|name| name.parse().ok())
            .collect();
        self.threads.retain(|thread, _| alive.contains(thread));

        for thread in alive {
            let file = || KernelFile::open(self.root.join(format!("task/{thread}/schedstat")));
            // Kept open, since schedstat is read in each sample.
            self.threads.entry(thread).or_insert_with(file);
        }

        let limits = fs::read_to_string(self.root.join("limits")).unwrap_or_default();
        self.limit = descriptor_limits(&limits)[0];
        // Since Linux 6.2 the size of the directory is the number; before, it has to be counted.
        self.listed_fds = match self.fd_directory_size() {
            Some(0) => self.count_fds(),
            _ => None,
        };
    }

    /// CPU time of all its threads, those that ended included.
    fn cpu_ns(&self) -> Result<u64, ReadError> {
        // The clock of the process (clock_getcpuclockid(3)) in ns; /proc/PID/stat counts in ticks
        // of 10 ms.
        Ok(cpu::time_of_process_ns(self.pid)?)
    }

    /// Time each thread that is alive ran.
    fn threads_ns(&self, buffer: &mut Buffer) -> Result<BTreeMap<u32, u64>, ReadError> {
        let mut times = BTreeMap::new();
        let mut why = None;

        for (thread, file) in &self.threads {
            match file.read(buffer).map(|text| number_at(text, 0)) {
                Ok(Some(ns)) => drop(times.insert(*thread, ns)),
                Ok(None) => why = Some(ReadError::missing("schedstat is empty")),
                // A thread that ended does not affect the others.
                Err(error) => why = Some(error),
            }
        }

        if times.is_empty() {
            return Err(why.unwrap_or_else(|| {
                ReadError::missing(format!("process {} does not exist", self.pid))
            }));
        }

        Ok(times)
    }

    /// The CPU one of its threads runs on, or ran on last; `None` for a thread of another process.
    fn cpu_of(&self, thread: u32) -> Option<u32> {
        self.threads.get(&thread)?;
        // Opened again: few threads are busy, and a descriptor for each of all would be many.
        cpu_of_task(&fs::read(self.root.join(format!("task/{thread}/stat"))).ok()?)
    }

    fn rss_bytes(&self, buffer: &mut Buffer) -> Result<u64, ReadError> {
        let pages = number_at(self.statm.read(buffer)?, 1)
            .ok_or_else(|| ReadError::missing("statm has no resident pages"))?;
        Ok(pages.saturating_mul(process::page_bytes()))
    }

    /// A line `Name: 12 kB` of one of its files.
    fn line_bytes(&self, file: &str, name: &str) -> Result<u64, ReadError> {
        let text = fs::read_to_string(self.root.join(file))
            .map_err(|error| ReadError::file(file, &error))?;
        kib_line_bytes(&text, name)
            .ok_or_else(|| ReadError::missing(format!("{file} has no {name}")))
    }

    /// Descriptors and the soft limit.
    fn fds(&self) -> Result<(u64, Option<u64>), ReadError> {
        let counted = self
            .fd_directory_size()
            .filter(|size| *size > 0)
            .or(self.listed_fds);
        let refused = || ReadError::refused("read fd", errno::EPERM);
        Ok((counted.ok_or_else(refused)?, self.limit))
    }

    fn fd_directory_size(&self) -> Option<u64> {
        fs::metadata(self.root.join("fd"))
            .ok()
            .map(|found| found.len())
    }

    fn count_fds(&self) -> Option<u64> {
        let entries = fs::read_dir(self.root.join("fd")).ok()?;
        u64::try_from(entries.count()).ok()
    }
}

/// A number in a line of numbers: `/proc/*/task/*/schedstat`, `/proc/*/statm`.
pub(crate) fn number_at(text: &str, column: usize) -> Option<u64> {
    text.split_ascii_whitespace().nth(column)?.parse().ok()
}

/// `/proc/*/task/*/stat`: the CPU a thread runs on, or ran on last. The name in the second column
/// may be anything.
pub(crate) fn cpu_of_task(bytes: &[u8]) -> Option<u32> {
    /// Columns between the name and the one of the CPU (proc_pid_stat(5)).
    const BETWEEN: usize = 36;
    // From the last parenthesis: the name may contain blanks and parentheses.
    let columns = std::str::from_utf8(bytes.rsplit(|byte| *byte == b')').next()?).ok()?;
    columns.split_ascii_whitespace().nth(BETWEEN)?.parse().ok()
}

/// A line `Name: 12 kB`, in bytes.
pub(crate) fn kib_line_bytes(text: &str, name: &str) -> Option<u64> {
    let mut found = text
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    number_at(found.next()?, 0)?.checked_mul(1024)
}

/// `/proc/*/limits`: soft and hard limit of descriptors; absent where there is none.
pub(crate) fn descriptor_limits(text: &str) -> [Option<u64>; 2] {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    [0, 1].map(|column| number_at(line?, column))
}

/// Parses the bytes as every file of a process. Only for fuzzing.
#[cfg(any(test, fuzzing))]
pub(crate) fn decode_anything(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = (
        cpu_of_task(bytes),
        kib_line_bytes(&text, "Rss"),
        descriptor_limits(&text),
    );
}

/// The processes that listen on a TCP port, as their descriptors show: a server's master and its
/// workers.
///
/// # Errors
/// When no process listens, or none that may be read.
pub fn listening_processes(port: u16) -> Result<Vec<u32>, ReadError> {
    let mut inodes = Vec::new();
    Sockets::open()?.listeners(port, |socket| {
        // The form of the links in /proc/PID/fd (proc_pid_fd(5)).
        inodes.push(format!("socket:[{}]", socket.inode));
    })?;
    if inodes.is_empty() {
        return Err(ReadError::missing(format!(
            "no process listens on TCP port {port}"
        )));
    }

    let mut owners: Vec<u32> = numbers().filter(|pid| has_one_of(*pid, &inodes)).collect();
    owners.sort_unstable();

    if owners.is_empty() {
        let text = format!(
            "cannot inspect the process listening on TCP port {port}: permission denied; run as \
             root or name the process"
        );
        return Err(ReadError::System { text, errno: None });
    }

    Ok(owners)
}

/// The numbers of the processes of this host.
pub(crate) fn numbers() -> impl Iterator<Item = u32> {
    names("/proc")
        .take(PROCESSES_MAX)
        .filter_map(|name| name.parse().ok())
}

fn has_one_of(pid: u32, names: &[String]) -> bool {
    let descriptors = entries(format!("/proc/{pid}/fd")).take(PROCESSES_MAX);
    let mut targets = descriptors.filter_map(|path| fs::read_link(path).ok());
    targets.any(|target| names.iter().any(|name| target.to_str() == Some(name)))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::net::TcpListener;

    use linerate_model::snapshot::Source;

    use super::*;

    #[test]
    fn this_process_is_read() {
        let mut reader = ProcessReader::open(std::process::id());
        let mut buffer = Buffer::new();
        assert!(reader.cpu_ns().expect("its clock") > 0);
        assert!(
            !reader
                .threads_ns(&mut buffer)
                .expect("its threads")
                .is_empty()
        );

        let rss = reader.rss_bytes(&mut buffer).expect("its memory");
        assert!((100_000..100 << 30).contains(&rss), "{rss}");
        let (_, limit) = reader.fds().expect("its descriptors");
        let files: Vec<File> = (0..50)
            .map(|_| File::open("/dev/null").expect("open"))
            .collect();

        reader.rescan();
        // Other tests of this process open and close some as well.
        let after = reader.fds().expect("its descriptors");
        assert!(
            after.0 >= 50 && limit == after.1 && limit > Some(0),
            "{limit:?} {after:?}"
        );
        drop(files);
        assert!(reader.line_bytes("status", "VmHWM").expect("a status") > 0);

        let line = |name| {
            reader
                .line_bytes("smaps_rollup", name)
                .expect("smaps_rollup")
        };
        assert!(line("Rss") >= line("Pss") && line("Pss") > 0);
    }

    #[test]
    fn threads_have_no_cpu_between_samples_without_a_time() {
        let mut processes = Processes::open(&[], 0);
        let mut record = |time_ns, ran_ns| {
            let mut snapshot = Snapshot::new("h", Source::Live);
            processes.record_threads(&mut snapshot, time_ns, BTreeMap::from([(1, ran_ns)]));
            processes.before.clone()
        };
        assert!(record(Some(5), 1).is_some());
        assert_eq!(
            record(None, 9),
            None,
            "no time to compare the next one with"
        );
    }

    #[test]
    fn ended_process_is_reported() {
        let reader = ProcessReader::open(0x3fff_fff0);
        let mut buffer = Buffer::new();
        assert!(
            reader.cpu_ns().is_err()
                && reader.rss_bytes(&mut buffer).is_err()
                && reader.fds().is_err()
        );

        let why = reader.threads_ns(&mut buffer).expect_err("no thread");
        assert!(why.to_string().contains("does not exist"));
    }

    #[test]
    fn listening_process_is_found_by_port() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        assert_eq!(listening_processes(port), Ok(vec![std::process::id()]));
        drop(listener);
        assert!(
            listening_processes(port)
                .is_err_and(|why| why.to_string().contains("no process listens"))
        );
    }

    #[test]
    fn files_of_a_process_are_parsed() {
        assert_eq!(number_at("1234567 89 3\n", 0), Some(1_234_567));
        assert_eq!(number_at("765 423 395 5 0 123 0\n", 1), Some(423));

        for text in ["", "12", "12 x", "12 -3", "12 99999999999999999999"] {
            assert_eq!(number_at(text, 1), None, "{text}");
        }

        let stat = b"7 (\xffa) b) S 1 7 7 0 -1 4194560 120 0 0 0 31 11 0 0 20 0 1 0 5 0 0 1 2 3 4 \
                     5 6 7 8 9 10 11 12 13 17 3 0 0";
        assert_eq!(
            (cpu_of_task(stat), cpu_of_task(b"7 (a) S 1")),
            (Some(3), None)
        );
        let rollup = "5571a5c8b000-7ffd2da1f000 ---p 0 0:0 0 [rollup]\nRss:      1648 kB\nPss:       298 kB\n";
        assert_eq!(kib_line_bytes(rollup, "Pss"), Some(298 * 1024));
        assert_eq!(kib_line_bytes("Pss: 99999999999999999 kB\n", "Pss"), None);

        for (limits, expected) in [
            (
                "Max open files            1024                 524288               files     \n",
                [Some(1024), Some(524_288)],
            ),
            (
                "Max open files            unlimited            unlimited            files\n",
                [None, None],
            ),
            ("Max open files", [None, None]),
        ] {
            assert_eq!(descriptor_limits(limits), expected, "{limits}");
        }
    }
}
