//! From factors as typed to levels, from levels to tests, and back to words.

use std::time::Duration;

use linerate_document::record::quoted;
use linerate_model::spec::{AddressFamily, ClientSpec, Keepalive, LocalOptions};
use linerate_model::words::joined;
use linerate_model::{Direction, EndCondition, PortRange, TestSpec, Transport};
use thiserror::Error;

use crate::plan::factor::{Factor, SYSTEM_CHOICE, Scale, Setting};
use crate::spec::grammar::{CpuPinning, Levels, SweptFactor, with_unit};
use crate::spec::{SweepSpec, TestSettings};

/// Choices that this host offers where the command line names no choices.
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
    /// The factors, with the levels of this host where none were named.
    pub planned: Vec<SweptFactor>,
    /// The factors in the form of the experiment.
    pub factors: Vec<Factor>,
    congestion_in_use: String,
}

/// This host offers fewer than two congestion controls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("this host has no two congestion controls to compare: modprobe tcp_bbr loads another one")]
pub struct TooFewCongestionControls;

/// CPUs of this host that are tried when the user names none.
const CPUS_TRIED: usize = 8;
/// Longest wait for a connection: a server that does not answer by then will not answer the next
/// run either.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A run that receives nothing for this time ends.
const SILENCE: Duration = Duration::from_secs(4);
/// Longest silence of a control connection on which nothing is acknowledged: a path that is gone
/// ends a sweep within 10 s. Data streams have no such limit: of many on a slow path one may starve
/// for as long.
const CONTROL_SILENCE: Duration = Duration::from_millis(4500);
/// Probes of a control connection without traffic. On a full queue they are lost like other
/// segments, so that several fit into [`CONTROL_SILENCE`], which ends the connection instead of the
/// count.
const KEEPALIVE: Keepalive = Keepalive {
    idle_s: 2,
    interval_s: 1,
    count: 1,
};
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
        let congestion_in_use = host.congestion_in_use.clone();
        let mut space = Self {
            spec,
            planned: Vec::new(),
            factors: Vec::new(),
            congestion_in_use,
        };

        for swept in &spec.over {
            let (levels, start) = levels(swept, host)?;
            let swept = SweptFactor {
                name: swept.name,
                levels,
            };
            space.factors.push(Factor {
                name: swept.name.to_owned(),
                scale: scale(&swept),
                start,
            });
            space.planned.push(swept);
        }

        Ok(space)
    }

    /// The levels of all factors.
    pub fn labels(&self, setting: &Setting) -> Vec<String> {
        let levels = self.planned.iter().enumerate();
        levels
            .map(|(factor, swept)| label(swept, setting.level(factor)))
            .collect()
    }

    /// True if a test has this level of a factor when the command line names none.
    pub(crate) fn is_default(&self, factor: usize, level: u64) -> bool {
        let swept = &self.planned[factor];
        match (&swept.levels, swept.name) {
            (Levels::Congestion(_), _) => label(swept, level) == self.congestion_in_use,
            (Levels::Affinity(_), _) => label(swept, level) == CpuPinning::default().to_string(),
            // The least of a range need not be the default: `streams=45..64` has none.
            (_, "streams") => level == 1,
            // A swept rate has no default: without one TCP has no limit, and UDP 1 Mbit/s.
            (_, "rate") => false,
            (_, _) => level == SYSTEM_CHOICE,
        }
    }

    /// `streams 8, window auto`
    pub fn words(&self, setting: &Setting) -> String {
        let named = self.planned.iter().zip(self.labels(setting));
        joined(
            named.map(|(swept, label)| format!("{} {label}", swept.name)),
            ", ",
        )
    }

    /// Test settings of a run at a setting.
    pub fn test_settings(&self, setting: &Setting) -> TestSettings {
        let mut choice = self.spec.held.clone();
        let named = |amount: u64| Some(amount).filter(|amount| *amount > 0);
        // A rate of 0 means no limit, as with `-b 0` of iperf3.
        choice.rate_bps = choice.rate_bps.and_then(named);

        for (factor, swept) in self.planned.iter().enumerate() {
            let level = setting.level(factor);
            let place = usize::try_from(level).unwrap_or(usize::MAX);

            match (&swept.levels, swept.name) {
                (Levels::Congestion(names), _) => choice.congestion = names.get(place).cloned(),
                (Levels::Affinity(places), _) => {
                    choice.pinning = places.get(place).copied().unwrap_or_default();
                }
                (_, "streams") => choice.streams = u32::try_from(level).ok(),
                (_, "length") => choice.length_bytes = named(level),
                (_, "window") => choice.window_bytes = named(level),
                (_, _) => choice.rate_bps = named(level),
            }
        }

        choice
    }
}

