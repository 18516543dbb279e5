//! Workers of a load: threads of this process, or of worker processes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::ops::Range;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;

use linerate_sys::clock;
use serde::{Deserialize, Serialize};

use super::run_state::{CommandSlot, Message, WorkerCommand};
use super::spec::LoadSpec;
use super::worker::LoadWorker;
use super::{by_hyper, event_loop};
use crate::client::Client;

/// Division of a load among workers.
#[derive(Debug)]
pub struct WorkerPool {
    /// Workers of all processes together, at least one.
    pub workers: u32,
    /// Worker processes; `None` for threads of this process.
    pub processes: Option<Processes>,
}

/// Worker processes: each runs a program that calls [`work`] with its standard input and output.
#[derive(Debug)]
pub struct Processes {
    /// The program.
    pub program: std::path::PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Number of processes.
    pub count: u32,
}

/// First line of input of a worker process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WorkerAssignment {
    pub spec: LoadSpec,
    /// Workers of the process.
    pub workers: Range<u32>,
    /// Workers of all processes.
    pub workers_total: u32,
}

/// Running workers.
#[derive(Debug)]
pub(crate) struct Workers {
    handles: Vec<Worker>,
    pub total: u32,
}

#[derive(Debug)]
enum Worker {
    Thread(Arc<CommandSlot>),
    Process(Child, Option<ChildStdin>),
}

impl Workers {
    /// Starts all workers; they report through `reports`.
    ///
    /// # Errors
    /// A thread, process or descriptor could not be created.
    pub(crate) fn start(
        spec: &Arc<LoadSpec>,
        pool: &WorkerPool,
        reports: &Sender<Message>,
    ) -> io::Result<Self> {
        let total = pool
            .workers
            .clamp(1, WORKERS_MAX)
            // A worker without a connection would have no part in the load.
            .min(spec.connections.max(1));
        let mut workers = Self {
            handles: Vec::new(),
            total,
        };

        match &pool.processes {
            None => {
                let commands = start_threads(spec, 0..total, total, reports)?;
                workers
                    .handles
                    .extend(commands.into_iter().map(Worker::Thread));
            }
            Some(processes) => {
                let count = processes.count.clamp(1, total);
                for index in 0..count {
                    // Parts differ by one worker at most.
                    let part = total * index / count..total * (index + 1) / count;
                    let process = start_process(spec, processes, part, total, reports)?;
                    workers.handles.push(process);
                }
            }
        }

        Ok(workers)
    }

    /// PIDs of the worker processes.
    pub(crate) fn process_ids(&self) -> Vec<u32> {
        let number = |worker: &Worker| match worker {
            Worker::Process(child, _) => Some(child.id()),
            Worker::Thread(_) => None,
        };
        self.handles.iter().filter_map(number).collect()
    }

    pub(crate) fn send(&mut self, command: WorkerCommand) {
        for worker in &mut self.handles {
            match worker {
                Worker::Thread(commands) => commands.send(command),
                // A process that has exited is reported by the end of its output.
                Worker::Process(_, Some(input)) => drop(write_line(input, &command)),
                Worker::Process(_, None) => {}
            }
        }
    }
}

impl Drop for Workers {
    /// Threads stop on command, processes at the end of their input.
    fn drop(&mut self) {
        // All receive the command before the first is awaited, so that they stop at the same time.
        self.send(WorkerCommand::Stop);
        for worker in &mut self.handles {
            if let Worker::Process(child, input) = worker {
                drop(input.take());
                // A child that is not waited for remains as a zombie (wait(2)).
                let _ = child.wait();
            }
        }
    }
}

