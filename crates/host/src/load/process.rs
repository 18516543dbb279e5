//! What one process uses.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use linerate_model::http::Peak;
use linerate_sys::{cpu, process};

use super::error::ReadError;
use super::file::{KernelFile, Room};
use super::sockets::Sockets;
use super::text;

/// Threads of one process that are read.
const THREADS_MAX: usize = 1024;
/// Processes and descriptors that are searched for a listener.
const PROCESSES_MAX: usize = 65_536;

/// Reads one process. Threads and limits seldom change, so they are read only by a rescan.
#[derive(Debug)]
pub(crate) struct ProcessReader {
    pid: u32,
    root: PathBuf,
    statm: KernelFile,
    threads: BTreeMap<u32, KernelFile>,
    limit: Option<u64>,
    listed_fds: Option<u64>,
    page_bytes: u64,
}

impl ProcessReader {
    pub(crate) fn open(pid: u32) -> Self {
        let root = PathBuf::from(format!("/proc/{pid}"));
        let mut reader = Self {
            pid,
            statm: KernelFile::open(root.join("statm")),
            root,
            threads: BTreeMap::new(),
            limit: None,
            listed_fds: None,
            page_bytes: process::page_bytes(),
        };
        reader.rescan();
        reader
    }

    /// Looks for threads that began or ended, and for what changes as seldom.
    pub(crate) fn rescan(&mut self) {
        let entries = fs::read_dir(self.root.join("task")).into_iter().flatten().flatten();
        let alive: Vec<u32> = entries
            .take(THREADS_MAX)
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        self.threads.retain(|thread, _| alive.contains(thread));
        for thread in alive {
            let file = || KernelFile::open(self.root.join(format!("task/{thread}/schedstat")));
            self.threads.entry(thread).or_insert_with(file);
        }
        let limits = fs::read(self.root.join("limits")).unwrap_or_default();
        self.limit = text::descriptor_limits(&limits).0;
        // Since Linux 6.2 the size of the directory is the number; before, it has to be counted.
        self.listed_fds = match self.fd_directory_size() {
            Some(0) => self.count_fds(),
            _ => None,
        };
    }

    /// CPU time of all its threads, those that ended included.
    pub(crate) fn cpu_ns(&self) -> Result<u64, ReadError> {
        Ok(cpu::time_of_process_ns(self.pid)?)
    }

    /// Time each thread that is alive ran.
    pub(crate) fn threads_ns(&self, room: &mut Room) -> Result<BTreeMap<u32, u64>, ReadError> {
        let mut times = BTreeMap::new();
        let mut why = None;
        for (thread, file) in &self.threads {
            match file.read(room).map(text::schedstat_ns) {
                Ok(Some(ns)) => drop(times.insert(*thread, ns)),
                Ok(None) => why = Some(ReadError::lacking("schedstat is empty")),
                // A thread that ended does not affect the others.
                Err(error) => why = Some(error),
            }
        }
        if times.is_empty() {
            return Err(why.unwrap_or_else(|| ReadError::not_found(format!("process {} does not exist", self.pid))));
        }
        Ok(times)
    }

    /// The CPU one of its threads runs on, or ran on last; `None` for a thread of another process.
    pub(crate) fn cpu_of(&self, thread: u32) -> Option<u32> {
        self.threads.get(&thread)?;
        // Opened anew: few threads are busy, and a descriptor for each of all would be many.
        text::cpu_of_task(&fs::read(self.root.join(format!("task/{thread}/stat"))).ok()?)
    }

    /// Resident memory.
    pub(crate) fn rss_bytes(&self, room: &mut Room) -> Result<u64, ReadError> {
        let pages = text::resident_pages(self.statm.read(room)?)
            .ok_or_else(|| ReadError::lacking("statm has no resident pages"))?;
        Ok(pages.saturating_mul(self.page_bytes))
    }

    /// Exact resident memory, and its share where pages are divided by the processes that share them. Walks all pages.
    pub(crate) fn exact_memory(&self) -> Result<(u64, u64), ReadError> {
        let text = fs::read(self.root.join("smaps_rollup")).map_err(|error| ReadError::file("smaps_rollup", &error))?;
        let line = |name| {
            text::kib_line_bytes(&text, name).ok_or_else(|| ReadError::lacking(format!("smaps_rollup has no {name}")))
        };
        Ok((line("Rss")?, line("Pss")?))
    }

    /// Descriptors against the soft limit.
    pub(crate) fn fds(&self) -> Result<Peak, ReadError> {
        let counted = self.fd_directory_size().filter(|size| *size > 0).or(self.listed_fds);
        counted
            .map(|peak| Peak {
                peak,
                limit: self.limit,
            })
            .ok_or_else(|| ReadError::System(format!("{}/fd: not permitted", self.root.display())))
    }

    fn fd_directory_size(&self) -> Option<u64> {
        fs::metadata(self.root.join("fd")).ok().map(|found| found.len())
    }

    fn count_fds(&self) -> Option<u64> {
        let entries = fs::read_dir(self.root.join("fd")).ok()?;
        u64::try_from(entries.count()).ok()
    }

    /// Most resident memory it ever had.
    pub(crate) fn rss_high_water_bytes(&self) -> Result<u64, ReadError> {
        let text = fs::read(self.root.join("status")).map_err(|error| ReadError::file("status", &error))?;
        text::kib_line_bytes(&text, "VmHWM").ok_or_else(|| ReadError::lacking("status has no VmHWM"))
    }
}

/// Several processes as one: a server whose workers are processes.
#[derive(Debug)]
pub(crate) struct Processes(Vec<ProcessReader>);

