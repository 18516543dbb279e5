//! Samples what the CPUs do (`cpu-clock`, perf_event_open(2)).
//!
//! Cost: 199 samples per second and CPU of some 2 µs each, 0.04 % of a CPU.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use linerate_sys::error::OsError;
use linerate_sys::perf_event::{PerfEvent, Record, Ring, Source};

use super::cpu_profile::{CpuProfile, STACKS_MAX, Sampled, profile};
use super::symbols::Symbols;
use super::{online_cpus, permit};
use crate::error::ReadError;
use crate::permits::Permit;
use crate::short_file;
use crate::watch::{Reader, Watch};

/// A watch of the CPUs of this host.
#[derive(Debug)]
pub struct CpuWatch(Watch<Sampler>);

/// Samples per second: no divisor of the rates of timers, which would hide or repeat their work.
const HZ: u64 = 199;
/// Pages of the ring of a CPU: 128 KiB.
const RING_PAGES: usize = 32;
/// Time between two readings: a ring takes a second of samples.
const STEP: Duration = Duration::from_millis(500);
/// Begin of a test that is left out: windows and buffers still grow.
const START: Duration = Duration::from_secs(1);

impl CpuWatch {
    /// Starts to sample every CPU.
    ///
    /// # Errors
    /// Why the CPUs of this host cannot be sampled: the right that is missing, or too many watches.
    pub fn start() -> Result<Self, ReadError> {
        let permit = permit()?;
        let ring = |cpu| -> Result<_, ReadError> {
            Ok((
                cpu,
                Ring::new(
                    PerfEvent::open(Source::CpuClock { hz: HZ }, cpu)?,
                    RING_PAGES,
                )?,
            ))
        };
        let sampler = Sampler {
            rings: online_cpus()
                .into_iter()
                .map(ring)
                .collect::<Result<_, _>>()?,
            stacks: BTreeMap::new(),
            processes: BTreeMap::new(),
            due: Instant::now() + STEP,
            steady_from: Some(Instant::now() + START),
            _permit: permit,
        };

        Watch::start("linerate-cpus", sampler)
            .map(Self)
            .map_err(|error| ReadError::from(OsError::new("create thread", "", error)))
    }

    /// Ends the watch; `None` if its thread panicked.
    pub fn stop(self) -> Option<CpuProfile> {
        self.0.finish().map(Sampler::finish)
    }
}

#[derive(Debug)]
struct Sampler {
    rings: Vec<(u32, Ring)>,
    stacks: BTreeMap<Sampled, u64>,
    /// Names of the processes that were seen.
    processes: BTreeMap<u32, String>,
    /// Time of the next reading.
    due: Instant,
    /// Time until which samples are left out again once later ones exist.
    steady_from: Option<Instant>,
    _permit: Permit,
}

impl Reader for Sampler {
    fn due(&self) -> Option<Instant> {
        Some(self.due)
    }

    fn read(&mut self) {
        self.drain();
        if self
            .steady_from
            .take_if(|from| *from <= Instant::now())
            .is_some()
        {
            self.stacks.clear();
        }
        self.due = Instant::now() + STEP;
    }
}

impl Sampler {
    fn drain(&mut self) {
        for (cpu, ring) in &mut self.rings {
            ring.drain(|record| {
                let Record::Stack(stack) = record else { return };
                self.processes.entry(stack.process).or_insert_with(|| {
                    let name = short_file::read(format!("/proc/{}/comm", stack.process));
                    name.unwrap_or_else(|| "[ended]".to_owned())
                });

                let is_full = self.stacks.len() >= STACKS_MAX;
                let sampled = Sampled {
                    cpu: *cpu,
                    process: stack.process,
                    addresses: if is_full { Vec::new() } else { stack.kernel },
                };
                *self.stacks.entry(sampled).or_default() += 1;
            });
        }
    }

    fn finish(mut self) -> CpuProfile {
        self.drain();
        profile(&self.stacks, &Symbols::shared(), &self.processes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_program_is_sampled_with_its_name() {
        let watch = match CpuWatch::start() {
            Ok(watch) => watch,
            Err(error) => return assert!(error.to_string().contains("CAP_PERFMON"), "{error}"),
        };
        let end = Instant::now() + Duration::from_millis(300);
        while Instant::now() < end {
            std::hint::black_box(std::fs::read("/proc/self/stat").expect("a file"));
        }

        let profile = watch.stop().expect("it sampled");
        let own = short_file::read("/proc/self/comm");
        let samples = profile.stacks.iter().filter(|stack| stack.process == own);
        let samples: u64 = samples.map(|stack| stack.samples).sum();
        assert!(
            samples >= 10,
            "{samples} samples of {own:?} in 300 ms: {profile:?}"
        );
        let functions = profile.stacks.iter().flat_map(|stack| &stack.functions);
        assert!(
            functions
                .map(|function| function.name.as_str())
                .any(|name| name.contains("read")),
            "{profile:?}"
        );
    }
}
