//! Facts of this host or of saved files, and the rules over them.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, slice, thread};

use linerate_host::import::{Imported, TEXT_BYTES_MAX};
use linerate_host::{Request, collect};
use linerate_model::finding::Diagnosis;
use linerate_model::outcome::Error;
use linerate_model::snapshot::{Absence, Snapshot};

use super::file_error::at;
use super::host_watch::{self, DropScope, HostReader, STEP};
use super::profile_files::ProfileFiles;
use crate::{Observed, catalogue, compare, work};

/// Files one directory may contribute.
const FILES_MAX: usize = 1000;

/// Where the facts come from.
#[derive(Debug, Clone)]
pub enum Source {
    /// This host.
    Host {
        /// Interfaces to read; empty for the one to `peer`, or all that are up.
        interfaces: Vec<String>,
        /// Name or address of a host whose path is of interest.
        peer: Option<String>,
        /// Time over which counters are observed; `None` reads them once.
        period: Option<Duration>,
    },
    /// Saved facts, or pasted output of commands: files, directories, or `-` for standard input.
    Files(Vec<PathBuf>),
    /// The differences between two hosts, or two moments of one.
    Compared([PathBuf; 2]),
}

/// Object of a diagnosis. [`Self::of`] makes one.
#[derive(Debug, Clone)]
pub struct Query {
    /// Where the facts come from.
    pub source: Source,
    /// Speed of the path in Mbit/s, where it is not the interface's.
    pub line_rate_mbps: Option<f64>,
    /// File for the facts, to be diagnosed elsewhere.
    pub save: Option<PathBuf>,
    /// Ids of the rules to check; empty for all.
    pub only: Vec<String>,
    /// Files for what the CPUs did during the period.
    pub profile: ProfileFiles,
}

impl Query {
    /// All rules over these facts.
    pub fn of(source: Source) -> Self {
        Self {
            source,
            line_rate_mbps: None,
            save: None,
            only: Vec::new(),
            profile: ProfileFiles::default(),
        }
    }
}

/// Readers of files: of saved facts, and of the output of other programs.
#[derive(Debug, Clone, Copy)]
pub struct Readers {
    /// Text of the bytes of a file.
    pub decode: fn(&[u8]) -> io::Result<String>,
    /// Hosts of texts, each with a name.
    pub import: fn(&[(&str, &str)]) -> Imported,
}

/// Checks the ids of the rules.
///
/// # Errors
/// A rule that does not exist.
pub fn check(query: &Query) -> Result<(), Error> {
    query.only.iter().try_for_each(|id| check_rule(id))
}

pub(super) fn check_rule(id: &str) -> Result<(), Error> {
    let is_known = catalogue().any(|rule| rule.id.eq_ignore_ascii_case(id));
    if is_known {
        Ok(())
    } else {
        Err(Error::usage(format!("there is no rule {id}")))
    }
}

/// Collects or reads facts and applies the rules. Returns the hosts as well.
///
/// # Errors
/// Facts that cannot be read.
pub fn diagnose(query: &Query, readers: &Readers) -> Result<(Diagnosis, Vec<Observed>), Error> {
    let mut unread = Unread::default();
    let mut observed = match &query.source {
        Source::Compared(paths) => {
            let sides: Result<Vec<_>, _> = paths
                .iter()
                .map(|path| side(path, readers, &mut unread))
                .collect();
            sides?
        }
        Source::Files(paths) => snapshots(paths, readers, &mut unread)?
            .into_iter()
            .map(Observed::once)
            .collect(),
        Source::Host {
            interfaces,
            peer,
            period,
        } => vec![live(interfaces, peer.as_deref(), *period, &query.profile)?],
    };

    if let Some(rate) = query.line_rate_mbps {
        for one in &mut observed {
            one.snapshot
                .set_in("path.line_rate_mbps", rate, "Mbit/s", "command line");
        }
    }

    // After the options, which are facts of the saved host as well.
    if let Some(path) = &query.save {
        save(path, &observed)?;
    }

    let mut diagnosis = match (&query.source, observed.as_slice()) {
        (Source::Compared(_), [a, b]) => compare(a, b, &query.only),
        _ => crate::diagnose(&observed, &query.only),
    };
    diagnosis.unread = unread.lines;
    diagnosis.unread_count = unread.count;
    diagnosis.unread_subjects = unread.subjects.into_iter().map(str::to_owned).collect();

    Ok((diagnosis, observed))
}

