//! From factors as typed to levels, from levels to tests, and back to words.

use std::time::Duration;

use linerate_model::spec::{AddressFamily, BindSpec, ClientSpec, LocalOptions};
use linerate_model::{Direction, EndCondition, TestSpec, Transport};
use thiserror::Error;

use super::grammar::{CpuPinning, Levels, SweptFactor, with_unit};
use super::result::Planned;
use super::spec::SweepSpec;
use crate::factor::{Factor, SYSTEM_CHOICE, Scale};
use crate::points::Setting;

/// What this host offers where the command line names no choices.
#[derive(Debug, Clone, Default)]
pub struct HostChoices {
    /// Congestion controls, as `tcp_available_congestion_control` names them.
    pub congestion: Vec<String>,
    /// The one in use.
    pub congestion_in_use: String,
    /// CPUs this process may use.
    pub cpus: Vec<u32>,
}

/// All settings a sweep may run.
pub struct SettingSpace<'a> {
    spec: &'a SweepSpec,
    axes: Vec<Axis>,
}

/// This host offers fewer than two congestion controls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("this host has no two congestion controls to compare: modprobe tcp_bbr loads another one")]
pub struct TooFewCongestionControls;

/// One factor and what its levels mean.
struct Axis {
    /// With the levels of this host, where none were named.
    swept: SweptFactor,
    start: u64,
}

/// What one run does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestSettings {
    /// Streams.
    pub streams: u32,
    /// Bytes per write or datagram; `None` for the default, as in the next three.
    pub length_bytes: Option<u64>,
    /// Socket buffers.
    pub window_bytes: Option<u64>,
    /// Rate of each stream.
    pub rate_bps: Option<u64>,
    /// Congestion control.
    pub congestion: Option<String>,
    /// CPUs of both ends.
    pub pinning: CpuPinning,
}

/// CPUs of this host that are tried when the user names none.
const CPUS_TRIED: usize = 8;
/// Longest wait for a connection: a server that does not answer by then will not answer the next run either.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A run without data for so long is over.
const SILENCE: Duration = Duration::from_secs(10);
/// Time between two samples of the round-trip time.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);
/// Block of a TCP test that names none.
const TCP_BLOCK_LEN_BYTES: u32 = 128 * 1024;

impl<'a> SettingSpace<'a> {
    /// The settings of a specification.
    ///
    /// # Errors
    /// [`TooFewCongestionControls`].
    pub fn new(spec: &'a SweepSpec, host: &HostChoices) -> Result<Self, TooFewCongestionControls> {
        let axes: Result<Vec<_>, _> = spec.over.iter().map(|swept| axis(swept, host)).collect();
        Ok(Self { spec, axes: axes? })
    }

    /// The factors of the experiment.
    #[must_use]
    pub fn factors(&self) -> Vec<Factor> {
        let factor = |axis: &Axis| Factor { name: axis.swept.name.to_owned(), scale: axis.scale(), start: axis.start };
        self.axes.iter().map(factor).collect()
    }

    /// The factors as the command line names them.
    #[must_use]
    pub fn planned(&self) -> Vec<Planned> {
        let planned = |axis: &Axis| Planned { name: axis.swept.name, levels: axis.swept.levels_text() };
        self.axes.iter().map(planned).collect()
    }

    /// Name of a factor.
    #[must_use]
    pub fn name(&self, factor: usize) -> &'static str {
        self.axes.get(factor).map_or("?", |axis| axis.swept.name)
    }

    /// Whether the levels of a factor have an order.
    #[must_use]
    pub fn is_amount(&self, factor: usize) -> bool {
        matches!(self.axes.get(factor).map(|axis| &axis.swept.levels), Some(Levels::Range(..)))
    }

    /// A level as the command line takes it; `auto` for the system's default.
    #[must_use]
    pub fn label(&self, factor: usize, level: u64) -> String {
        self.axes.get(factor).map_or_else(String::new, |axis| axis.label(level))
    }

    /// The levels of all factors.
    #[must_use]
    pub fn labels(&self, setting: &Setting) -> Vec<String> {
        (0..self.axes.len()).map(|factor| self.label(factor, setting.level(factor))).collect()
    }

    /// `streams 8, window auto`
    #[must_use]
    pub fn words(&self, setting: &Setting) -> String {
        let words: Vec<String> = (0..self.axes.len())
            .map(|factor| format!("{} {}", self.name(factor), self.label(factor, setting.level(factor))))
            .collect();
        words.join(", ")
    }

    /// What a run at a setting does.
    #[must_use]
    pub fn test_settings(&self, setting: &Setting) -> TestSettings {
        let held = &self.spec.held;
        let named = |amount: Option<u64>| amount.filter(|amount| *amount > 0);
        let mut choice = TestSettings {
            streams: held.streams.unwrap_or(1),
            length_bytes: held.length_bytes,
            window_bytes: held.window_bytes,
            rate_bps: named(held.rate_bps),
            congestion: held.congestion.clone(),
            pinning: CpuPinning::default(),
        };
        for (factor, axis) in self.axes.iter().enumerate() {
            let level = setting.level(factor);
            let place = usize::try_from(level).unwrap_or(usize::MAX);
            match (&axis.swept.levels, axis.swept.name) {
                (Levels::Range(..), "streams") => choice.streams = u32::try_from(level).unwrap_or(1).max(1),
                (Levels::Range(..), "length") => choice.length_bytes = named(Some(level)),
                (Levels::Range(..), "window") => choice.window_bytes = named(Some(level)),
                (Levels::Range(..), _) => choice.rate_bps = named(Some(level)),
                (Levels::Congestion(names), _) => choice.congestion = names.get(place).cloned(),
                (Levels::Affinity(places), _) => choice.pinning = places.get(place).copied().unwrap_or_default(),
            }
        }
        choice
    }
}

