//! The command line of `linerate fleet`.

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

use super::complain;
use cancel::CancelArgs;
use check::CheckArgs;
use leftovers::LeftoverArgs;
use list_hosts::ListArgs;
use resume::ResumeArgs;
use run::RunArgs;

/// Many hosts measured as one system.
#[derive(Debug, Args)]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Debug, Subcommand)]
enum FleetCommand {
    /// Connect to the hosts of an inventory and to the ports of their tests, without load
    Check(CheckArgs),
    /// Test between the hosts of an inventory, over the user's ssh
    Run(RunArgs),
    /// Run the tests of an earlier run that have no result, and report all of them
    Resume(ResumeArgs),
    /// End a run that goes on, and print which hosts confirmed it
    Cancel(CancelArgs),
    /// List processes and listeners that runs left on the hosts of an inventory
    Leftovers(LeftoverArgs),
    /// Print the hosts of an inventory, and connect to none
    Hosts(ListArgs),
    /// Serve a coordinator as one host of a fleet
    ///
    /// Started by `linerate fleet` over ssh. Runs tests that the coordinator plans, and ends with its input.
    Agent(AgentArgs),
    /// Worker process of an agent
    #[command(hide = true)]
    Worker(WorkerArgs),
}

#[derive(Debug, Args)]
struct AgentArgs {
    /// The coordinator is at the other end of standard input and output
    #[arg(long, required = true)]
    stdio: bool,
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
        FleetCommand::Agent(AgentArgs { .. }) => fleet::agent::run_stdio(),
        FleetCommand::Worker(WorkerArgs { run }) => fleet::worker::run(run),
    };
    match ended {
        Ok(()) => Outcome::Done,
        Err(error) => complain("linerate fleet", &error.to_string(), error.outcome),
    }
}