/// Reads this host: once, or once a second over the period.
fn live(
    interfaces: &[String],
    peer: Option<&str>,
    period: Option<Duration>,
    files: &ProfileFiles,
) -> Result<Observed, Error> {
    let request = Request {
        interfaces: interfaces.to_vec(),
        peer: peer.map(address).transpose()?,
        ..Request::default()
    };
    let first = collect(&request);

    if let Some(name) = interfaces
        .iter()
        .find(|name| first.absence(&format!("nic.{name}.link")) == Some(Absence::NoSuchDevice))
    {
        let is_file = Path::new(name).is_file();
        let hint = if is_file {
            format!("; it is a file: linerate doctor --from {name}")
        } else {
            String::new()
        };
        return Err(Error::failed(format!("there is no interface {name}{hint}")));
    }

    let Some(length) = period else {
        return Ok(Observed::once(first));
    };
    // Two intervals at least: one has no spread, so no verdict rests on it.
    let watch = host_watch::start(request, DropScope::Host, STEP.min(length / 2))
        .ok_or_else(|| Error::failed("cannot create a thread"))?;
    thread::sleep(length);

    let (observed, profile) = watch
        .finish()
        .map(HostReader::finish)
        .ok_or_else(|| Error::failed("the counters could not be read"))?;
    if files.are_wanted() {
        let reason = observed.snapshot.text(work::UNWATCHED).unwrap_or_default();
        let profile = profile.ok_or_else(|| Error::failed(format!("stacks: {reason}")))?;
        files.write(&profile.collapsed())?;
    }
    Ok(observed)
}

/// The first address of a name.
pub(super) fn address(name: &str) -> Result<IpAddr, Error> {
    // Only the address matters; a lookup demands some port.
    let mut addresses = (name, 0)
        .to_socket_addrs()
        .map_err(|error| Error::failed(format!("{name}: {error}")))?;
    let first = addresses
        .next()
        .ok_or_else(|| Error::failed(format!("{name}: no address")))?;
    Ok(first.ip())
}

/// Lines of imports that were not understood.
#[derive(Debug, Default)]
struct Unread {
    /// The lines; of very many the first.
    lines: Vec<String>,
    count: usize,
    /// Prefixes of the rules that they concern.
    subjects: BTreeSet<&'static str>,
}

/// One side of a comparison: the first host in a file.
fn side(path: &PathBuf, readers: &Readers, unread: &mut Unread) -> Result<Observed, Error> {
    let first = snapshots(slice::from_ref(path), readers, unread)?
        .into_iter()
        .next();
    first
        .map(Observed::once)
        .ok_or_else(|| Error::failed(format!("{}: no facts in it", path.display())))
}

/// Snapshots of files, of all files of directories, or of the standard input.
fn snapshots(
    paths: &[PathBuf],
    readers: &Readers,
    unread: &mut Unread,
) -> Result<Vec<Snapshot>, Error> {
    let mut texts = Vec::new();
    for path in paths {
        for file in files(path)? {
            let name = file.file_stem().map_or_else(
                || "input".into(),
                |name| name.to_string_lossy().into_owned(),
            );
            texts.push((name, read(&file, readers).map_err(at(&file))?));
        }
    }

    let texts: Vec<(&str, &str)> = texts
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let Imported {
        snapshots,
        understood,
        unread: lines,
        unread_count,
        unread_subjects,
        ..
    } = (readers.import)(&texts);

    let names = || {
        paths
            .iter()
            .map(|path| path.display().to_string())
            .collect::<Vec<_>>()
            .join(", ")
    };
    if understood == 0 {
        let Some(first) = lines.first() else {
            return Err(Error::failed(format!("{}: no facts in it", names())));
        };
        return Err(Error::failed(format!(
            "{}: nothing in it was understood ({unread_count} lines, the first: {first}); expected output of \
             ethtool, lspci, ip, tc, ping, mtr, nstat, netstat -s, lscpu, vmstat, dmesg, iperf3, \
             iperf or a file of --save",
            names()
        )));
    }

    unread.lines.extend(lines);
    unread.count = unread.count.saturating_add(unread_count);
    unread.subjects.extend(unread_subjects);
    Ok(snapshots)
}

fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }

    let entries = fs::read_dir(path).map_err(at(path))?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .take(FILES_MAX)
        .collect();
    // readdir(3) has no order, and two diagnoses of one folder must not differ.
    files.sort_unstable();

    Ok(files)
}

/// The beginning of a file. Bytes that are no text are replaced.
fn read(path: &Path, readers: &Readers) -> io::Result<String> {
    let limit = u64::try_from(TEXT_BYTES_MAX).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();

    if path == Path::new("-") {
        io::stdin().take(limit).read_to_end(&mut bytes)?;
    } else {
        fs::File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    }

    (readers.decode)(&bytes)
}

fn save(path: &Path, observed: &[Observed]) -> Result<(), Error> {
    let [one] = observed else {
        return Err(Error::failed("--save keeps the facts of one host"));
    };
    let mut text = serde_json::to_string(&one.snapshot).map_err(Error::failed)?;
    text.push('\n');
    fs::write(path, text).map_err(at(path))
}
