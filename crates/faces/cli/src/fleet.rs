//! The command line of `linerate fleet`.

mod agent;
mod bus;
mod cancel;
mod check;
mod hosts;
mod leftovers;
mod list_hosts;
mod resume;
mod run;

use clap::{Args, Subcommand};

use linerate::model::record::RunId;
use linerate::{Error, Outcome, fleet};

use crate::output::complain;
use agent::AgentArgs;
use cancel::CancelArgs;
use check::CheckArgs;
use leftovers::LeftoverArgs;
use list_hosts::ListArgs;
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
    Check(Box<CheckArgs>),
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
struct WorkerArgs {
    /// The run
    #[arg(long, value_name = "ID")]
    run: RunId,
}

/// Carries out a command line of the fleet.
pub(crate) fn main(args: FleetArgs) -> Outcome {
    let ended: Result<(), Error> = match args.command {
        FleetCommand::Check(args) => return args.main(),
        FleetCommand::Run(args) => return args.main(),
        FleetCommand::Resume(args) => return args.main(),
        FleetCommand::Cancel(args) => return args.main(),
        FleetCommand::Leftovers(args) => return args.main(),
        FleetCommand::Hosts(args) => return args.main(),
        FleetCommand::Agent(args) => args.run(),
        FleetCommand::Worker(WorkerArgs { run }) => fleet::worker::run(run),
    };
    match ended {
        Ok(()) => Outcome::Done,
        Err(error) => complain("linerate fleet", &error.to_string(), error.outcome),
    }
}
