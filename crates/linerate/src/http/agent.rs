//! `linerate http agent`: the control channel with the measurements of this host.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use linerate_host::{EnvironmentQuery, Tested, Watched, environment, listening_processes};
use linerate_http::control::{
    Agent, CellBegun, CellMark, Control, ControlSpec, Info, PROGRAM, Refusal, TCP_CAPABILITY,
};
use linerate_http::server::{ServerStats, ThreadStats};
use linerate_model::http::{EndpointStats, Reading};
use linerate_sys::process;

use super::restartable_server::RestartableServer;
use super::watch::{STEP, STEP_LONG, Watch, cannot_watch};
use crate::Error;
use crate::server::in_use;

/// An agent, resolved.
#[derive(Debug)]
pub struct AgentSpec {
    /// What is measured.
    pub watched: Watched,
    /// Address and access of the channel.
    pub control: ControlChannel,
}

impl AgentSpec {
    /// Observes the process `pid`, or else the listeners of a TCP port, or else this process; with a port also its connections.
    ///
    /// # Errors
    /// No such process, or no listener on the port.
    pub fn find(pid: Option<u32>, listen_port: Option<u16>, control: ControlChannel) -> Result<Self, Error> {
        let is_alive = |pid: u32| i32::try_from(pid).is_ok_and(process::pid_is_alive);
        let pids = match (pid, listen_port) {
            (Some(pid), _) if is_alive(pid) => vec![pid],
            (Some(pid), _) => return Err(Error::usage(format!("--pid {pid}: there is no such process"))),
            (None, Some(port)) => {
                listening_processes(port).map_err(|why| Error::usage(format!("--listen-port {port}: {why}")))?
            }
            (None, None) => vec![std::process::id()],
        };
        let tested = listen_port.map_or(Tested::Nothing, |port| Tested::Server { port });
        Ok(Self { watched: Watched { pids, tested }, control })
    }
}

/// A control channel, resolved.
#[derive(Debug, Clone)]
pub struct ControlChannel {
    /// The channel.
    pub spec: ControlSpec,
    /// The token was generated and must be printed.
    pub is_token_new: bool,
    /// File with the token.
    pub token_file: Option<PathBuf>,
    /// The address was given, so that no other will do.
    pub is_address_chosen: bool,
    /// What the operator should know: the token file is readable for others.
    pub warning: Option<String>,
}

/// Observation period of the load of other programs.
const LOOK_WINDOW: Duration = Duration::from_millis(300);
/// Longer cells are sampled less often.
const LONG_MS: u64 = 60_000;

/// A control channel with measurements of this host, open until it is dropped.
pub struct RunningAgent {
    _control: Control,
    /// What is observed, address and generated token, one line each.
    pub introduction: String,
}

impl RunningAgent {
    /// Opens the channel.
    ///
    /// # Errors
    /// An address in use, or a host that cannot be observed.
    pub fn start(spec: &AgentSpec) -> Result<Self, Error> {
        let control = open(&spec.watched, None, &spec.control)?;
        Ok(Self { introduction: announcement(&spec.watched, control.address(), &spec.control), _control: control })
    }
}

/// Opens a control channel for the watched processes; `server` adds the threads of our own server.
///
/// # Errors
/// An address in use, or a host that cannot be observed.
pub(super) fn open(
    watched: &Watched,
    server: Option<Arc<RestartableServer>>,
    channel: &ControlChannel,
) -> Result<Control, Error> {
    let watch = Watch::start(watched.clone()).map_err(cannot_watch)?;
    let agent = HostAgent { watch, server, cells: Mutex::default() };
    Control::open(channel.spec.clone(), Arc::new(agent))
        .map_err(|error| Error::failed(in_use::explained_os(&error, "choose another one with --control")))
}

fn announcement(watched: &Watched, address: SocketAddr, channel: &ControlChannel) -> String {
    let pids: Vec<String> = watched.pids.iter().map(u32::to_string).collect();
    let port = tested_port(watched).map_or_else(String::new, |port| format!(", TCP port {port}"));
    let introduction = introduction(address, channel);
    format!("Watching process {}{port}\n{introduction}", pids.join(", "))
}

fn tested_port(watched: &Watched) -> Option<u16> {
    if let Tested::Server { port } = watched.tested { Some(port) } else { None }
}

/// Address and token of the channel, for the user to pass to the client.
pub(super) fn introduction(address: SocketAddr, channel: &ControlChannel) -> String {
    let mut text = format!("  control      http://{address}\n");
    if let Some(token) = channel.spec.token.as_ref().filter(|_| channel.is_token_new) {
        text.push_str(&format!("  token        {}\n", token.reveal()));
    }
    text
}

/// Agent for this host.
struct HostAgent {
    watch: Watch,
    server: Option<Arc<RestartableServer>>,
    cells: Mutex<Cells>,
}

