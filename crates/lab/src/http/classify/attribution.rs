//! Attribution of CPU time: a host that is busy with other programs is no evidence about the server on it.

use linerate_model::http::Side;

use super::Facts;
use super::endpoint::EndpointSummary;
use crate::http::units::rounded;

/// Programs outside the test that do this part of the work of a CPU, or of all, are what it is busy with.
const MAIN_PART: f64 = 0.5;
/// On one host, an end that takes this many times as much as the other is what fills its CPUs.
const OUTWEIGHS: f64 = 2.0;

/// The work of all CPUs of a host, or of one, in CPUs.
#[derive(Debug, Clone, Copy)]
pub(super) struct CpuAttribution {
    /// Processors that were busy, without what the hypervisor gave to others.
    busy: f64,
    /// One CPU alone.
    core: Option<u32>,
    /// Of the server's program; absent where it is not on this host, or not known of one CPU.
    server: Option<f64>,
    /// Of the generator.
    generator: Option<f64>,
    /// Of softirqs; absent where they are not accounted separately.
    interrupts: Option<f64>,
    /// Of everything else.
    others: f64,
}

impl CpuAttribution {
    /// Who held all CPUs of a host, or why that is not known.
    pub(super) fn of_host(facts: &Facts<'_>, side: Side) -> Result<Self, String> {
        let end = end(facts, side)?;
        let (Some(cpus), Some(share)) = (end.cpus, end.cpu_busy) else {
            return Err(format!(
                "how busy the {}'s processors were could not be read",
                name(side)
            ));
        };
        let cpus = f64::from(cpus);
        let (server, generator) = programs(facts, side)?;
        let interrupts = end.cpu_softirq.map(|share| share * cpus);
        let busy = (share - end.steal.unwrap_or(0.0)).max(0.0) * cpus;
        let own = server.unwrap_or(0.0) + generator.unwrap_or(0.0);
        Ok(Self {
            busy,
            core: None,
            server,
            generator,
            interrupts,
            // Kernels that do not time interrupts apart count them for programs as well.
            others: (busy - own - interrupts.unwrap_or(0.0)).max(0.0),
        })
    }

    /// Who held the busiest CPU of a host, or why that is not known.
    pub(super) fn of_core(facts: &Facts<'_>, side: Side) -> Result<Self, String> {
        let host = Self::of_host(facts, side)?;
        let end = end(facts, side)?;
        let busy = end.core_busy.ok_or("the single processors could not be read")?;
        let is_same = |other: &&EndpointSummary| facts.is_one_host && other.core.is_some() && other.core == end.core;
        let (server, generator) = match side {
            Side::Server => (Some(end), Some(&facts.client).filter(is_same)),
            Side::Client => (facts.server.as_ref().filter(is_same), Some(end)),
        };
        let of = |end: Option<&EndpointSummary>| end.and_then(|end| end.core_own);
        let (server, generator) = (of(server), of(generator));
        let interrupts = end.core_softirq;
        let known = [server, generator, interrupts].into_iter().flatten();
        let rest = known.fold(busy, |rest, held| rest - held);
        Ok(Self {
            busy,
            core: end.core,
            server,
            generator,
            interrupts,
            // Threads are followed by looks; all others together did not do more here than on the whole host.
            others: rest.clamp(0.0, host.others),
        })
    }

    /// Programs outside the test did the main part.
    pub(super) fn are_others(&self) -> bool {
        self.busy > 0.0 && self.others >= MAIN_PART * self.busy
    }

    /// Both ends are here, and it is the generator that fills the CPUs.
    pub(super) fn is_generator(&self) -> bool {
        matches!((self.server, self.generator), (Some(server), Some(generator))
            if generator > 0.0 && generator >= OUTWEIGHS * server)
    }

