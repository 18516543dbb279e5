//! `linerate http serve`: serves until a signal.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;

use linerate_host::{Tested, Watched};
use linerate_http::control::Control;
use linerate_http::server::{Access, Server, ServerSpec, ServerStats, StartError, ThreadStats};
use linerate_sys::poll::{Interest, wait_fd};
use linerate_sys::signal::{Signal, Signals};
use linerate_sys::{process, sd_notify};

use super::agent::{self, TestedServer};
use super::restartable_server::RestartableServer;
use crate::cli::http::control::ControlChannel;
use crate::cli::http::serve::{ServePlan, TcpSpec};
use crate::exit_code::ExitCode;
use crate::run::embedded::Embedded;
use crate::run::in_use;

/// Serves until a signal.
pub(crate) fn run(plan: &ServePlan) -> ExitCode {
    match serve(plan) {
        Ok(stats) => {
            say(&summary(&stats));
            ExitCode::Done
        }
        Err(text) => {
            complain(&text);
            ExitCode::NotCompleted
        }
    }
}

fn serve(plan: &ServePlan) -> Result<ServerStats, String> {
    // Before any thread starts: threads inherit the signal mask.
    let signals = Signals::new(&[Signal::Interrupt, Signal::Terminate]).map_err(|e| e.to_string())?;
    // Without the privilege to raise the limit fewer connections fit.
    let _ = process::raise_fd_limit();
    let server = Server::start(&plan.spec).map_err(|error| match &error {
        StartError::System(error) => in_use::explained_os(error, "choose another one with --bind"),
        error => error.to_string(),
    })?;
    let mut text = announcement(&plan.spec, &server);
    let tcp = plan.tcp.as_ref().map(open_tcp).transpose()?;
    if let Some(tcp) = &tcp {
        text.push_str(&format!("  TCP tests    port {}, for iperf3 clients\n", tcp.port()));
    }
    let server = Arc::new(RestartableServer::new(
        &plan.spec,
        server,
        tcp.as_ref().map(Embedded::port),
    ));
    let control = plan
        .control
        .as_ref()
        .map_or(Ok(None), |channel| open_control(&server, channel))?;
    if let (Some(control), Some(channel)) = (&control, &plan.control) {
        text.push_str(&agent::introduction(control.address(), channel));
    }
    say(&text);
    // Notification of the service manager is optional.
    let _ = sd_notify::notify("READY=1");
    wait_for_signal(&signals).map_err(|error| error.to_string())?;
    let _ = sd_notify::notify("STOPPING=1");
    drop((control, tcp));
    Ok(server.stop())
}

/// Starts the iperf3 server.
fn open_tcp(spec: &TcpSpec) -> Result<Embedded, String> {
    Embedded::start(spec.host.clone(), spec.port, spec.access.clone()).map_err(|failure| {
        let text = format!("--tcp {}: {failure}", spec.port);
        in_use::explained(&text, spec.port, "choose another one with --tcp")
    })
}

/// Opens the control channel. A default port in use only disables the channel.
fn open_control(server: &Arc<RestartableServer>, channel: &ControlChannel) -> Result<Option<Control>, String> {
    let watched = Watched {
        pids: vec![std::process::id()],
        tested: server.port().map_or(Tested::Nothing, |port| Tested::Server { port }),
    };
    match agent::open(&watched, Some(Arc::clone(server) as Arc<dyn TestedServer>), channel) {
        Ok(control) => Ok(Some(control)),
        Err(why) if channel.is_address_chosen => Err(why),
        Err(why) => {
            complain(&format!("no control channel: {why}"));
            Ok(None)
        }
    }
}

fn complain(text: &str) {
    // There is nowhere left to complain if stderr is gone.
    let _ = writeln!(io::stderr(), "linerate http serve: {text}");
}

fn wait_for_signal(signals: &Signals) -> io::Result<()> {
    while signals.take()?.is_none() {
        wait_fd(signals, Interest::READ, None)?;
    }
    Ok(())
}

/// A closed pipe does not stop the server.
fn say(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

fn announcement(spec: &ServerSpec, server: &Server) -> String {
    let addresses: Vec<String> = server.addresses().iter().map(|a| format!("http://{a}")).collect();
    let backlog = match server.backlog() {
        Some(effective) if effective < spec.backlog => {
            format!("{effective} (net.core.somaxconn; {} requested)", spec.backlog)
        }
        Some(effective) => effective.to_string(),
        None => format!("{} requested, limit unknown", spec.backlog),
    };
    let guests = match &spec.access {
        Access::LocalNetworks => "networks of this host, and private addresses".to_owned(),
        Access::Networks(networks) => {
            let networks: Vec<String> = networks.iter().map(ToString::to_string).collect();
            networks.join(", ")
        }
    };
    format!(
        "Listening on {}\n  threads      {}\n  backlog      {backlog}\n  connections  at most {}\n  serves       {guests}\n",
        addresses.join(" and "),
        server.threads(),
        server.connections_max(),
    )
}

fn summary(stats: &ServerStats) -> String {
    let mut text = String::from("Served\n");
    line(&mut text, "total", &stats.total());
    for (number, thread) in stats.threads.iter().enumerate() {
        line(&mut text, &format!("thread {number}"), thread);
    }
    text
}

fn line(text: &mut String, name: &str, stats: &ThreadStats) {
    let refused = stats.refused_at_limit + stats.refused_by_address;
    // Writing to memory cannot fail.
    let _ = writeln!(
        text,
        "  {name:<10} {} connections ({refused} refused, {} timed out), {} times without a descriptor, \
         {} requests, {} responses ({} errors), \
         {} B payload, {} B sent, {} B received",
        stats.accepted,
        stats.timed_out,
        stats.descriptors_exhausted,
        stats.requests,
        stats.responses,
        stats.error_responses,
        stats.payload_bytes,
        stats.sent_bytes,
        stats.received_bytes,
    );
}
