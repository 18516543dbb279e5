//! Who carries out a load: threads of this process, or worker processes with threads of their own.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::ops::Range;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;

use super::course::Orders;
use super::lane::Lane;
use super::message::{Assignment, Message, Order};
use super::spec::LoadSpec;

/// What a run is divided among.
#[derive(Debug)]
pub struct Crew {
    /// Lanes of all parts together, at least one.
    pub lanes: u32,
    /// How worker processes are started, and how many; absent for threads of this process.
    pub processes: Option<Processes>,
}

/// Worker processes: each runs a program that calls [`work`] with its standard input and output.
#[derive(Debug)]
pub struct Processes {
    /// The program.
    pub program: std::path::PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// How many.
    pub count: u32,
}

/// The lanes of a run, at work.
#[derive(Debug)]
pub(crate) struct Team {
    members: Vec<Member>,
    pub(crate) lanes: u32,
}

#[derive(Debug)]
enum Member {
    Lane(Arc<Orders>),
    Process(Child, Option<ChildStdin>),
}

impl Team {
    /// Starts all lanes; what they have to say comes through `reports`.
    ///
    /// # Errors
    /// A thread, process or descriptor that cannot be had.
    pub(crate) fn start(spec: &Arc<LoadSpec>, crew: &Crew, reports: &Sender<Message>) -> io::Result<Self> {
        let lanes = crew.lanes.clamp(1, LANES_MAX).min(spec.connections.max(1));
        let mut team = Self {
            members: Vec::new(),
            lanes,
        };
        match &crew.processes {
            None => {
                let orders = start_lanes(spec, 0..lanes, lanes, reports)?;
                team.members.extend(orders.into_iter().map(Member::Lane));
            }
            Some(processes) => {
                let count = processes.count.clamp(1, lanes);
                for index in 0..count {
                    let part = lanes * index / count..lanes * (index + 1) / count;
                    team.members.push(start_process(spec, processes, part, lanes, reports)?);
                }
            }
        }
        Ok(team)
    }

    /// Numbers of the worker processes.
    pub(crate) fn workers(&self) -> Vec<u32> {
        let number = |member: &Member| match member {
            Member::Process(child, _) => Some(child.id()),
            Member::Lane(_) => None,
        };
        self.members.iter().filter_map(number).collect()
    }

    pub(crate) fn order(&mut self, order: Order) {
        for member in &mut self.members {
            match member {
                Member::Lane(orders) => orders.give(order),
                // A process that is gone has said so by the end of its output.
                Member::Process(_, Some(input)) => drop(write_line(input, &order)),
                Member::Process(_, None) => {}
            }
        }
    }
}

impl Drop for Team {
    /// Lanes end by themselves when told; processes when their input ends.
    fn drop(&mut self) {
        self.order(Order::Stop);
        for member in &mut self.members {
            if let Member::Process(child, input) = member {
                drop(input.take());
                let _ = child.wait();
            }
        }
    }
}

/// The main job of a worker process: reads its [`Assignment`], runs its lanes, passes on orders and messages.
///
/// # Errors
/// What is wrong with the input, or a thread or descriptor that cannot be had.
pub fn work(input: impl Read + Send + 'static, mut output: impl Write) -> io::Result<()> {
    let mut lines = BufReader::new(input);
    let assignment: Assignment = read_line(&mut lines)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let (reports, messages) = std::sync::mpsc::channel();
    let spec = Arc::new(assignment.spec);
    let orders = start_lanes(&spec, assignment.lanes, assignment.lanes_total, &reports)?;
    drop(reports);
    thread::spawn(move || {
        let give = |order| orders.iter().for_each(|lane| lane.give(order));
        while let Ok(Some(order)) = read_line(&mut lines) {
            give(order);
        }
        // Whoever gave the orders is gone.
        give(Order::Stop);
    });
    for message in messages {
        write_line(&mut output, &message)?;
    }
    Ok(())
}

