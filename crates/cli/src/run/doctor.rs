//! Carries out `linerate doctor`: collects or reads facts, has them judged, writes the report. Changes nothing.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::thread;

use linerate_doctor::arithmetic::{self, Encapsulation, Network, Transport};
use linerate_doctor::{Observed, catalogue, compare, diagnose};
use linerate_host::import::{TEXT_BYTES_MAX, import};
use linerate_host::{Request, collect};
use linerate_model::facts;
use linerate_model::finding::{Diagnosis, Severity};
use linerate_model::snapshot::Snapshot;
use linerate_report::doctor as report;
use linerate_sys::error::io_text;

use crate::cli::doctor::DoctorArgs;
use crate::exit_code::ExitCode;
use crate::run::watch::{STEP, Watch};

/// Something that keeps facts from being judged.
type Trouble = String;

/// Files one directory may contribute.
const FILES_MAX: usize = 1000;

pub(crate) fn run_doctor(args: &DoctorArgs) -> ExitCode {
    if let Some(id) = &args.explain {
        return explain(id);
    }
    if let Some(key) = &args.explain_fact {
        return explain_fact(key);
    }
    if args.ceiling {
        return print(&ceilings());
    }
    if let Some(unknown) = args
        .only
        .iter()
        .find(|id| !catalogue().any(|rule| rule.id.eq_ignore_ascii_case(id)))
    {
        return complain(&format!("there is no rule {unknown}"), ExitCode::Usage);
    }
    match judged(args) {
        Ok(diagnosis) => {
            let written = print(&text(args, &diagnosis));
            match args.fail_on {
                Some(level) if written == ExitCode::Done && is_at_least(&diagnosis, level.into()) => ExitCode::Found,
                _ => written,
            }
        }
        Err(trouble) => complain(&trouble, ExitCode::NotCompleted),
    }
}

fn is_at_least(diagnosis: &Diagnosis, level: Severity) -> bool {
    diagnosis.findings.iter().any(|finding| finding.severity >= level)
}

fn text(args: &DoctorArgs, diagnosis: &Diagnosis) -> String {
    match (args.json, args.fix_script) {
        (true, _) => report::json(diagnosis),
        (false, true) => report::fix_script(diagnosis),
        (false, false) => report::text(diagnosis, args.verbose),
    }
}

fn judged(args: &DoctorArgs) -> Result<Diagnosis, Trouble> {
    let mut unread = Vec::new();
    let mut observed = match (args.diff.is_empty(), args.from.is_empty()) {
        (false, _) => {
            let sides: Result<Vec<_>, _> = args.diff.iter().map(|path| side(path, &mut unread)).collect();
            sides?
        }
        (true, false) => {
            let read: Result<Vec<_>, _> = args.from.iter().map(|path| snapshots(path, &mut unread)).collect();
            read?.into_iter().flatten().map(Observed::once).collect()
        }
        (true, true) => vec![live(args)?],
    };
    if let Some(rate) = args.line_rate {
        for one in &mut observed {
            one.snapshot
                .set_in("path.line_rate_mbps", rate, "Mbit/s", "command line");
        }
    }
    if let Some(path) = &args.save {
        save(path, &observed)?;
    }
    let mut diagnosis = match (args.diff.is_empty(), observed.as_slice()) {
        (false, [a, b]) => compare(a, b, &args.only),
        _ => diagnose(&observed, &args.only),
    };
    diagnosis.unread = unread;
    Ok(diagnosis)
}

/// Reads this host: once, or once a second over the window.
fn live(args: &DoctorArgs) -> Result<Observed, Trouble> {
    let request = Request {
        interfaces: args.interfaces.clone(),
        peer: args.to.as_deref().map(address).transpose()?,
        own_threads: false,
    };
    let first = collect(&request);
    if let Some(name) = args.interfaces.iter().find(|name| {
        first.absence(&format!("nic.{name}.link")) == Some(linerate_model::snapshot::Absence::NoSuchDevice)
    }) {
        return Err(format!("there is no interface {name}"));
    }
    let Some(length) = args.window else {
        return Ok(Observed::once(first));
    };
    let watch = Watch::start(request, STEP.min(length / 2)).ok_or("the system has no thread to spare")?;
    thread::sleep(length);
    watch
        .finish()
        .ok_or_else(|| "the counters could not be read".to_owned())
}

/// The first address of a name.
fn address(name: &str) -> Result<IpAddr, Trouble> {
    let mut addresses = (name, 0)
        .to_socket_addrs()
        .map_err(|error| format!("{name}: {error}"))?;
    let first = addresses.next().ok_or_else(|| format!("{name}: no address"))?;
    Ok(first.ip())
}

/// One side of a comparison: the first host a file speaks of.
fn side(path: &Path, unread: &mut Vec<String>) -> Result<Observed, Trouble> {
    let first = snapshots(path, unread)?.into_iter().next();
    first
        .map(Observed::once)
        .ok_or_else(|| format!("{}: no facts in it", path.display()))
}

