//! The command line of `linerate fleet run`.

mod options;

use std::time::Duration;

use clap::{Args, Subcommand};
use linerate::fleet::Topology;
use linerate::fleet::run::{dry_run, run, run_length};
use linerate::{Error, Outcome};
use linerate_model::fleet::{FleetMode, HostId};

use super::output::{done, print_text};
use crate::doctor;
use options::{CommonArgs, PairingArgs, Resolved};

/// Usual time of a test in s, and of one of a ladder, which needs a period that all its tests have
/// in common.
const TIME_S: u32 = 5;
const LADDER_TIME_S: u32 = 10;
/// Partners of each host in a baseline.
const BASELINE_PARTNERS: u32 = 3;
/// Repetitions of a baseline: the fewest that a verdict needs.
const BASELINE_REPETITIONS: u32 = 5;
/// Most hosts of a baseline that runs one pair at a time.
const BASELINE_ISOLATED_MAX: usize = 16;
/// Longest time between two starts in s.
const STAGGER_MAX: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    #[command(subcommand)]
    kind: Box<KindArgs>,
}

#[derive(Debug, Subcommand)]
enum KindArgs {
    /// Each host with each other, in rounds of pairs that have no host in common
    #[command(
        after_help = "Examples:\n  linerate fleet run mesh -i lab.toml    each host with each other"
    )]
    Mesh(MeshArgs),
    /// A list of pairs, in both directions
    #[command(
        after_help = "Examples:\n  linerate fleet run pairs -i lab.toml --pairs h1:h2,h3:h4    two pairs, both directions"
    )]
    Pairs(PairsArgs),
    /// A mesh or pairs over several paths, or with several settings, one beside the other
    #[command(
        after_help = "Examples:\n  linerate fleet run matrix -i lab.toml --vary cc=cubic,bbr    each pair with both congestion controls"
    )]
    Matrix(MatrixArgs),
    /// One, two, four ... all hosts send to one
    #[command(
        after_help = "Examples:\n  linerate fleet run incast -i lab.toml --sink h1    1, 2, 4 hosts send to h1"
    )]
    Incast(IncastArgs),
    /// One host sends to one, two, four ... all others
    #[command(
        after_help = "Examples:\n  linerate fleet run fanout -i lab.toml --source h1    h1 sends to 1, 2, 4 hosts"
    )]
    Fanout(FanoutArgs),
    /// Each host with three others, five times: what later runs are compared with
    #[command(
        after_help = "Examples:\n  linerate fleet run baseline -i lab.toml    stored in the history for later runs"
    )]
    Baseline(CommonArgs),
}

#[derive(Debug, Args)]
struct MeshArgs {
    #[command(flatten)]
    pairing: PairingArgs,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
struct PairsArgs {
    /// The pairs
    #[arg(long, value_name = "A:B[,...]", value_delimiter = ',', value_parser = pair, required = true)]
    pairs: Vec<(HostId, HostId)>,
    #[command(flatten)]
    pairing: PairingArgs,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
struct MatrixArgs {
    /// The pairs [default: each host with each other]
    #[arg(long, value_name = "A:B[,...]", value_delimiter = ',', value_parser = pair)]
    pairs: Vec<(HostId, HostId)>,
    /// Paths of the inventory
    #[arg(
        long,
        value_name = "NAME[,...]",
        value_delimiter = ',',
        conflicts_with = "path"
    )]
    paths: Vec<String>,
    /// A setting and its levels: cc=cubic,bbr for congestion control
    #[arg(long, value_name = "NAME=LEVEL[,...]", value_parser = levels, required_unless_present = "paths")]
    vary: Option<Levels>,
    #[command(flatten)]
    pairing: PairingArgs,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
struct IncastArgs {
    /// The host that receives
    #[arg(long, value_name = "HOST")]
    sink: HostId,
    #[command(flatten)]
    ladder: LadderArgs,
}

#[derive(Debug, Args)]
struct FanoutArgs {
    /// The host that sends
    #[arg(long, value_name = "HOST")]
    source: HostId,
    #[command(flatten)]
    ladder: LadderArgs,
}

#[derive(Debug, Args)]
struct LadderArgs {
    /// Incast and fanout of the host
    #[arg(long)]
    both: bool,
    /// Time between the starts of two tests, for example 100ms [default: all start at once]
    #[arg(long, value_name = "TIME", value_parser = stagger)]
    stagger: Option<Duration>,
    #[command(flatten)]
    common: CommonArgs,
}

/// Variants, `cc=bbr`.
#[derive(Debug, Clone)]
struct Levels(Vec<String>);

impl RunArgs {
    pub(super) fn run(self) -> Result<Outcome, Error> {
        let Resolved {
            spec,
            is_dry,
            output,
            record,
        } = self.kind.resolve()?;
        if is_dry {
            return print_text(&format!("{}\n", dry_run(&spec)?)).map(done);
        }

        output.run(|signals, progress| run(&spec, record, signals, progress))
    }

