//! The command line of `linerate fleet`.

mod agent;
mod bus;
mod cancel;
mod hosts;
mod leftovers;
mod output;
mod resume;
mod run;

use std::time::Duration;

use clap::{Args, Subcommand};

use linerate::fleet::report::check_text;
use linerate::model::record::RunId;
use linerate::progress::style;
use linerate::{Error, Outcome, fleet};

use crate::output::complain;
use agent::AgentArgs;
use cancel::CancelArgs;
use hosts::HostArgs;
use leftovers::LeftoverArgs;
use output::{done, print_text, signals};
use resume::ResumeArgs;
use run::RunArgs;

/// Many hosts measured as one system.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  linerate fleet check -i lab.toml       can all hosts be reached, and their tests run?\n  linerate fleet run mesh -i lab.toml    every host to every other, and what stands out"
)]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Debug, Subcommand)]
enum FleetCommand {
    /// Connect to the hosts of an inventory and to the ports of their tests, without load
    #[command(
        after_help = "Examples:\n  linerate fleet check -i lab.toml    every host of the file"
    )]
    Check(Box<HostArgs>),
    /// Test between the hosts of an inventory
    #[command(
        after_help = "Examples:\n  linerate fleet run mesh -i lab.toml                each host with each other\n  linerate fleet run incast -i lab.toml --sink h1    1, 2, 4 hosts send to h1"
    )]
    Run(RunArgs),
    /// Run the tests of an earlier run that have no result, and report all of them
    #[command(
        after_help = "Examples:\n  linerate fleet resume last    the tests of the last run that have no result"
    )]
    Resume(ResumeArgs),
    /// End a run that is active, and print which hosts confirmed it
    #[command(after_help = "Examples:\n  linerate fleet cancel    the only run that is active")]
    Cancel(CancelArgs),
    /// List processes and listeners that runs left on the hosts of an inventory
    #[command(
        after_help = "Examples:\n  linerate fleet leftovers -i lab.toml          what runs left on the hosts\n  linerate fleet leftovers -i lab.toml --end    and end it"
    )]
    Leftovers(LeftoverArgs),
    /// Print the hosts of an inventory, and connect to none
    #[command(
        after_help = "Examples:\n  linerate fleet hosts -i lab.toml    names, addresses and paths as they are read"
    )]
    Hosts(ListArgs),
    /// Serve a coordinator as one host of a fleet
    ///
    /// Runs tests that the coordinator plans. With --stdio, as `linerate fleet` starts it over ssh,
    /// it ends with its input; with --bus it is a service of the site and stays for one run after
    /// the other.
    #[command(
        after_help = "Examples:\n  linerate fleet agent --bus nats://192.0.2.9 --host h1    a service that waits for runs of its site"
    )]
    Agent(Box<AgentArgs>),
    /// Worker process of an agent
    #[command(hide = true)]
    Worker(WorkerArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    hosts: HostArgs,
    /// Write one JSON array instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct WorkerArgs {
    /// The run
    #[arg(long, value_name = "ID")]
    run: RunId,
}

/// Expected time of a run; `None` of another command.
pub(crate) fn run_length(args: FleetArgs) -> Result<Option<Duration>, Error> {
    match args.command {
        FleetCommand::Run(args) => args.run_length().map(Some),
        _ => Ok(None),
    }
}

/// Carries out a command line of the fleet.
pub(crate) fn main(args: FleetArgs) -> Outcome {
    let (command, ended) = match args.command {
        FleetCommand::Check(hosts) => (" check", check(*hosts)),
        FleetCommand::Run(args) => (" run", args.run()),
        FleetCommand::Resume(args) => (" resume", args.run()),
        FleetCommand::Cancel(args) => (" cancel", args.run()),
        FleetCommand::Leftovers(args) => (" leftovers", args.run()),
        FleetCommand::Hosts(args) => (" hosts", list(args)),
        FleetCommand::Agent(args) => ("", args.run()),
        FleetCommand::Worker(WorkerArgs { run }) => ("", fleet::worker::run(run).map(done)),
    };
    ended.unwrap_or_else(|error| {
        complain(
            &format!("linerate fleet{command}"),
            &error.to_string(),
            error.outcome,
        )
    })
}

fn check(hosts: HostArgs) -> Result<Outcome, Error> {
    let result = fleet::check::check(&hosts.resolve()?, &signals()?)?;
    print_text(&check_text(&result.report, style()))?;
    Ok(result.outcome)
}

fn list(args: ListArgs) -> Result<Outcome, Error> {
    let hosts = args.hosts.resolve()?;
    print_text(&if args.json {
        fleet::hosts::json(&hosts)
    } else {
        fleet::hosts::text(&hosts, style())
    })
    .map(done)
}