/// Snapshots of a file, of all files of a directory, or of the standard input.
fn snapshots(path: &Path, unread: &mut Vec<String>) -> Result<Vec<Snapshot>, Trouble> {
    let (mut found, mut understood) = (Vec::new(), 0);
    for file in files(path)? {
        let text = read(&file).map_err(|error| format!("{}: {}", file.display(), io_text(&error)))?;
        let name = file
            .file_stem()
            .map_or_else(|| "input".into(), |name| name.to_string_lossy());
        let imported = import(&name, &text);
        understood += imported.understood;
        unread.extend(imported.unread);
        found.extend(imported.snapshots);
    }
    if found.is_empty() {
        return Err(format!("{}: no facts in it", path.display()));
    }
    if understood == 0 {
        return Err(format!(
            "{}: nothing in it was understood; expected output of ethtool, lspci, ip, tc, iperf3 or a file of --save",
            path.display()
        ));
    }
    Ok(found)
}

fn files(path: &Path) -> Result<Vec<PathBuf>, Trouble> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).map_err(|error| format!("{}: {}", path.display(), io_text(&error)))?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .take(FILES_MAX)
        .collect();
    files.sort();
    Ok(files)
}

/// The beginning of a file, as far as it is looked at. Bytes that are no text are replaced.
fn read(path: &Path) -> io::Result<String> {
    let limit = u64::try_from(TEXT_BYTES_MAX).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        io::stdin().take(limit).read_to_end(&mut bytes)?;
    } else {
        fs::File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn save(path: &Path, observed: &[Observed]) -> Result<(), Trouble> {
    let [one] = observed else {
        return Err("--save keeps the facts of one host".to_owned());
    };
    let mut text = serde_json::to_string(&one.snapshot).map_err(|error| error.to_string())?;
    text.push('\n');
    fs::write(path, text).map_err(|error| format!("{}: {}", path.display(), io_text(&error)))
}

fn explain(id: &str) -> ExitCode {
    let Some(rule) = catalogue().find(|rule| rule.id.eq_ignore_ascii_case(id)) else {
        return complain(&format!("there is no rule {id}"), ExitCode::Usage);
    };
    print(&format!(
        "{}  {}\n\n{}\n\nseverity    {}\nconfidence  {} at best\nsee         {}\n",
        rule.id,
        rule.title,
        rule.explanation,
        rule.severity.name(),
        rule.confidence.name(),
        rule.reference
    ))
}

/// Explains the fact of a key, or lists the keys of all facts.
fn explain_fact(key: &str) -> ExitCode {
    if key.is_empty() {
        let lines = facts::all().map(|fact| format!("{:<34} {:<14} {}\n", fact.pattern, fact.unit, fact.meaning));
        return print(&lines.collect::<String>());
    }
    match facts::find(key) {
        Some(fact) => print(&format!(
            "{}  {}\n\nunit    {}\nsource  {}\n",
            fact.pattern, fact.meaning, fact.unit, fact.source
        )),
        None => complain(
            &format!("there is no fact {key}; --explain-fact lists all"),
            ExitCode::Usage,
        ),
    }
}

/// Tables of what can be reached at best.
fn ceilings() -> String {
    use std::fmt::Write as _;
    let mut out = String::from(
        "Goodput of a 1 Gbit/s link in Mbit/s (linear in speed)\n   MTU    TCP/4 TCP/4 ts    TCP/6 TCP/6 ts    UDP/4    UDP/6\n",
    );
    let columns = [
        (Network::V4, Transport::Tcp),
        (Network::V4, Transport::TcpTimestamps),
        (Network::V6, Transport::Tcp),
        (Network::V6, Transport::TcpTimestamps),
        (Network::V4, Transport::Udp),
        (Network::V6, Transport::Udp),
    ];
    for mtu in [576.0, 1280.0, 1400.0, 1500.0, 9000.0] {
        let _ = write!(out, "{mtu:>6}");
        for (network, transport) in columns {
            let ceiling = arithmetic::goodput_ceiling(1000.0, mtu, network, transport, Encapsulation::default());
            let _ = write!(out, " {:>8.1}", ceiling.unwrap_or(0.0));
        }
        out.push('\n');
    }
    out.push_str(
        "\nPCI Express, one direction, 128 bytes per packet, in Gbit/s\n   GT/s       x1       x4       x8      x16\n",
    );
    for speed in [2.5, 5.0, 8.0, 16.0, 32.0, 64.0] {
        let _ = write!(out, "{speed:>7}");
        for lanes in [1.0, 4.0, 8.0, 16.0] {
            let usable = arithmetic::pcie_usable_bps(speed, lanes, 128.0).unwrap_or(0.0);
            let _ = write!(out, " {:>8.1}", usable / 1e9);
        }
        out.push('\n');
    }
    out.push_str("\nBytes in flight that fill the path, in MB; a receive buffer needs twice as much\n   RTT ms   1 Gbit/s  10 Gbit/s 100 Gbit/s\n");
    for rtt_ms in [0.1, 1.0, 10.0, 100.0] {
        let _ = write!(out, "{rtt_ms:>9}");
        for rate in [1e9, 1e10, 1e11] {
            let _ = write!(out, " {:>10.3}", arithmetic::bdp_bytes(rate, rtt_ms * 1000.0) / 1e6);
        }
        out.push('\n');
    }
    out
}

fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => complain(
            &format!("cannot write to the standard output: {error}"),
            ExitCode::NotCompleted,
        ),
        _ => ExitCode::Done,
    }
}

fn complain(trouble: &str, code: ExitCode) -> ExitCode {
    let _ = writeln!(io::stderr(), "linerate doctor: {trouble}");
    code
}