/// The levels on this host, and the one to begin with.
fn levels(
    swept: &SweptFactor,
    host: &HostChoices,
) -> Result<(Levels, u64), TooFewCongestionControls> {
    let (low, high) = match &swept.levels {
        Levels::Congestion(named) => return congestion(named, host),
        Levels::Affinity(named) => return Ok(affinity(named, host)),
        Levels::Range(low, high) => (*low, *high),
        Levels::List(levels) => (
            levels.first().copied().unwrap_or(1),
            levels.last().copied().unwrap_or(1),
        ),
    };
    let start = match swept.name {
        // Rates are tried from below; while others are varied the highest one hinders them least.
        "rate" => high,
        "streams" => low,
        _ => SYSTEM_CHOICE,
    };
    Ok((swept.levels.clone(), start))
}

/// The algorithms, and the place of the one in use.
fn congestion(
    named: &[String],
    host: &HostChoices,
) -> Result<(Levels, u64), TooFewCongestionControls> {
    // The kernel lists registered algorithms alone: others are modules that are not loaded.
    let names = if named.is_empty() {
        &host.congestion
    } else {
        named
    };
    if names.len() < 2 {
        return Err(TooFewCongestionControls);
    }

    let start = names
        .iter()
        .position(|name| *name == host.congestion_in_use);
    Ok((
        Levels::Congestion(names.to_vec()),
        start.unwrap_or(0) as u64,
    ))
}

/// The placements, and the place of the one that leaves it to the scheduler.
fn affinity(named: &[CpuPinning], host: &HostChoices) -> (Levels, u64) {
    let mut places = named.to_vec();
    if places.is_empty() {
        let pinned = host.cpus.iter().take(CPUS_TRIED).map(|cpu| CpuPinning {
            client: Some(*cpu),
            server: None,
        });
        // The scheduler's choice is the default to which pinned ends are compared.
        places = std::iter::once(CpuPinning::default())
            .chain(pinned)
            .collect();
    }

    let start = places
        .iter()
        .position(|place| *place == CpuPinning::default());
    (Levels::Affinity(places), start.unwrap_or(0) as u64)
}

fn scale(swept: &SweptFactor) -> Scale {
    match &swept.levels {
        Levels::Range(min, max) => Scale::Amount {
            min: *min,
            max: *max,
            step: step(swept.name, *min),
        },
        Levels::List(levels) => Scale::List(levels.clone()),
        Levels::Congestion(names) => Scale::Choices(names.len() as u64),
        Levels::Affinity(places) => Scale::Choices(places.len() as u64),
    }
}