    pub(super) fn run_length(self) -> Result<Duration, Error> {
        run_length(&self.kind.resolve()?.spec)
    }
}

impl KindArgs {
    fn resolve(self) -> Result<Resolved, Error> {
        match self {
            Self::Mesh(args) => paired(args.common, args.pairing, Topology::Mesh),
            Self::Pairs(args) => paired(args.common, args.pairing, Topology::Pairs(args.pairs)),
            Self::Matrix(args) => args.resolve(),
            Self::Incast(IncastArgs { sink, ladder }) => {
                ladder.resolve(Topology::Incast(sink.clone()), sink)
            }
            Self::Fanout(FanoutArgs { source, ladder }) => {
                ladder.resolve(Topology::Fanout(source.clone()), source)
            }
            Self::Baseline(common) => baseline(common),
        }
    }
}

fn paired(common: CommonArgs, pairing: PairingArgs, topology: Topology) -> Result<Resolved, Error> {
    let mut resolved = common.resolve(topology, TIME_S, 1)?;
    pairing.apply(&mut resolved.spec);
    Ok(resolved)
}

fn baseline(common: CommonArgs) -> Result<Resolved, Error> {
    let mut resolved = common.resolve(Topology::Mesh, TIME_S, BASELINE_REPETITIONS)?;
    let spec = &mut resolved.spec;
    // One pair at a time excludes interference, but takes too long for many hosts.
    let is_small = spec.hosts.inventory.hosts.len() <= BASELINE_ISOLATED_MAX;
    spec.mode = if is_small {
        FleetMode::Isolated
    } else {
        FleetMode::Rounds
    };
    spec.sample_rounds = Some(BASELINE_PARTNERS);

    Ok(resolved)
}

impl MatrixArgs {
    fn resolve(self) -> Result<Resolved, Error> {
        let topology = if self.pairs.is_empty() {
            Topology::Mesh
        } else {
            Topology::Pairs(self.pairs)
        };
        let mut resolved = paired(self.common, self.pairing, topology)?;

        if !self.paths.is_empty() {
            resolved.spec.hosts.paths = self.paths;
        }

        resolved.spec.variants = self.vary.map(|levels| levels.0).unwrap_or_default();
        Ok(resolved)
    }
}

impl LadderArgs {
    fn resolve(self, topology: Topology, hub: HostId) -> Result<Resolved, Error> {
        let topology = if self.both {
            Topology::IncastAndFanout(hub)
        } else {
            topology
        };
        let mut resolved = self.common.resolve(topology, LADDER_TIME_S, 1)?;
        resolved.spec.mode = FleetMode::Ladder;
        resolved.spec.test.stagger = self.stagger.unwrap_or_default();

        Ok(resolved)
    }
}

/// `h1:h2`
fn pair(text: &str) -> Result<(HostId, HostId), String> {
    let (a, b) = text.split_once(':').ok_or_else(|| "not A:B".to_owned())?;
    let id = |name: &str| name.parse::<HostId>().map_err(|error| error.to_string());
    Ok((id(a)?, id(b)?))
}

/// `cc=cubic,bbr`
fn levels(text: &str) -> Result<Levels, String> {
    let names = text
        .strip_prefix("cc=")
        .ok_or_else(|| "only cc can be varied, for example cc=cubic,bbr".to_owned())?;
    let mut variants: Vec<String> = Vec::new();

    for name in names.split(',') {
        let is_name = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let variant = format!("cc={name}");
        // A level that occurs twice would make two tasks with one identity.
        if !is_name || variants.contains(&variant) {
            return Err(format!(
                "{name:?} is no congestion control, or occurs twice"
            ));
        }

        variants.push(variant);
    }

    Ok(Levels(variants))
}

fn stagger(text: &str) -> Result<Duration, String> {
    match doctor::duration(text)? {
        time if time <= STAGGER_MAX => Ok(time),
        _ => Err(format!("at most {} s", STAGGER_MAX.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_variants_of_the_one_setting() {
        assert_eq!(
            levels("cc=cubic,bbr").map(|levels| levels.0),
            Ok(vec!["cc=cubic".to_owned(), "cc=bbr".to_owned()])
        );
        for wrong in ["", "cc=", "cc=a,", "cc=a,a", "cc=a b", "mtu=9000", "cubic"] {
            assert!(levels(wrong).is_err(), "{wrong}");
        }
    }
}
