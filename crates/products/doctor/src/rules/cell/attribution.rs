//! Attribution of CPU time: a host that is busy with other programs is no evidence about the server
//! on it.

use linerate_model::http::units::rounded;
use linerate_model::http::{CellFacts, EndpointFacts, Side};

use super::ends::{endpoint, name};
use crate::rules::prelude::*;

/// Programs outside the test with this share of the busy time of a CPU, or of all, are what it is
/// busy with when no part of the test took more.
const MAIN_PART: f64 = 0.3;
/// On one host, an endpoint that takes this many times as much as the other is what fills its CPUs.
const OUTWEIGHS: f64 = 2.0;

/// The work of all CPUs of a host, or of one, in CPUs.
#[derive(Debug, Clone, Copy)]
pub(super) struct CpuAttribution {
    side: Side,
    /// CPUs that were busy, without what the hypervisor gave to others.
    busy: f64,
    /// One CPU alone.
    core: Option<u32>,
    /// Share of the server's program; absent where it is not on this host, or not known of one CPU.
    server: Option<f64>,
    /// Share of the generator.
    generator: Option<f64>,
    /// Share of softirqs; absent where they are not accounted separately.
    interrupts: Option<f64>,
    /// Share of everything else.
    others: f64,
    /// The generator took [`OUTWEIGHS`] times as much of the whole host as the server.
    is_generators_host: bool,
}

impl CpuAttribution {
    /// Attributes all CPUs of a host.
    pub(super) fn of_host(facts: &CellFacts, side: Side) -> Result<Self, NoMatch> {
        let end = endpoint(facts, side)?;
        let (Some(cpus), Some(share)) = (end.cpus, end.cpu_busy) else {
            let whose = name(side);
            return unknown(
                format!("how busy the {whose}'s CPUs were"),
                "could not be read",
            );
        };
        let cpus = f64::from(cpus);
        let program = |of: Side| {
            let is_here = facts.is_one_host || of == side;
            is_here.then(|| program_cpus(facts, of)).transpose()
        };
        let server = program(Side::Server)?;
        let generator = program(Side::Client)?;
        let interrupts = end.cpu_softirq.map(|share| share * cpus);
        let busy = (share - end.steal.unwrap_or(0.0)).max(0.0) * cpus;
        // No bound: `fitted` gives other programs all that is left.
        let others = f64::INFINITY;
        let is_generators_host = server.zip(generator).is_some_and(outweighs);

        Ok(Self {
            side,
            busy,
            core: None,
            server,
            generator,
            interrupts,
            others,
            is_generators_host,
        }
        .fitted())
    }

    /// Attributes the busiest CPU of a host.
    pub(super) fn of_core(facts: &CellFacts, side: Side) -> Result<Self, NoMatch> {
        let host = Self::of_host(facts, side)?;
        let end = endpoint(facts, side)?;
        let busy = end
            .core_busy
            .or_unknown("the single CPUs", "could not be read")?;

        let of = |of: Side| {
            let other = endpoint(facts, of).ok()?;
            let is_same = |other: &EndpointFacts| {
                facts.is_one_host && other.core.is_some() && other.core == end.core
            };
            (of == side || is_same(other))
                .then_some(other.core_own)
                .flatten()
        };
        let (server, generator, interrupts) =
            (of(Side::Server), of(Side::Client), end.core_softirq);

        // Threads are sampled; all others together did not do more here than on the whole host.
        Ok(Self {
            busy,
            core: end.core,
            server,
            generator,
            interrupts,
            ..host
        }
        .fitted())
    }

    /// The parts add up to the whole at most. Kernels that do not time interrupts apart count them
    /// for programs as well, so they give way first; what is left is other programs', up to what is
    /// known of these.
    fn fitted(mut self) -> Self {
        let own = self.server.unwrap_or(0.0) + self.generator.unwrap_or(0.0);
        let scale = if own > self.busy {
            self.busy / own
        } else {
            1.0
        };

        for part in [&mut self.server, &mut self.generator]
            .into_iter()
            .flatten()
        {
            *part *= scale;
        }

        let rest = (self.busy - own).max(0.0);
        self.interrupts = self.interrupts.map(|interrupts| interrupts.min(rest));
        self.others = (rest - self.interrupts.unwrap_or(0.0)).clamp(0.0, self.others);
        self
    }

    /// True if programs outside the test are the largest part.
    pub(super) fn are_others(&self) -> bool {
        let largest = [self.server, self.generator, self.interrupts]
            .into_iter()
            .flatten()
            .fold(0.0, f64::max);
        self.busy > 0.0 && self.others >= (MAIN_PART * self.busy).max(largest)
    }

    /// True if no part of this end is counted for other programs because it is not known.
    pub(super) fn is_whole(&self) -> bool {
        let own = if self.side == Side::Server {
            self.server
        } else {
            self.generator
        };
        own.is_some() && self.interrupts.is_some()
    }

    /// Both endpoints are here, and it is the generator that fills the CPUs.
    pub(super) fn is_generator(&self) -> bool {
        // Where the parts of a CPU are not known, those of the whole host decide.
        let of_core = self.server.zip(self.generator).map(outweighs);
        of_core.unwrap_or(self.is_generators_host)
    }

    /// `of 1.9 busy CPUs: server 1.1, interrupts 0.1, other programs 0.7`
    pub(super) fn text(&self) -> String {
        let what = match self.core {
            Some(core) => format!("of CPU {core}, busy to {}", rounded(self.busy)),
            None => format!("of {} busy CPUs", rounded(self.busy)),
        };
        let parts = [
            ("server", self.server),
            ("generator", self.generator),
            ("interrupts", self.interrupts),
            ("other programs", Some(self.others)),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .filter_map(|(name, part)| Some(format!("{name} {}", rounded(part?))))
            .collect();

        format!("{what}: {}", parts.join(", "))
    }

    /// Advice for a host whose CPUs are full of other programs.
    pub(super) fn quit_others(&self) -> String {
        let whose = name(self.side);
        let own = match self.side {
            Side::Server => "; what the server works through (a database, say) is among them",
            Side::Client => "",
        };
        format!(
            "quit the other programs on the {whose}'s host (`top` names them) and run it again{own}"
        )
    }
}

fn outweighs((server, generator): (f64, f64)) -> bool {
    generator > 0.0 && generator >= OUTWEIGHS * server
}

fn program_cpus(facts: &CellFacts, side: Side) -> Result<f64, NoMatch> {
    endpoint(facts, side)?.program_cpus.or_unknown(
        "whose work filled the CPUs",
        format!(
            "is not known: the time of the {}'s program could not be read",
            name(side)
        ),
    )
}
