//! `linerate http agent`: the control channel with the measurements of this host.

use std::sync::Arc;

use linerate_host::{Tested, Watched, listening_processes};
use linerate_http::run::{HostAgent, RestartableServer, tested_port};
use linerate_sys::process;

pub use super::control_channel::ControlChannel;
use super::control_channel::OpenChannel;
use crate::Error;

/// An agent, resolved.
#[derive(Debug)]
#[non_exhaustive]
pub struct AgentSpec {
    /// The measured service.
    pub watched: Watched,
    /// Address and access of the channel.
    pub control: ControlChannel,
}

impl AgentSpec {
    /// Observes the process `pid`, or else the listeners of a TCP port, or else this process; with
    /// a port also its connections.
    ///
    /// # Errors
    /// No such process, or no listener on the port.
    pub fn find(
        pid: Option<u32>,
        listen_port: Option<u16>,
        control: ControlChannel,
    ) -> Result<Self, Error> {
        let is_alive = |pid: u32| i32::try_from(pid).is_ok_and(process::pid_is_alive);
        let pids = match (pid, listen_port) {
            (Some(pid), _) if is_alive(pid) => vec![pid],
            (Some(pid), _) => {
                return Err(Error::usage(format!(
                    "--pid {pid}: there is no such process"
                )));
            }
            (None, Some(port)) => listening_processes(port)
                .map_err(|why| Error::usage(format!("--listen-port {port}: {why}")))?,
            (None, None) => vec![std::process::id()],
        };

        let tested = listen_port.map_or(Tested::Nothing, |port| Tested::Server { port });
        Ok(Self {
            watched: Watched { pids, tested },
            control,
        })
    }
}

/// A control channel with measurements of this host, open until it is dropped.
pub struct RunningAgent {
    channel: OpenChannel,
    /// The observed service, address and key, one line each.
    pub introduction: String,
}

impl RunningAgent {
    /// Opens the channel.
    ///
    /// # Errors
    /// An address in use, or a host that cannot be observed.
    pub fn start(spec: &AgentSpec) -> Result<Self, Error> {
        let channel = open(&spec.watched, None, &spec.control)?;
        let introduction = format!("{}{}", announcement(&spec.watched), channel.introduction());
        Ok(Self {
            channel,
            introduction,
        })
    }

    /// Warnings for the operator.
    pub fn warnings(&self) -> &[String] {
        &self.channel.warnings
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
) -> Result<OpenChannel, Error> {
    let agent = HostAgent::start(watched, server)?;
    OpenChannel::open(channel, Arc::new(agent))
}

fn announcement(watched: &Watched) -> String {
    let pids: Vec<String> = watched.pids.iter().map(u32::to_string).collect();
    let port = tested_port(watched).map_or_else(String::new, |port| format!(", TCP port {port}"));
    format!("Watching process {}{port}\n", pids.join(", "))
}
