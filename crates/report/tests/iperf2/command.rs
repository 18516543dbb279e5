//! Options of a recorded program, as far as its output shows them.

use std::time::Duration;

use linerate_model::Direction;
use linerate_model::spec::{TestSpec, Transport};
use linerate_model::workload::{BounceBack, HistogramSpec, Isochronous, Pairing, Shape, Start};
use linerate_report::iperf2::{Layout, Units};

/// One command line.
#[derive(Debug, Clone)]
pub(crate) struct Command {
    pub(crate) layout: Layout,
    pub(crate) enhanced: bool,
    pub(crate) csv: bool,
    pub(crate) units: Units,
    pub(crate) sum_only: bool,
    pub(crate) hide_addresses: bool,
    pub(crate) print_mss: bool,
    pub(crate) interval: Option<Duration>,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) last_port: Option<u16>,
    pub(crate) block_len_named: bool,
    pub(crate) test: TestSpec,
}

impl Command {
    pub(crate) fn parse(line: &str, release: &str) -> Self {
        let line = line.split("   (iperf").next().unwrap_or_default();
        let words: Vec<String> = line.split_whitespace().flat_map(split_sign).collect();
        let mut command = Self {
            layout: if release.starts_with("218") {
                Layout::V2_1
            } else {
                Layout::V2_2
            },
            enhanced: false,
            csv: false,
            units: Units::default(),
            sum_only: false,
            hide_addresses: false,
            print_mss: false,
            interval: None,
            host: String::new(),
            port: 5001,
            last_port: None,
            block_len_named: false,
            test: TestSpec::default(),
        };
        let mut words = words.iter().map(String::as_str).peekable();
        while let Some(word) = words.next() {
            let takes = |word: &str| VALUED.contains(&word);
            let value = if takes(word) {
                words.next().unwrap_or_default()
            } else {
                ""
            };
            // The value behind a sign was split off; it belongs to the option.
            let optional = if OPTIONAL.contains(&word) {
                words.next_if(|next| next.starts_with('=')).unwrap_or_default()
            } else {
                ""
            };
            command.take(
                word,
                if value.is_empty() {
                    optional.trim_start_matches('=')
                } else {
                    value
                },
            );
        }
        command.finish();
        command
    }

    fn take(&mut self, word: &str, value: &str) {
        let (test, is_new) = (&mut self.test, self.layout == Layout::V2_2);
        match word {
            "-c" => self.host = value.to_owned(),
            "-e" => self.enhanced = true,
            "-u" => test.transport = Transport::Udp,
            "-i" => self.interval = Duration::try_from_secs_f64(number(value)).ok(),
            "-P" => test.streams = number(value) as u32,
            "-p" => {
                let (first, last) = value.split_once('-').unwrap_or((value, ""));
                self.port = number(first) as u16;
                self.last_port = last.parse().ok();
            }
            "-b" if value.ends_with("pps") => test.workload.datagrams_per_s = Some(number(value) as u64),
            "-b" => test.pacing.rate_bps = Some(number(value) as u64),
            "-l" => {
                test.block_len_bytes = number(value) as u32;
                self.block_len_named = true;
            }
            "-w" => test.socket.window_bytes = Some(number(value) as u32),
            "-M" => test.socket.mss_bytes = Some(number(value) as u32),
            "-m" => self.print_mss = true,
            "-N" => test.socket.no_delay = true,
            "-S" => test.socket.tos = u8::from_str_radix(value.trim_start_matches("0x"), 16).expect("a number"),
            "--dscp" => test.socket.tos = (number(value) as u8) << 2,
            "-Z" => test.socket.congestion = Some(value.to_owned()),
            "-f" => self.units = value.chars().next().and_then(Units::from_letter).unwrap_or_default(),
            "-y" => self.csv = true,
            "-R" => test.direction = Direction::Reverse,
            "-d" | "-r" | "--full-duplex" => {
                test.direction = Direction::Bidirectional;
                test.workload.pairing = match word {
                    "-d" => Pairing::ConnectBack,
                    "-r" => Pairing::ConnectBackAfterwards,
                    _ => Pairing::Shared,
                };
            }
            "-X" => test.workload.detect_peer = true,
            "-V" if test.transport == Transport::Udp => test.block_len_bytes = 1450,
            "--sum-only" => self.sum_only = true,
            "--hide-ips" => self.hide_addresses = true,
            "--trip-times" => test.workload.trip_times = true,
            "--no-udp-fin" => test.workload.without_final_report = true,
            "--permit-key" => test.workload.permit_key = Some(value.to_owned()),
            "--tcp-write-times" => test.workload.write_times = true,
            "--tcp-write-prefetch" => test.workload.unsent_limit_bytes = Some(number(value) as u32),
            "--fq-rate" => test.pacing.fq_rate_bps = Some(number(value) as u64),
            "--txdelay-time" => test.workload.start = Start::After(Duration::from_secs(1)),
            "--histograms" => {
                self.enhanced = true;
                test.workload.write_times = true;
                test.workload.histogram = Some(HistogramSpec {
                    bin_width_us: 100,
                    bins: if is_new { 100_000 } else { 10_000 },
                    lower_percent: 5.0,
                    upper_percent: 95.0,
                });
            }
            "--connect-only" => test.workload.shape = Shape::ConnectOnly { count: None },
            "--near-congestion" => test.workload.shape = Shape::NearCongestion { weight: 0.5 },
            "--isochronous" => {
                self.enhanced = true;
                test.workload.shape = Shape::Isochronous(frames(value));
            }
            "--burst-size" | "--burst-period" => {
                self.enhanced = true;
                test.workload.shape = Shape::Bursts {
                    size_bytes: 256 << 10,
                    period: Duration::from_millis(500),
                };
            }
            "--bounceback" => {
                self.enhanced = true;
                test.socket.no_delay = true;
                test.workload.shape = Shape::BounceBack(BounceBack {
                    request_bytes: 100,
                    reply_bytes: None,
                    burst: 10,
                    period: Duration::from_secs(1),
                    hold: Duration::ZERO,
                    quick_ack: true,
                    load: None,
                });
            }
            _ => {}
        }
    }