    /// `of 1.9 busy CPUs: server 1.1, interrupts 0.1, other programs 0.7`
    pub(super) fn text(&self) -> String {
        let what = match self.core {
            Some(core) => format!("of processor {core}, busy to {}", rounded(self.busy)),
            None => format!("of {} busy processors", rounded(self.busy)),
        };
        let parts = [
            ("server", self.server),
            ("generator", self.generator),
            ("interrupts", self.interrupts),
            ("other programs", Some(self.others)),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .filter_map(|(name, held)| Some(format!("{name} {}", rounded(held?))))
            .collect();
        format!("{what}: {}", parts.join(", "))
    }
}

fn name(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

fn end<'a>(facts: &'a Facts<'_>, side: Side) -> Result<&'a EndpointSummary, String> {
    match side {
        Side::Client => Ok(&facts.client),
        Side::Server => facts
            .server
            .as_ref()
            .ok_or_else(|| "how busy the server's processors were is not known: no agent there".to_owned()),
    }
}

/// What the server and the generator took of a host's CPUs, each where it is there.
fn programs(facts: &Facts<'_>, side: Side) -> Result<(Option<f64>, Option<f64>), String> {
    let of = |side: Side| {
        let own = end(facts, side)?.program_cpus;
        let why = || {
            format!(
                "whose work filled the processors is not known: the time of the {}'s program could not be read",
                name(side)
            )
        };
        own.map(Some).ok_or_else(why)
    };
    match (facts.is_one_host, side) {
        (true, _) => Ok((of(Side::Server)?, of(Side::Client)?)),
        (false, Side::Server) => Ok((of(Side::Server)?, None)),
        (false, Side::Client) => Ok((None, of(Side::Client)?)),
    }
}

/// Reason and advice for a host whose CPUs are full of other programs.
pub(super) fn disturbed(side: Side, attribution: &CpuAttribution) -> (String, String) {
    let whose = name(side);
    let own = match side {
        Side::Server => "; what the server works through (a database, say) is among them",
        Side::Client => "",
    };
    (
        format!("inconclusive: other load on the {whose}'s host: {}", attribution.text()),
        format!("quit the other programs on the {whose}'s host (`top` names them) and run it again{own}"),
    )
}

#[cfg(test)]
mod tests {
    use linerate_model::http::{CellRun, CellVerdict, EndpointStats, VerdictClass};

    use super::super::tests::{GIGABIT, judge_on, server, spoilt, text};
    use super::super::{Network, Position};

    /// All CPUs of a host are this busy, and the program took `program_cpus` of its four.
    fn fill(side: &mut EndpointStats, share: f64, program_cpus: f64) {
        side.cpu_busy = Some(share);
        side.cpu_softirq = Some(0.05);
        side.process_cpu_ns = Some((program_cpus * side.window_ns as f64) as u64);
    }

    /// One CPU is full, and the program took so much of it.
    fn fill_core(side: &mut EndpointStats, core: u32, own: f64) {
        side.busiest_cpu = Some(core);
        side.busiest_cpu_busy = Some(0.99);
        side.busiest_cpu_own = Some(own);
        side.busiest_thread_busy = Some(own.min(0.9));
    }

    fn judged(network: Network, spoil: impl FnOnce(&mut CellRun)) -> CellVerdict {
        let verdict = judge_on(network, &[spoilt(spoil)], &Position::default());
        assert!(!verdict.primary.evidence.is_empty() && !verdict.primary.advice.is_empty());
        verdict
    }

    #[track_caller]
    fn assert_says(verdict: &CellVerdict, class: VerdictClass, words: &[&str]) {
        assert_eq!(verdict.primary.class, class, "{verdict:?}");
        for word in words {
            assert!(text(verdict).contains(word), "{word} in {verdict:?}");
        }
    }

    #[test]
    fn a_core_the_servers_own_program_fills_is_its_bound() {
        let verdict = judged(GIGABIT, |run| {
            fill(server(run), 0.4, 1.2);
            fill_core(server(run), 2, 0.94);
        });
        let words = ["processor 2, busy to 0.99: server 0.94", "other programs 0.03"];
        assert_says(&verdict, VerdictClass::CpuBoundCore, &words);
    }

    #[test]
    fn interrupts_are_the_servers_load_though_no_program_is() {
        let verdict = judged(GIGABIT, |run| {
            fill(server(run), 0.3, 0.2);
            fill_core(server(run), 0, 0.1);
            server(run).cpu_softirq = Some(0.22);
            server(run).busiest_cpu_softirq = Some(0.88);
        });
        assert_says(
            &verdict,
            VerdictClass::CpuBoundCore,
            &["88 % in interrupts", "interrupts 0.88"],
        );
    }

    #[test]
    fn host_full_of_other_programs_is_no_evidence_about_the_server() {
        let verdict = judged(GIGABIT, |run| fill(server(run), 0.98, 0.8));
        let words = [
            "inconclusive: other load on the server's host",
            "of 3.92 busy processors: server 0.8, interrupts 0.2, other programs 2.92",
            "quit the other programs on the server's host",
        ];
        assert_says(&verdict, VerdictClass::Unknown, &words);
        // One CPU, which others hold while the server has a little of each.
        let verdict = judged(GIGABIT, |run| {
            fill(server(run), 0.5, 0.8);
            fill_core(server(run), 3, 0.1);
        });
        assert_says(
            &verdict,
            VerdictClass::Unknown,
            &["inconclusive", "processor 3, busy to 0.99: server 0.1"],
        );
    }

    #[test]
    fn a_full_link_is_the_verdict_whatever_else_the_host_does() {
        let verdict = judged(GIGABIT, |run| {
            fill(server(run), 0.98, 0.8);
            run.load.as_mut().unwrap().ok = 1_014_000;
        });
        assert_says(&verdict, VerdictClass::NetworkBound, &[]);
    }

    #[test]
    fn a_thread_that_is_never_without_work_is_the_servers_beside_others_too() {
        let verdict = judged(GIGABIT, |run| {
            fill(server(run), 0.7, 1.0);
            fill_core(server(run), 3, 0.0);
            server(run).busiest_thread_busy = Some(0.99);
        });
        assert_says(
            &verdict,
            VerdictClass::CpuBoundCore,
            &["busiest thread of the server 0.99"],
        );
    }

    #[test]
    fn a_generator_is_the_limit_only_by_its_own_work() {
        let own = judged(GIGABIT, |run| {
            fill(&mut run.client, 0.4, 1.2);
            fill_core(&mut run.client, 1, 0.93);
        });
        assert_says(
            &own,
            VerdictClass::ClientLimit,
            &["processor 1, busy to 0.99: generator 0.93"],
        );
        let others = judged(GIGABIT, |run| {
            fill(&mut run.client, 0.6, 0.2);
            fill_core(&mut run.client, 1, 0.05);
        });
        let words = [
            "inconclusive: other load on the client's host",
            "generator 0.05",
            "quit the other programs",
        ];
        assert_says(&others, VerdictClass::Unknown, &words);
    }

    /// Two ends on the four CPUs of one host, all of them full.
    fn together(server_cpus: f64, generator_cpus: f64) -> CellVerdict {
        judged(Network::Loopback, |run| {
            for (side, cpus) in [
                (&mut run.client, generator_cpus),
                (run.server.as_mut().unwrap(), server_cpus),
            ] {
                fill(side, 0.98, cpus);
                fill_core(side, 1, cpus / 4.0);
            }
        })
    }

    #[test]
    fn on_one_host_the_parts_of_both_ends_are_named() {
        let words = [
            "server 2, generator 1.6, interrupts 0.2, other programs 0.12",
            "on another host",
        ];
        assert_says(&together(2.0, 1.6), VerdictClass::CpuBoundTotal, &words);
        let words = ["processor 1, busy to 0.99: server 0.25, generator 0.7"];
        assert_says(&together(1.0, 2.8), VerdictClass::ClientLimit, &words);
        let words = [
            "inconclusive",
            "server 0.6, generator 0.8, interrupts 0.2, other programs 2.32",
        ];
        assert_says(&together(0.6, 0.8), VerdictClass::Unknown, &words);
    }

    #[test]
    fn a_core_both_ends_share_is_the_servers_and_one_the_generator_fills_is_not() {
        let both = |own: f64, generator: f64| {
            judged(Network::Loopback, |run| {
                for (side, cpus) in [(&mut run.client, generator), (run.server.as_mut().unwrap(), own)] {
                    fill(side, 0.3, cpus);
                    fill_core(side, 2, cpus);
                }
            })
        };
        let words = ["processor 2, busy to 0.99: server 0.45, generator 0.5"];
        assert_says(&both(0.45, 0.5), VerdictClass::CpuBoundCore, &words);
        assert_says(
            &both(0.05, 0.92),
            VerdictClass::ClientLimit,
            &["server 0.05, generator 0.92"],
        );
    }

    #[test]
    fn without_the_cpu_time_of_the_program_the_load_is_not_attributed() {
        let verdict = judged(GIGABIT, |run| {
            server(run).cpu_busy = Some(0.98);
            server(run).process_cpu_ns = None;
        });
        assert_says(
            &verdict,
            VerdictClass::Unknown,
            &["whose work filled the processors is not known"],
        );
    }
}