/// Main function of a worker process: reads its assignment, runs its workers, forwards commands and
/// messages.
///
/// # Errors
/// Invalid input, or a thread or descriptor could not be created.
pub fn work(input: impl Read + Send + 'static, mut output: impl Write) -> io::Result<()> {
    let mut lines = BufReader::new(input);
    let assignment: WorkerAssignment =
        read_line(&mut lines)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let (reports, messages) = std::sync::mpsc::channel();
    let spec = Arc::new(assignment.spec);
    let commands = start_threads(
        &spec,
        assignment.workers,
        assignment.workers_total,
        &reports,
    )?;

    // The messages end when the last worker has dropped its sender.
    drop(reports);
    thread::spawn(move || {
        let give = |command| commands.iter().for_each(|worker| worker.send(command));
        while let Ok(Some(command)) = read_line(&mut lines) {
            give(command);
        }

        // The coordinator has exited.
        give(WorkerCommand::Stop);
    });

    for message in messages {
        write_line(&mut output, &message)?;
    }

    Ok(())
}

fn start_threads(
    spec: &Arc<LoadSpec>,
    workers: Range<u32>,
    workers_total: u32,
    reports: &Sender<Message>,
) -> io::Result<Vec<Arc<CommandSlot>>> {
    let run = runner(spec)?;
    let mut all = Vec::new();

    for index in workers {
        let commands = Arc::new(CommandSlot::new()?);
        all.push(Arc::clone(&commands));
        let spec = Arc::clone(spec);
        let run = Arc::clone(&run);
        let reports = reports.clone();

        thread::Builder::new()
            .name(format!("load {index}"))
            .spawn(move || {
                // The default timer slack of the kernel is 50 µs.
                let _ = clock::set_timer_slack_ns(1);
                let worker =
                    LoadWorker::new(spec, (index, workers_total), commands, reports.clone());
                if let Err(error) = run(worker) {
                    let _ = reports.send(Message::Failed(format!(
                        "cannot start a thread's work: {error}"
                    )));
                }
            })?;
    }

    Ok(all)
}

/// Runs a worker with one implementation of HTTP.
type Runner = Arc<dyn Fn(LoadWorker) -> io::Result<()> + Send + Sync>;

/// The own event loop for HTTP/1.1 in plain text, hyper otherwise.
fn runner(spec: &LoadSpec) -> io::Result<Runner> {
    if spec.protocol.is_plain_http1() {
        return Ok(Arc::new(event_loop::run));
    }

    let client = Client::new(&spec.protocol, &spec.request)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let client = Arc::new(client);
    Ok(Arc::new(move |worker| {
        by_hyper::run(worker, Arc::clone(&client))
    }))
}

fn start_process(
    spec: &LoadSpec,
    processes: &Processes,
    workers: Range<u32>,
    workers_total: u32,
    reports: &Sender<Message>,
) -> io::Result<Worker> {
    let mut child = Command::new(&processes.program)
        .args(&processes.arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take();
    let count = workers.len();

    let assignment = WorkerAssignment {
        spec: spec.clone(),
        workers,
        workers_total,
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

    Ok(Worker::Process(child, input))
}

/// Forwards the messages of a process. One that exits before all of its `workers` have finished has
/// failed.
fn forward(output: impl Read, workers: usize, reports: &Sender<Message>) {
    let mut lines = BufReader::new(output);
    let mut left = workers;
    while left > 0 {
        let message = match read_line(&mut lines) {
            Ok(Some(message)) => message,
            Ok(None) => Message::Failed("a worker process ended early".to_owned()),
            Err(error) => Message::Failed(format!("a worker process: {error}")),
        };
        left -= usize::from(matches!(message, Message::Finished(_)));
        let is_over = matches!(message, Message::Failed(_));
        if reports.send(message).is_err() || is_over {
            return;
        }
    }
}

fn write_line(output: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}

fn read_line<T: serde::de::DeserializeOwned>(input: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    // A process that never ends its line must not fill the memory of this one.
    input.take(LINE_MAX_BYTES).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }

    let line = str::from_utf8(&line).map_err(io::Error::other)?;
    Ok(Some(serde_json::from_str(line)?))
}

/// Upper bound of threads.
const WORKERS_MAX: u32 = 1024;
/// A request with its body, and histograms.
const LINE_MAX_BYTES: u64 = 512 << 20;