    fn finish(&mut self) {
        let test = &mut self.test;
        let is_new = self.layout == Layout::V2_2;
        self.enhanced |= is_new && test.workload.trip_times && test.transport == Transport::Tcp;
        if test.transport == Transport::Udp {
            if !self.block_len_named && test.block_len_bytes > 2000 {
                test.block_len_bytes = 1470;
            }
            if test.pacing.rate_bps.is_none() {
                test.pacing.rate_bps = Some(1 << 20);
            }
        }
    }
}

/// `--permit-key=x` as two words, the second with its sign.
fn split_sign(word: &str) -> Vec<String> {
    match word.split_once('=') {
        Some((name, value)) if name.starts_with("--") => vec![name.to_owned(), format!("={value}")],
        _ => vec![word.to_owned()],
    }
}

fn frames(value: &str) -> Isochronous {
    let (fps, rates) = value.split_once(':').unwrap_or(("60", "20m,0"));
    let (mean, deviation) = rates.split_once(',').unwrap_or((rates, "0"));
    Isochronous {
        frames_per_s: number(fps),
        mean_bps: number(mean),
        deviation_bps: number(deviation),
        gap: Duration::ZERO,
    }
}

fn number(text: &str) -> f64 {
    let text = text.trim_end_matches("pps").split(',').next().unwrap_or_default();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text.trim_start_matches(digits) {
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "K" => 1024.0,
        "M" => 1024.0 * 1024.0,
        "G" => 1024.0 * 1024.0 * 1024.0,
        _ => 1.0,
    };
    digits.parse::<f64>().unwrap_or(0.0) * factor
}

const VALUED: &[&str] = &[
    "-c",
    "-i",
    "-P",
    "-p",
    "-b",
    "-l",
    "-w",
    "-M",
    "-S",
    "-Z",
    "-f",
    "-y",
    "-t",
    "-n",
    "-B",
    "-F",
    "-L",
    "-T",
    "--dscp",
    "--fq-rate",
    "--tcp-write-prefetch",
    "--txdelay-time",
    "--burst-size",
    "--burst-period",
];
const OPTIONAL: &[&str] = &[
    "--isochronous",
    "--permit-key",
    "--histograms",
    "--bounceback",
    "--connect-only",
];
