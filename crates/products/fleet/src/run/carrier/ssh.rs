//! Agents over the user's ssh(1): one child process and one channel for each host and the whole
//! run.
//!
//! `ssh -G` prints the jump host of a destination, then a connection starts the agent. A host
//! without one receives a copy of this program over a second connection, and is connected again.

mod command;
mod failure;
mod options;
mod slots;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Stdio;
use std::time::Duration;

use crate::protocol::line::{NOISE_MAX_BYTES, Opening, OpeningReader};
use linerate_sys::clock::monotonic_ns;
use linerate_sys::poll::Epoll;

use crate::run::carrier::piped_child::{PipedChild, TOKENS, ended, last_line};
use crate::run::carrier::{Carrier, HostEvent};
pub use options::SshOptions;
use slots::Slots;

/// Shortest time until a connection is repeated; the longest is four times as long.
const RETRY_NS: u64 = 1_000_000_000;

/// Time from the end of a connection to `SIGKILL`.
const CLOSE_NS: u64 = 2_000_000_000;

/// Program at the hosts.
#[derive(Debug)]
pub enum Remote {
    /// The agent with these arguments, words without characters of a shell: installed, or a copy of
    /// this program, which has this hash.
    Agent {
        /// SHA-256, hexadecimal.
        sha256: String,
        /// Arguments.
        arguments: String,
    },
    /// sh(1), which prints `LRF ready` before it reads commands.
    Shell,
}

impl Remote {
    /// This program with these arguments.
    ///
    /// # Errors
    /// Its file is not readable.
    pub fn agent(arguments: String) -> io::Result<Self> {
        Ok(Self::Agent {
            sha256: command::sha256()?,
            arguments,
        })
    }
}

/// Agents or shells over ssh.
#[derive(Debug)]
pub struct SshCarrier {
    options: SshOptions,
    remote: Remote,
    epoll: Epoll,
    slots: Slots,
    hosts: Vec<Host>,
}

#[derive(Debug)]
struct Host {
    destination: String,
    jump: Option<String>,
    phase: Phase,
    /// The process of the phase.
    child: Option<PipedChild>,
    has_slot: bool,
    /// When the process of the phase may start.
    start_at_ns: u64,
    attempts: u32,
    has_copied: bool,
    /// Nothing more is reported.
    is_closed: bool,
}

/// Work of the process of a host.
#[derive(Debug)]
enum Phase {
    /// `ssh -G`, with what it has printed.
    Resolve(String),
    /// The agent's first line is awaited.
    Connect {
        opening: OpeningReader,
        need: Option<String>,
        error: Option<String>,
    },
    /// The program is copied to a host with this system and machine.
    Copy(String),
    /// The agent is there.
    Ready,
}

impl Phase {
    fn connect() -> Self {
        Self::Connect {
            opening: OpeningReader::default(),
            need: None,
            error: None,
        }
    }
}

impl SshCarrier {
    /// Connects to these destinations of ssh; the first call of [`Carrier::poll`] begins.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new(
        options: SshOptions,
        remote: Remote,
        destinations: impl IntoIterator<Item = String>,
    ) -> io::Result<Self> {
        let epoll = Epoll::new().map_err(|error| error.source)?;
        let hosts = destinations.into_iter().map(Host::new).collect();
        Ok(Self {
            options,
            remote,
            epoll,
            slots: Slots::default(),
            hosts,
        })
    }

    /// Starts what may start now.
    fn start_due(&mut self, now_ns: u64, events: &mut Vec<(usize, HostEvent)>) {
        for (index, host) in self.hosts.iter_mut().enumerate() {
            let is_due = !host.is_closed && host.child.is_none() && now_ns >= host.start_at_ns;
            if !is_due {
                continue;
            }

            if !self.slots.take(host.jump.as_deref()) {
                // The event that frees a slot is awaited, no time.
                host.start_at_ns = 0;
                continue;
            }

            host.has_slot = true;
            let first_token = (index as u64).saturating_mul(TOKENS);
            match host.start(&self.options, &self.remote, first_token, &self.epoll) {
                Ok(child) => host.child = Some(child),
                Err(reason) => {
                    host.free(&mut self.slots);
                    events.extend(host.lose(reason).map(|event| (index, event)));
                }
            }
        }
    }
}