fn axis(swept: &SweptFactor, host: &HostChoices) -> Result<Axis, TooFewCongestionControls> {
    let (levels, start) = match &swept.levels {
        // Rates are tried from below; while others are varied the highest one hinders them least.
        Levels::Range(_, high) if swept.name == "rate" => (swept.levels.clone(), *high),
        Levels::Range(low, _) if swept.name == "streams" => (swept.levels.clone(), *low),
        Levels::Range(..) => (swept.levels.clone(), SYSTEM_CHOICE),
        Levels::Congestion(named) => congestion(named, host)?,
        Levels::Affinity(named) => affinity(named, host),
    };
    Ok(Axis { swept: SweptFactor { name: swept.name, levels }, start })
}

/// The algorithms, and the place of the one in use.
fn congestion(named: &[String], host: &HostChoices) -> Result<(Levels, u64), TooFewCongestionControls> {
    let names = if named.is_empty() { &host.congestion } else { named };
    if names.len() < 2 {
        return Err(TooFewCongestionControls);
    }
    let start = names.iter().position(|name| *name == host.congestion_in_use);
    Ok((Levels::Congestion(names.to_vec()), start.unwrap_or(0) as u64))
}

/// The placements, and the place of the one that leaves it to the scheduler.
fn affinity(named: &[CpuPinning], host: &HostChoices) -> (Levels, u64) {
    let mut places = named.to_vec();
    if places.is_empty() {
        let pinned = host.cpus.iter().take(CPUS_TRIED).map(|cpu| CpuPinning { client: Some(*cpu), server: None });
        places = std::iter::once(CpuPinning::default()).chain(pinned).collect();
    }
    let start = places.iter().position(|place| *place == CpuPinning::default());
    (Levels::Affinity(places), start.unwrap_or(0) as u64)
}

impl Axis {
    fn scale(&self) -> Scale {
        match &self.swept.levels {
            Levels::Range(min, max) => Scale::Amount { min: *min, max: *max, step: step(self.swept.name, *min) },
            Levels::Congestion(names) => Scale::Choices(names.len() as u64),
            Levels::Affinity(places) => Scale::Choices(places.len() as u64),
        }
    }

    fn label(&self, level: u64) -> String {
        let place = usize::try_from(level).unwrap_or(usize::MAX);
        match &self.swept.levels {
            Levels::Range(..) if level == SYSTEM_CHOICE => "auto".to_owned(),
            Levels::Range(..) => with_unit(self.swept.name, level),
            Levels::Congestion(names) => names.get(place).cloned().unwrap_or_default(),
            Levels::Affinity(places) => places.get(place).map_or_else(String::new, CpuPinning::to_string),
        }
    }
}

/// Between levels only round numbers are tried: a tenth of the least, rounded to what reads well.
fn step(name: &str, min: u64) -> u64 {
    match name {
        "streams" => 1,
        "rate" => 10_u64.pow((min / 10).max(1).ilog10()),
        _ if min >= 4096 => 1024,
        _ => 1,
    }
}

impl TestSettings {
    /// The test of one run.
    #[must_use]
    pub fn client_spec(&self, spec: &SweepSpec) -> ClientSpec {
        let narrow = |amount: Option<u64>| amount.and_then(|amount| u32::try_from(amount).ok());
        let default_block_len_bytes = if spec.is_udp { 0 } else { TCP_BLOCK_LEN_BYTES };
        let mut test = TestSpec {
            transport: if spec.is_udp { Transport::Udp } else { Transport::Tcp },
            direction: if spec.is_reverse { Direction::Reverse } else { Direction::Forward },
            streams: self.streams,
            end: EndCondition::Duration(Duration::from_secs(spec.time_s.into())),
            omit: Duration::from_secs(spec.omit_s.into()),
            block_len_bytes: narrow(self.length_bytes).unwrap_or(default_block_len_bytes),
            block_len_explicit: self.length_bytes.is_some(),
            ..TestSpec::default()
        };
        test.pacing.rate_bps = self.rate_bps;
        test.socket.window_bytes = narrow(self.window_bytes);
        test.socket.congestion.clone_from(&self.congestion);
        let local = LocalOptions {
            port: spec.port,
            bind: BindSpec {
                family: match spec.family {
                    Some(4) => Some(AddressFamily::V4),
                    Some(_) => Some(AddressFamily::V6),
                    None => None,
                },
                ..BindSpec::default()
            },
            interval: Some(SAMPLE_INTERVAL),
            rcv_timeout: SILENCE,
            cpu: self.pinning.client,
            ..LocalOptions::default()
        };
        ClientSpec {
            host: spec.host.clone(),
            local,
            test,
            connect_timeout: Some(CONNECT_TIMEOUT),
            server_cpu: self.pinning.server,
            credentials: None,
        }
    }