impl Processes {
    pub(crate) fn open(pids: &[u32]) -> Self {
        Self(pids.iter().map(|pid| ProcessReader::open(*pid)).collect())
    }

    pub(crate) fn rescan(&mut self) {
        self.0.iter_mut().for_each(ProcessReader::rescan);
    }

    /// CPU time of all.
    pub(crate) fn cpu_ns(&self) -> Result<u64, ReadError> {
        self.sum(ProcessReader::cpu_ns)
    }

    /// Time each thread of any of them ran.
    pub(crate) fn threads_ns(&self, room: &mut Room) -> Result<BTreeMap<u32, u64>, ReadError> {
        let mut all = BTreeMap::new();
        for process in &self.0 {
            all.extend(process.threads_ns(room)?);
        }
        Ok(all)
    }

    /// The CPU a thread of any of them runs on, or ran on last.
    pub(crate) fn cpu_of(&self, thread: u32) -> Option<u32> {
        self.0.iter().find_map(|process| process.cpu_of(thread))
    }

    /// Resident memory of all; pages they share count for each.
    pub(crate) fn rss_bytes(&self, room: &mut Room) -> Result<u64, ReadError> {
        self.sum(|process| process.rss_bytes(room))
    }

    /// Exact resident memory, and that where shared pages are divided.
    pub(crate) fn exact_memory(&self) -> Result<(u64, u64), ReadError> {
        self.0.iter().try_fold((0, 0), |(rss, pss), process| {
            let (more_rss, more_pss) = process.exact_memory()?;
            Ok((rss + more_rss, pss + more_pss))
        })
    }

    /// Descriptors of the one that is closest to its limit.
    pub(crate) fn fds(&self) -> Result<Peak, ReadError> {
        let mut closest: Option<Peak> = None;
        for process in &self.0 {
            let found = process.fds()?;
            let share = |peak: &Peak| peak.peak as f64 / peak.limit.unwrap_or(u64::MAX) as f64;
            if closest.as_ref().is_none_or(|known| share(known) < share(&found)) {
                closest = Some(found);
            }
        }
        closest.ok_or_else(|| ReadError::not_found("no process"))
    }

    /// Most resident memory each of them ever had, together.
    pub(crate) fn rss_high_water_bytes(&self) -> Result<u64, ReadError> {
        self.sum(ProcessReader::rss_high_water_bytes)
    }

    fn sum(&self, mut of: impl FnMut(&ProcessReader) -> Result<u64, ReadError>) -> Result<u64, ReadError> {
        self.0
            .iter()
            .try_fold(0_u64, |sum, process| Ok(sum.saturating_add(of(process)?)))
    }
}

/// The processes that listen on a TCP port, as their descriptors show: a server's master and its workers.
///
/// # Errors
/// When no process listens, or none that may be read.
pub fn listening_processes(port: u16) -> Result<Vec<u32>, ReadError> {
    let mut inodes = Vec::new();
    Sockets::open()?.listeners(port, |socket| inodes.push(format!("socket:[{}]", socket.inode)))?;
    if inodes.is_empty() {
        return Err(ReadError::NotFound(
            format!("nobody listens on TCP port {port} here").into(),
        ));
    }
    let processes = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .take(PROCESSES_MAX);
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut owners: Vec<u32> = numbers.filter(|pid| has_one_of(*pid, &inodes)).collect();
    owners.sort_unstable();
    if owners.is_empty() {
        return Err(ReadError::System(format!(
            "whoever listens on TCP port {port} may not be looked at by this user; become root, or name the process"
        )));
    }
    Ok(owners)
}

fn has_one_of(pid: u32, names: &[String]) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    descriptors.take(PROCESSES_MAX).any(|entry| {
        let target = fs::read_link(entry.path()).ok();
        target
            .as_deref()
            .and_then(|target| target.to_str())
            .is_some_and(|target| names.iter().any(|name| name == target))
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn this_process_is_read() {
        let mut reader = ProcessReader::open(std::process::id());
        let mut room = Room::new();
        assert!(reader.cpu_ns().expect("its clock") > 0);
        assert!(!reader.threads_ns(&mut room).expect("its threads").is_empty());
        let rss = reader.rss_bytes(&mut room).expect("its memory");
        assert!((100_000..100 << 30).contains(&rss), "{rss}");
        let before = reader.fds().expect("its descriptors");
        let files: Vec<File> = (0..50).map(|_| File::open("/dev/null").expect("open")).collect();
        reader.rescan();
        let after = reader.fds().expect("its descriptors");
        // Other tests of this process open and close some as well.
        assert!(
            after.peak >= 50 && before.limit == after.limit && after.limit > Some(0),
            "{before:?} {after:?}"
        );
        drop(files);
        assert!(reader.rss_high_water_bytes().expect("a status") > 0);
        let (exact, shared) = reader.exact_memory().expect("smaps_rollup");
        assert!(exact >= shared && shared > 0, "{exact:?} {shared:?}");
    }

    #[test]
    fn ended_process_is_reported() {
        let reader = ProcessReader::open(0x3fff_fff0);
        let mut room = Room::new();
        assert!(reader.cpu_ns().is_err() && reader.rss_bytes(&mut room).is_err() && reader.fds().is_err());
        assert!(
            reader
                .threads_ns(&mut room)
                .is_err_and(|why| why.to_string().contains("does not exist"))
        );
    }

    #[test]
    fn listening_process_is_found_by_port() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        assert_eq!(listening_processes(port), Ok(vec![std::process::id()]));
        drop(listener);
        assert!(listening_processes(port).is_err_and(|why| why.to_string().contains("nobody listens")));
    }
}