impl Carrier for SshCarrier {
    fn send(&mut self, host: usize, line: &str) {
        if let Some(Host {
            phase: Phase::Ready,
            child: Some(child),
            ..
        }) = self.hosts.get_mut(host)
        {
            child.send(line, &self.epoll);
        }
    }

    fn close(&mut self, host: usize) {
        let Some(host) = self.hosts.get_mut(host) else {
            return;
        };
        host.is_closed = true;

        if let Some(child) = &mut host.child {
            child.close(monotonic_ns());
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn deadline_ns(&self) -> Option<u64> {
        let mut next_ns: Option<u64> = None;
        for host in &self.hosts {
            let at_ns = match &host.child {
                Some(child) => child.deadline_ns(),
                // A host that waits for a slot is started when another one gives it back, which is
                // an event.
                None if host.is_closed || host.start_at_ns == 0 => None,
                None => Some(host.start_at_ns),
            };
            next_ns = next_ns.into_iter().chain(at_ns).min();
        }

        next_ns
    }

    fn poll(&mut self, now_ns: u64) -> Vec<(usize, HostEvent)> {
        let mut events = Vec::new();
        let mut ready = Vec::new();
        // Fails only when memory is short; the owner polls again.
        let _ = self.epoll.wait(&mut ready, Some(Duration::ZERO));
        for event in ready {
            let index = (event.token / TOKENS) as usize;
            let host = &mut self.hosts[index];
            let Some(child) = &mut host.child else {
                continue;
            };
            for output in child.handle_ready(event.token, now_ns, &self.epoll) {
                let event = host.receive(output, now_ns, &mut self.slots);
                events.extend(event.map(|event| (index, event)));
            }
        }

        for (index, host) in self.hosts.iter_mut().enumerate() {
            let Some(child) = &mut host.child else {
                continue;
            };
            let Some(status) = child.handle_timeout(now_ns) else {
                continue;
            };
            host.free(&mut self.slots);
            let code = status.and_then(|status| status.code());
            events.extend(host.end(code, now_ns).map(|event| (index, event)));
        }

        self.start_due(now_ns, &mut events);
        events
    }

    fn has_open(&self) -> bool {
        self.hosts.iter().any(|host| host.child.is_some())
    }
}

impl Host {
    fn new(destination: String) -> Self {
        Self {
            destination,
            jump: None,
            phase: Phase::Resolve(String::new()),
            child: None,
            has_slot: false,
            start_at_ns: 0,
            attempts: 0,
            has_copied: false,
            is_closed: false,
        }
    }

    fn start(
        &mut self,
        options: &SshOptions,
        remote: &Remote,
        first_token: u64,
        epoll: &Epoll,
    ) -> Result<PipedChild, String> {
        let mut input = Stdio::piped();
        let remote = match (&self.phase, remote) {
            (Phase::Resolve(_), _) => {
                input = Stdio::null();
                None
            }
            (Phase::Copy(machine), Remote::Agent { sha256, .. }) => {
                input = command::open_for(machine)?.into();
                Some(command::copy(sha256))
            }
            // Only connections count as attempts; the copy and the configuration have one each.
            (_, remote) => {
                self.attempts += 1;
                Some(match remote {
                    Remote::Agent { sha256, arguments } => command::start(sha256, arguments),
                    Remote::Shell => command::shell(),
                })
            }
        };

        let mut command = match remote {
            Some(remote) => options::connect(options, &self.destination, &remote),
            None => options::print_configuration(options, &self.destination),
        };
        command.stdin(input).stderr(Stdio::piped());
        PipedChild::start(command, CLOSE_NS, first_token, epoll)
            .map_err(|error| format!("ssh: {error}"))
    }

    /// Takes output of the process.
    fn receive(&mut self, output: HostEvent, now_ns: u64, slots: &mut Slots) -> Option<HostEvent> {
        match (&mut self.phase, output) {
            (Phase::Ready, event) if !self.is_closed => return Some(event),
            // The configuration of one host is short.
            (Phase::Resolve(text), HostEvent::Line(line)) if text.len() < NOISE_MAX_BYTES => {
                *text += &String::from_utf8_lossy(&line);
                *text += "\n";
            }
            (Phase::Connect { .. }, output) => self.open(output, now_ns, slots),
            _ => {}
        }

        None
    }

    /// Looks for the agent's first line.
    fn open(&mut self, output: HostEvent, now_ns: u64, slots: &mut Slots) {
        let Phase::Connect {
            opening,
            need,
            error,
        } = &mut self.phase
        else {
            return;
        };
        let mut line = match output {
            HostEvent::Line(line) => line,
            // An end or a line that is too long exceeds the bound of the noise and ends the search.
            _ => vec![b'x'; NOISE_MAX_BYTES],
        };
        line.push(b'\n');

        match opening.read(&mut line.as_slice()) {
            Ok(None) => {}
            Ok(Some(Opening::Need(machine))) => *need = Some(machine),
            Ok(Some(Opening::Agent)) => {
                self.phase = Phase::Ready;
                self.free(slots);
            }
            Err(wrong) => {
                *error = Some(wrong.to_string());
                if let Some(child) = &mut self.child {
                    child.close(now_ns);
                }
            }
        }
    }

    /// The process of the phase has ended: what follows.
    fn end(&mut self, code: Option<i32>, now_ns: u64) -> Option<HostEvent> {
        let errors = self
            .child
            .take()
            .map(|child| child.error_text())
            .unwrap_or_default();
        let phase = std::mem::replace(&mut self.phase, Phase::connect());
        match phase {
            Phase::Resolve(configuration) => {
                self.jump = options::jump_host(&configuration);
                None
            }
            Phase::Connect {
                need: Some(machine),
                ..
            } if !self.has_copied => {
                self.phase = Phase::Copy(machine);
                None
            }
            // The copy ended without an error, so a second one would not help.
            Phase::Connect { need: Some(_), .. } => {
                self.lose("the copied agent was not found on the host".to_owned())
            }
            Phase::Connect {
                error: Some(error), ..
            } => self.lose(error),
            Phase::Connect { .. } => {
                if code == Some(SSH_ERROR_CODE) && self.attempts < failure::attempts_max(&errors) {
                    let wait_ns = fastrand::u64(RETRY_NS..=4 * RETRY_NS);
                    self.start_at_ns = now_ns.saturating_add(wait_ns);
                    return None;
                }

                let reason = last_line(&errors).unwrap_or_else(|| ended(code));
                self.lose(match failure::advice(&errors) {
                    Some(step) => format!("{reason}; {step}"),
                    None => reason,
                })
            }
            Phase::Copy(_) if code == Some(0) => {
                // The copy is a success of the login, so failures count from here again.
                (self.has_copied, self.attempts) = (true, 0);
                None
            }
            Phase::Copy(_) => self.lose(failure::of_copy(code, last_line(&errors))),
            Phase::Ready => self
                .lose(last_line(&errors).unwrap_or_else(|| format!("the agent {}", ended(code)))),
        }
    }

    fn lose(&mut self, reason: String) -> Option<HostEvent> {
        let is_reported = !std::mem::replace(&mut self.is_closed, true);
        is_reported.then_some(HostEvent::Lost { reason })
    }

    fn free(&mut self, slots: &mut Slots) {
        if std::mem::take(&mut self.has_slot) {
            slots.free(self.jump.as_deref());
        }
    }
}

/// Exit code of ssh(1) when it failed itself.
const SSH_ERROR_CODE: i32 = 255;