    /// The command that does the same with any iperf3.
    #[must_use]
    pub fn command(&self, spec: &SweepSpec) -> String {
        let mut words = vec!["iperf3".to_owned(), "-c".to_owned(), quoted(&spec.host)];
        let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
        if spec.port != 5201 {
            add("-p", spec.port.to_string());
        }
        if spec.omit_s > 0 {
            add("-O", spec.omit_s.to_string());
        }
        add("-t", spec.time_s.to_string());
        if self.streams > 1 {
            add("-P", self.streams.to_string());
        }
        if let Some(length) = self.length_bytes {
            add("-l", with_unit("length", length));
        }
        if let Some(window) = self.window_bytes {
            add("-w", with_unit("window", window));
        }
        match self.rate_bps {
            Some(rate) => add("-b", with_unit("rate", rate)),
            None if spec.is_udp => add("-b", "0".to_owned()),
            None => {}
        }
        if let Some(name) = &self.congestion {
            add("-C", quoted(name));
        }
        match (self.pinning.client, self.pinning.server) {
            (Some(client), Some(server)) => add("-A", format!("{client},{server}")),
            (Some(client), None) => add("-A", client.to_string()),
            (None, Some(server)) => add("-A", format!(",{server}")),
            (None, None) => {}
        }
        let flags = [
            (spec.is_udp, "-u"),
            (spec.is_reverse, "-R"),
            (spec.family == Some(4), "-4"),
            (spec.family == Some(6), "-6"),
        ];
        words.extend(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| (*flag).to_owned()));
        words.join(" ")
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:%/@".contains(&b));
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::spec::example;

    fn swept(name: &'static str, levels: Levels) -> SweptFactor {
        SweptFactor { name, levels }
    }

    #[test]
    fn settings_become_tests_and_commands() {
        let pinning = CpuPinning { client: Some(0), server: Some(1) };
        let mut spec = example(vec![
            swept("streams", Levels::Range(1, 64)),
            swept("window", Levels::Range(4096, 1 << 20)),
            swept("congestion", Levels::Congestion(vec!["cubic".to_owned(), "bbr".to_owned()])),
            swept("affinity", Levels::Affinity(vec![CpuPinning::default(), pinning])),
        ]);
        spec.port = 5202;
        spec.is_reverse = true;
        let space = SettingSpace::new(&spec, &HostChoices::default()).expect("levels that exist");
        let choice = space.test_settings(&Setting(vec![10, 262_144, 1, 1]));
        let command = "iperf3 -c h -p 5202 -O 1 -t 3 -P 10 -w 256K -C bbr -A 0,1 -R";
        assert_eq!(choice.command(&spec), command);
        let client = choice.client_spec(&spec);
        assert_eq!((client.test.streams, client.test.socket.window_bytes), (10, Some(262_144)));
        assert_eq!((client.local.cpu, client.server_cpu), (Some(0), Some(1)));
        assert_eq!(client.test.direction, Direction::Reverse);
        assert!(!client.test.block_len_explicit);
        assert_eq!(space.labels(&Setting(vec![1, 0, 0, 0])), ["1", "auto", "cubic", "any"]);
        assert_eq!(space.test_settings(&Setting(vec![1, 0, 0, 0])).window_bytes, None);
        let planned: Vec<String> = space.planned().into_iter().map(|one| one.levels).collect();
        assert_eq!(planned, ["1..64", "4K..1M", "cubic,bbr", "any,0/1"]);
    }

    #[test]
    fn udp_command_has_its_rate_and_a_quoted_host() {
        let mut spec = example(vec![swept("rate", Levels::Range(100_000_000, 10_000_000_000))]);
        spec.is_udp = true;
        spec.host = "a b;'c'".to_owned();
        let space = SettingSpace::new(&spec, &HostChoices::default()).expect("levels that exist");
        let choice = space.test_settings(&Setting(vec![1_500_000_000]));
        let command = r"iperf3 -c 'a b;'\''c'\''' -O 1 -t 3 -b 1500M -u";
        assert_eq!(choice.command(&spec), command);
        assert_eq!(choice.client_spec(&spec).test.block_len_bytes, 0);
        let (min, max, step) = (100_000_000, 10_000_000_000, 10_000_000);
        assert_eq!(space.factors()[0].scale, Scale::Amount { min, max, step });
    }

    #[test]
    fn steps_read_well() {
        let steps = (step("rate", 1000), step("rate", 100_000_000), step("window", 1024));
        assert_eq!(steps, (100, 10_000_000, 1));
    }
}