fn start_lanes(
    spec: &Arc<LoadSpec>,
    lanes: Range<u32>,
    lanes_total: u32,
    reports: &Sender<Message>,
) -> io::Result<Vec<Arc<Orders>>> {
    let kind = Kind::of(spec)?;
    let mut all = Vec::new();
    for index in lanes {
        let orders = Arc::new(Orders::new()?);
        all.push(Arc::clone(&orders));
        let (spec, kind, reports) = (Arc::clone(spec), kind.clone(), reports.clone());
        thread::Builder::new().name(format!("load {index}")).spawn(move || {
            if let Err(error) = kind.run(spec, (index, lanes_total), orders, reports.clone()) {
                let _ = reports.send(Message::Failed(format!("cannot start a thread's work: {error}")));
            }
        })?;
    }
    Ok(all)
}

/// Who speaks on the connections of a lane.
#[derive(Clone)]
enum Kind {
    /// The event loop of our own: HTTP/1.1 in plain text.
    Own,
    /// hyper.
    #[cfg(feature = "tls")]
    Hyper(Arc<crate::client::Client>),
}

impl Kind {
    fn of(spec: &LoadSpec) -> io::Result<Self> {
        if spec.protocol.is_plain_http1() {
            return Ok(Self::Own);
        }
        #[cfg(feature = "tls")]
        return match crate::client::Client::new(&spec.protocol, &spec.request) {
            Ok(client) => Ok(Self::Hyper(Arc::new(client))),
            Err(text) => Err(io::Error::new(io::ErrorKind::InvalidInput, text)),
        };
        #[cfg(not(feature = "tls"))]
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this build speaks neither TLS nor HTTP/2",
        ))
    }

    fn run(
        self,
        spec: Arc<LoadSpec>,
        place: (u32, u32),
        orders: Arc<Orders>,
        reports: Sender<Message>,
    ) -> io::Result<()> {
        match self {
            Self::Own => {
                Lane::new(&spec, place, orders, reports)?.run();
                Ok(())
            }
            #[cfg(feature = "tls")]
            Self::Hyper(client) => super::hyper_lane::run(super::hyper_lane::Job {
                spec,
                client,
                place,
                orders,
                reports,
            }),
        }
    }
}

fn start_process(
    spec: &LoadSpec,
    processes: &Processes,
    lanes: Range<u32>,
    lanes_total: u32,
    reports: &Sender<Message>,
) -> io::Result<Member> {
    let mut child = Command::new(&processes.program)
        .args(&processes.arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take();
    let count = lanes.len();
    let assignment = Assignment {
        spec: spec.clone(),
        lanes,
        lanes_total,
    };
    if let Some(input) = &mut input {
        write_line(input, &assignment)?;
    }
    if let Some(output) = child.stdout.take() {
        let reports = reports.clone();
        thread::Builder::new()
            .name("worker".to_owned())
            .spawn(move || forward(output, count, &reports))?;
    }
    Ok(Member::Process(child, input))
}

/// Passes on what a process says. One that ends before all of its `lanes` are through has failed.
fn forward(output: impl Read, lanes: usize, reports: &Sender<Message>) {
    let mut lines = BufReader::new(output);
    let mut left = lanes;
    while left > 0 {
        match read_line::<Message>(&mut lines) {
            Ok(Some(message)) => {
                left -= usize::from(matches!(message, Message::Finished(_)));
                if reports.send(message).is_err() {
                    return;
                }
            }
            Ok(None) => return drop(reports.send(Message::Failed("a worker process ended early".to_owned()))),
            Err(error) => return drop(reports.send(Message::Failed(format!("a worker process: {error}")))),
        }
    }
}

fn write_line(output: &mut impl Write, value: &impl serde::Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}

fn read_line<T: serde::de::DeserializeOwned>(input: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    input.take(LINE_MAX_BYTES).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&line)?))
}

/// Threads beyond this number are a mistake.
const LANES_MAX: u32 = 1024;
/// A request with its body, and histograms.
const LINE_MAX_BYTES: u64 = 512 << 20;