#[derive(Default)]
struct Cells {
    /// The running cell, and the connections of each thread at its beginning.
    running: Option<(String, ServerStats)>,
    /// The cell in its warm-up.
    warming: Option<String>,
    /// The last cell: a client that missed the response repeats its request.
    ended: Option<(String, EndpointStats)>,
}

impl Agent for HostAgent {
    fn info(&self, peer: IpAddr) -> Info {
        let watched = self.watch.watched();
        let port = tested_port(&watched);
        let look = EnvironmentQuery {
            version: env!("CARGO_PKG_VERSION"),
            pids: &watched.pids,
            port,
            peer: Some(peer),
            period: LOOK_WINDOW,
        };
        let tcp_port = self.server.as_ref().and_then(|server| server.tcp_port);
        let restart = self.server.iter().map(|_| "restart-workers".to_owned());
        let capabilities = restart.chain(tcp_port.map(|port| format!("{TCP_CAPABILITY}{port}"))).collect();
        Info {
            program: PROGRAM.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            capabilities,
            port,
            environment: environment(&look),
            pids: watched.pids,
        }
    }

    fn begin_cell(&self, mark: &CellMark, peer: IpAddr) -> Result<CellBegun, Refusal> {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        let is_long = mark.expected_ms.is_some_and(|ms| ms > LONG_MS);
        let step = if is_long { STEP_LONG } else { STEP };
        let (at_ns, baseline) = if mark.is_warm_up {
            cells.running = None;
            cells.warming = Some(mark.id.clone());
            self.watch.prepare(Some(peer), step)
        } else {
            if cells.warming.take().as_ref() != Some(&mark.id) {
                self.watch.forget_seconds();
            }
            let server = self.server.as_ref().map(|server| server.stats()).unwrap_or_default();
            cells.running = Some((mark.id.clone(), server));
            self.watch.begin(Some(peer), step)
        };
        Ok(CellBegun { id: mark.id.clone(), at_ns, baseline })
    }

    fn end_cell(&self, id: &str) -> Result<EndpointStats, Refusal> {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, before)) = cells.running.take_if(|(running, _)| running == id) {
            let mut stats = self.watch.end().ok_or_else(|| Refusal::Failed("no window was begun".to_owned()))?;
            if let Some(server) = &self.server {
                let now = server.stats();
                stats.threads = u32::try_from(now.threads.len()).ok();
                stats.thread_imbalance = imbalance(&before.threads, &now.threads);
            }
            cells.ended = Some((id.to_owned(), stats));
        }
        match &cells.ended {
            Some((ended, stats)) if ended == id => Ok(stats.clone()),
            _ => Err(Refusal::Unknown(format!("no cell {id} runs here"))),
        }
    }

    fn readings(&self, from: u64, timeout: Duration) -> Vec<Reading> {
        self.watch.readings(from, timeout)
    }

    fn last_reading(&self) -> Option<Reading> {
        self.watch.last_reading()
    }

    fn restart_workers(&self) -> Result<(), Refusal> {
        match &self.server {
            Some(server) => server.restart(),
            None => Err(Refusal::Unsupported("only a server of linerate has threads that can be restarted".to_owned())),
        }
    }
}

/// Connections of the fullest thread over the mean: those it had at the beginning and those it took since. Absent
/// without connections, and when the threads changed meanwhile.
fn imbalance(before: &[ThreadStats], now: &[ThreadStats]) -> Option<f64> {
    if before.len() != now.len() {
        return None;
    }
    let carried: Option<Vec<u64>> = before
        .iter()
        .zip(now)
        .map(|(before, now)| now.accepted.checked_sub(before.accepted)?.checked_add(before.open()))
        .collect();
    let carried = carried?;
    let total: u64 = carried.iter().sum();
    let most = carried.iter().max()?;
    (total > 0).then(|| *most as f64 * carried.len() as f64 / total as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(accepted: u64, open: u64) -> ThreadStats {
        let mut stats = ThreadStats::default();
        (stats.accepted, stats.closed) = (accepted, accepted - open);
        stats
    }

    #[test]
    fn threads_are_compared_by_what_they_carried() {
        let rows: [(&[ThreadStats], &[ThreadStats], Option<f64>); 5] = [
            (&[thread(5, 0), thread(0, 0)], &[thread(8, 3), thread(1, 1)], Some(1.5)),
            (&[thread(5, 4), thread(4, 4)], &[thread(5, 4), thread(4, 0)], Some(1.0)),
            (&[thread(5, 0)], &[thread(5, 0)], None),
            (&[thread(5, 0)], &[thread(1, 1)], None),
            (&[thread(5, 0)], &[thread(9, 4), thread(9, 4)], None),
        ];
        for (before, now, expected) in rows {
            assert_eq!(imbalance(before, now), expected, "{before:?} {now:?}");
        }
    }
}