/// A level as the command line takes it; `auto` for the system's default.
pub(crate) fn label(swept: &SweptFactor, level: u64) -> String {
    let place = usize::try_from(level).unwrap_or(usize::MAX);
    match &swept.levels {
        Levels::Range(..) | Levels::List(_) if level == SYSTEM_CHOICE => "auto".to_owned(),
        Levels::Range(..) | Levels::List(_) => with_unit(swept.name, level),
        Levels::Congestion(names) => names.get(place).cloned().unwrap_or_default(),
        Levels::Affinity(places) => places
            .get(place)
            .map_or_else(String::new, CpuPinning::to_string),
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
    pub fn client_spec(&self, spec: &SweepSpec) -> ClientSpec {
        let narrow = |amount: Option<u64>| amount.and_then(|amount| u32::try_from(amount).ok());
        // 0: the client derives the length of datagrams from the segment size of the path.
        let default_block_len_bytes = if spec.is_udp { 0 } else { TCP_BLOCK_LEN_BYTES };
        let mut test = TestSpec {
            transport: if spec.is_udp {
                Transport::Udp
            } else {
                Transport::Tcp
            },
            direction: if spec.is_reverse {
                Direction::Reverse
            } else {
                Direction::Forward
            },
            streams: self.streams.unwrap_or(1).max(1),
            end: EndCondition::Duration(Duration::from_secs(spec.time_s.into())),
            omit: Duration::from_secs(spec.omit_s.into()),
            block_len_bytes: narrow(self.length_bytes).unwrap_or(default_block_len_bytes),
            block_len_explicit: self.length_bytes.is_some(),
            ..TestSpec::default()
        };
        test.pacing.rate_bps = self.rate_bps;
        test.socket.window_bytes = narrow(self.window_bytes);
        test.socket.congestion.clone_from(&self.congestion);

        let mut local = LocalOptions {
            port: spec.port.first,
            ..LocalOptions::default()
        };
        local.bind.family = match spec.family {
            Some(4) => Some(AddressFamily::V4),
            Some(_) => Some(AddressFamily::V6),
            None => None,
        };
        local.interval = Some(SAMPLE_INTERVAL);
        local.rcv_timeout = SILENCE;
        local.control_timeout = Some(CONTROL_SILENCE);
        // A client with nothing in flight noticed a lost path only after 30 to 60 s.
        local.control_keepalive = Some(KEEPALIVE);
        local.cpu = self.pinning.client;

        ClientSpec {
            connect_timeout: Some(CONNECT_TIMEOUT),
            server_cpu: self.pinning.server,
            ports: Some(spec.port).filter(PortRange::is_range),
            ..ClientSpec::new(spec.host.as_str(), local, test)
        }
    }

    /// The command that does the same with any iperf3.
    pub fn command(&self, spec: &SweepSpec) -> String {
        let mut words = vec!["iperf3".to_owned(), "-c".to_owned(), quoted(&spec.host)];
        let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);

        if spec.port.first != 5201 {
            add("-p", spec.port.first.to_string());
        }

        if spec.omit_s > 0 {
            add("-O", spec.omit_s.to_string());
        }

        add("-t", spec.time_s.to_string());
        if let Some(streams) = self.streams.filter(|streams| *streams > 1) {
            add("-P", streams.to_string());
        }

        if let Some(length) = self.length_bytes {
            add("-l", with_unit("length", length));
        }

        if let Some(window) = self.window_bytes {
            add("-w", with_unit("window", window));
        }

        match self.rate_bps {
            Some(rate) => add("-b", with_unit("rate", rate)),
            // iperf3 limits UDP to 1 Mbit/s without `-b`.
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
        words.extend(
            flags
                .iter()
                .filter(|(is_set, _)| *is_set)
                .map(|(_, flag)| (*flag).to_owned()),
        );
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::example;

    fn swept(name: &'static str, levels: Levels) -> SweptFactor {
        SweptFactor { name, levels }
    }

    #[test]
    fn settings_become_tests_and_commands() {
        let pinning = CpuPinning {
            client: Some(0),
            server: Some(1),
        };
        let mut spec = example(vec![
            swept("streams", Levels::Range(1, 64)),
            swept("window", Levels::Range(4096, 1 << 20)),
            swept(
                "congestion",
                Levels::Congestion(vec!["cubic".to_owned(), "bbr".to_owned()]),
            ),
            swept(
                "affinity",
                Levels::Affinity(vec![CpuPinning::default(), pinning]),
            ),
        ]);
        spec.port = 5202.into();
        spec.is_reverse = true;

        let host = HostChoices {
            congestion_in_use: "bbr".to_owned(),
            ..HostChoices::default()
        };
        let space = SettingSpace::new(&spec, &host).expect("levels that exist");
        let choice = space.test_settings(&Setting(vec![10, 262_144, 1, 1]));
        let command = "iperf3 -c h -p 5202 -O 1 -t 3 -P 10 -w 256K -C bbr -A 0,1 -R";
        assert_eq!(choice.command(&spec), command);

        let client = choice.client_spec(&spec);
        assert_eq!(
            (client.test.streams, client.test.socket.window_bytes),
            (10, Some(262_144))
        );
        assert_eq!((client.local.cpu, client.server_cpu), (Some(0), Some(1)));
        assert_eq!(client.test.direction, Direction::Reverse);
        assert!(!client.test.block_len_explicit);
        assert_eq!(
            space.labels(&Setting(vec![1, 0, 0, 0])),
            ["1", "auto", "cubic", "any"]
        );
        assert_eq!(
            space.test_settings(&Setting(vec![1, 0, 0, 0])).window_bytes,
            None
        );

        let defaults = [(0, 1), (1, SYSTEM_CHOICE), (2, 1), (3, 0)];
        assert!(
            defaults
                .iter()
                .all(|(factor, level)| space.is_default(*factor, *level))
        );
        let others = [(0, 2), (1, 4096), (2, 0), (3, 1)];
        assert!(
            !others
                .iter()
                .any(|(factor, level)| space.is_default(*factor, *level))
        );

        let planned: Vec<String> = space.planned.iter().map(SweptFactor::levels_text).collect();
        assert_eq!(planned, ["1..64", "4K..1M", "cubic,bbr", "any,0/1"]);
    }

    #[test]
    fn udp_command_has_its_rate_and_a_quoted_host() {
        let mut spec = example(vec![swept(
            "rate",
            Levels::Range(100_000_000, 10_000_000_000),
        )]);
        spec.is_udp = true;
        spec.host = "a b;'c'".to_owned();

        let space = SettingSpace::new(&spec, &HostChoices::default()).expect("levels that exist");
        let choice = space.test_settings(&Setting(vec![1_500_000_000]));
        let command = r"iperf3 -c 'a b;'\''c'\''' -O 1 -t 3 -b 1500M -u";
        assert_eq!(choice.command(&spec), command);
        assert_eq!(choice.client_spec(&spec).test.block_len_bytes, 0);

        let (min, max, step) = (100_000_000, 10_000_000_000, 10_000_000);
        assert_eq!(space.factors[0].scale, Scale::Amount { min, max, step });
    }

    #[test]
    fn steps_read_well() {
        let steps = (
            step("rate", 1000),
            step("rate", 100_000_000),
            step("window", 1024),
        );
        assert_eq!(steps, (100, 10_000_000, 1));
    }
}
