//! Goal: a command line becomes the test its options describe.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;

use linerate_model::command_line::values::ValueChecks;
use linerate_model::spec::ConnectRetry;
use linerate_model::workload::{HistogramSpec, WorkingLoad};
use proptest::prelude::*;

use super::super::table::OPTIONS;
use super::*;

const NOW: Duration = Duration::from_secs(1_800_000_000);

fn command(argv: &[OsString]) -> Result<Command, Stop> {
    let mut args = Args::new(argv, ValueChecks::default());
    args.parse(OsStr::new("iperf"), argv, &|_| None)?;
    let surroundings = Surroundings {
        now: NOW,
        secret: &|| "a-secret".to_owned(),
    };
    resolve(&mut args, &surroundings)
}

fn argv(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

fn client(line: &str) -> (ClientSpec, OutputOptions) {
    match command(&argv(&format!("-c host {line}"))) {
        Ok(Command::Client { spec, output }) => (*spec, output),
        other => panic!("{line} is no client: {other:?}"),
    }
}

fn test(line: &str) -> TestSpec {
    client(line).0.test
}

fn defaults(line: &str) -> Iperf2Defaults {
    match command(&argv(&format!("-s {line}"))) {
        Ok(Command::Server { spec, .. }) => *spec.local.end.defaults.expect("a server serves"),
        other => panic!("{line} is no server: {other:?}"),
    }
}

#[test]
fn defaults_are_those_of_the_original() {
    let (spec, output) = client("");
    assert_eq!((spec.local.port, spec.local.interval), (5001, None));
    assert_eq!(
        (spec.test.block_len_bytes, spec.test.block_len_explicit),
        (131_072, false)
    );
    assert_eq!(
        spec.test.end,
        EndCondition::Duration(Duration::from_secs(10))
    );
    assert_eq!(
        (spec.test.streams, spec.test.direction),
        (1, Direction::Forward)
    );
    assert_eq!(output, OutputOptions::default());

    let udp = test("-u");
    assert_eq!(
        (udp.block_len_bytes, udp.pacing.rate_bps),
        (1470, Some(1_048_576))
    );
    assert_eq!(test("-u -V").block_len_bytes, 1450);

    let server = defaults("");
    assert_eq!(
        (
            server.lifetime,
            server.connections_max,
            server.test.block_len_bytes
        ),
        (None, None, 131_072)
    );
}

#[test]
fn the_commands_of_the_reports_mean_what_they_say() {
    let (spec, _) = client("-t 30 -i 1 -P 10 -p 10001");
    assert_eq!((spec.local.port, spec.test.streams), (10_001, 10));
    assert_eq!(spec.local.interval, Some(Duration::from_secs(1)));

    let small = test("-i 1 -l 32 -P 100 -w 1M -t 5");
    assert_eq!(
        (
            small.block_len_bytes,
            small.block_len_explicit,
            small.streams
        ),
        (32, true, 100)
    );
    assert_eq!(small.socket.window_bytes, Some(1 << 20));
    assert_eq!(defaults("-w 1M").test.socket.window_bytes, Some(1 << 20));
}

#[test]
fn numbers_have_letters_of_two_sizes() {
    assert_eq!(test("-n 1k").end, EndCondition::Bytes(1000));
    assert_eq!(test("-n 1K").end, EndCondition::Bytes(1024));
    assert_eq!(test("-n 1.5G").end, EndCondition::Bytes(3 << 29));
    assert_eq!(test("-b 10m").pacing.rate_bps, Some(10_000_000));
    assert_eq!(test("-b 10M").pacing.rate_bps, Some(10 << 20));
    assert_eq!(test("--fq-rate 50m").pacing.fq_rate_bps, Some(50_000_000));
    assert_eq!(
        test("--fq-rate 1M").pacing.fq_rate_bps,
        Some(8_000_000),
        "a capital letter means bytes"
    );
    assert_eq!(test("-l 2m").block_len_bytes, 2_000_000);
}

#[test]
fn of_a_time_and_an_amount_the_later_one_counts() {
    assert_eq!(test("-t 3 -n 10").end, EndCondition::Bytes(10));
    assert_eq!(
        test("-n 10 -t 3").end,
        EndCondition::Duration(Duration::from_secs(3))
    );
    assert_eq!(test("-t 0").end, EndCondition::Unlimited);
    assert_eq!(test("-t -1").end, EndCondition::Unlimited);
    assert_eq!(
        test("-t 0.3").end,
        EndCondition::Duration(Duration::from_millis(300))
    );
}

#[test]
fn directions_and_connections() {
    let rows = [
        ("-R", Direction::Reverse, Pairing::Separate),
        ("--full-duplex", Direction::Bidirectional, Pairing::Shared),
        ("-d", Direction::Bidirectional, Pairing::ConnectBack),
        (
            "-r",
            Direction::Bidirectional,
            Pairing::ConnectBackAfterwards,
        ),
    ];
    for (line, direction, pairing) in rows {
        let test = test(line);
        assert_eq!(
            (test.direction, test.workload.pairing),
            (direction, pairing),
            "{line}"
        );
    }

    assert_eq!(test("-d -L 6101").workload.back_port, Some(6101));
}

#[test]
fn rates_of_every_kind() {
    let varying = test("-u -b 10m,1m");
    assert_eq!(varying.pacing.rate_bps, Some(10_000_000));
    assert_eq!(varying.workload.rate_deviation_bps, Some(1_000_000));

    let counted = test("-u -b 100pps");
    assert_eq!(
        (counted.pacing.rate_bps, counted.workload.datagrams_per_s),
        (None, Some(100))
    );
    assert_eq!(test("-u --isochronous").pacing.rate_bps, None);
}

#[test]
fn shapes_of_every_kind() {
    let video = test("-u --isochronous=30:10m,1m --ipg 2").workload.shape;
    let expected = Isochronous {
        frames_per_s: 30.0,
        mean_bps: 10e6,
        deviation_bps: 1e6,
        gap: Duration::from_millis(2),
    };
    assert_eq!(video, Shape::Isochronous(expected));

    let bursts = |size_bytes, millis| Shape::Bursts {
        size_bytes,
        period: Duration::from_millis(millis),
    };
    assert_eq!(
        test("--burst-size 256K").workload.shape,
        bursts(256 << 10, 1000)
    );
    assert_eq!(
        test("--burst-period 0.5").workload.shape,
        bursts(1 << 20, 500)
    );
    assert_eq!(test("--burst-period 0").workload.shape, Shape::Continuous);
    assert_eq!(
        test("--near-congestion").workload.shape,
        Shape::NearCongestion { weight: 0.5 }
    );
    assert_eq!(
        test("--connect-only").workload.shape,
        Shape::ConnectOnly { count: Some(10) }
    );
    assert_eq!(
        test("--connect-only=3").workload.shape,
        Shape::ConnectOnly { count: Some(3) }
    );
    assert_eq!(
        test("--connect-only -i 1").workload.shape,
        Shape::ConnectOnly { count: None }
    );
}

#[test]
fn bounce_back_brings_its_own_defaults() {
    let (spec, output) = client("--bounceback");
    let Shape::BounceBack(bounce) = &spec.test.workload.shape else {
        panic!("{spec:?}")
    };
    assert_eq!(
        (bounce.request_bytes, bounce.reply_bytes, bounce.burst),
        (100, None, 10)
    );
    assert_eq!(
        (bounce.period, bounce.hold, bounce.quick_ack),
        (Duration::from_secs(1), Duration::ZERO, true)
    );
    assert!(output.enhanced && spec.test.socket.no_delay);
    assert_eq!(spec.local.interval, Some(Duration::from_secs(1)));

    let line = "--bounceback=5 --bounceback-request 200 --bounceback-reply 500 --bounceback-hold 5 \
                --bounceback-period 0 --bounceback-no-quickack --working-load=up,2";
    let Shape::BounceBack(bounce) = test(line).workload.shape else {
        panic!()
    };
    let expected = BounceBack {
        request_bytes: 200,
        reply_bytes: Some(500),
        burst: 5,
        period: Duration::ZERO,
        hold: Duration::from_millis(5),
        quick_ack: false,
        load: Some(WorkingLoad {
            up: true,
            down: false,
            streams: 2,
        }),
    };
    assert_eq!(bounce, expected);
}

#[test]
fn addresses_have_ports_and_devices() {
    type Row = (
        &'static str,
        Option<&'static str>,
        Option<u16>,
        Option<&'static str>,
    );

    let rows: &[Row] = &[
        ("192.0.2.1", Some("192.0.2.1"), None, None),
        ("192.0.2.1:6000", Some("192.0.2.1"), Some(6000), None),
        ("[2001:db8::1]:6000", Some("2001:db8::1"), Some(6000), None),
        ("2001:db8::1", Some("2001:db8::1"), None, None),
        ("239.1.1.1%eth0", Some("239.1.1.1"), None, Some("eth0")),
        ("fe80::1%eth0", Some("fe80::1%eth0"), None, None),
    ];
    for (typed, host, port, device) in rows {
        let Ok(Command::Server { spec, .. }) = command(&argv(&format!("-s -B {typed}"))) else {
            panic!("{typed}")
        };
        let bind = &spec.local.bind;
        let found = (
            bind.host.as_deref(),
            bind.client_port,
            bind.device.as_deref(),
        );
        assert_eq!(found, (*host, *port, *device), "{typed}");
    }

    let Ok(Command::Client { spec, .. }) = command(&argv("-c fe80::2%eth1 -c other")) else {
        panic!()
    };
    assert_eq!(spec.host, "other", "the later host counts");
    let Ok(Command::Client { spec, .. }) = command(&argv("-c 192.0.2.7%eth1")) else {
        panic!()
    };
    assert_eq!(
        (spec.host.as_str(), spec.local.end.peer_device.as_deref()),
        ("192.0.2.7", Some("eth1"))
    );
}

#[test]
fn an_end_speaks_as_the_release_whose_lines_it_writes() {
    assert_eq!(test("").workload.release, Release::V2_1);
    assert_eq!(test("--lr-format 2.2").workload.release, Release::V2_2);
    assert_eq!(
        defaults("--lr-format 2.2").test.workload.release,
        Release::V2_2
    );
}

#[test]
fn who_shows_the_sizes_of_reads_reads_what_the_banner_says() {
    let exact = |line| defaults(line).test.workload.exact_reads;
    assert_eq!(
        (exact(""), exact("-e"), exact("-l 8K")),
        (false, true, true)
    );
}

#[test]
fn start_times_and_retries() {
    assert_eq!(
        test("--txdelay-time 1.5").workload.start,
        Start::After(Duration::from_millis(1500))
    );
    assert_eq!(
        test("--txstart-time 1800000005.5").workload.start,
        Start::At(NOW + Duration::from_millis(5500))
    );
    let typed_us = Duration::from_micros(1_795_319_078_050_000);
    assert_eq!(
        test("--txstart-time 1795319078.05").workload.start,
        Start::At(typed_us)
    );
    assert!(
        command(&argv("-c h --txstart-time 1800003601")).is_err(),
        "more than an hour ahead"
    );

    let retry = |line| client(line).0.local.end.connect_retry;
    let mut twice = ConnectRetry::new(Duration::from_millis(200));
    twice.attempts = Some(2);
    assert_eq!(retry("--connect-retries 2"), Some(twice));

    let mut lasting = ConnectRetry::new(Duration::from_secs(2));
    lasting.within = Some(Duration::from_secs(5));
    assert_eq!(
        retry("--connect-retry-time 5 --connect-retry-timer 2"),
        Some(lasting)
    );
    assert_eq!(retry(""), None);
}

#[test]
fn histograms_have_a_width_and_a_number_of_bins() {
    let spec = |bin_width_us, bins, lower_percent, upper_percent| {
        let mut spec = HistogramSpec::new(bin_width_us, bins);
        (spec.lower_percent, spec.upper_percent) = (lower_percent, upper_percent);
        spec
    };
    let rows = [
        ("--histograms", spec(100, 10_000, 5.0, 95.0)),
        (
            "--histograms --lr-format=2.2",
            spec(100, 100_000, 5.0, 95.0),
        ),
        ("--histograms=1m,10", spec(1000, 10, 5.0, 95.0)),
        ("--histograms=50u,200,10,90", spec(50, 200, 10.0, 90.0)),
        ("--udp-histograms=1,1000", spec(1000, 1000, 5.0, 95.0)),
        ("--histograms=0,0", spec(1, 1, 5.0, 95.0)),
    ];
    for (line, expected) in rows {
        assert_eq!(test(line).workload.histogram, Some(expected), "{line}");
        assert_eq!(
            defaults(line).test.workload.histogram,
            Some(expected),
            "{line}"
        );
    }

    assert!(test("--histograms").workload.write_times && client("--histograms").1.enhanced);
}

#[test]
fn servers_have_options_of_their_own() {
    let server = defaults("-t 5 -P 1 -1 --tos-override ef -V -u -l 100 -b 1m");
    assert_eq!(server.lifetime, Some(Duration::from_secs(5)));
    assert_eq!(
        (
            server.connections_max,
            server.one_at_a_time,
            server.dual_stack
        ),
        (Some(1), true, true)
    );
    assert_eq!(server.reply_tos, Some(0xb8));
    assert_eq!(server.test.pacing.rate_bps, Some(1_000_000));
    assert_eq!(server.test.block_len_bytes, 100);
}

#[test]
fn a_server_without_a_key_makes_one_up() {
    let server = defaults("--permit-key");
    assert_eq!(server.test.workload.permit_key.as_deref(), Some("a-secret"));
    assert_eq!(server.permit_key_lifetime, Some(Duration::from_secs(20)));
    assert_eq!(
        defaults("--permit-key=abcd")
            .test
            .workload
            .permit_key
            .as_deref(),
        Some("abcd")
    );
    assert_eq!(defaults("").permit_key_lifetime, None);
}

#[test]
fn every_option_has_a_name_of_its_own_and_every_variable_an_option() {
    let mut names: Vec<&str> = OPTIONS.iter().flat_map(|option| option.longs()).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);

    for (variable, long) in super::super::table::ENVIRONMENT {
        assert!(
            OPTIONS.iter().any(|option| option.long() == long),
            "{variable}"
        );
    }
}

proptest! {
    #[test]
    fn any_words_are_survived(typed in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..12), 0..8)) {
        let argv: Vec<OsString> = typed.into_iter().map(OsString::from_vec).collect();
        let _ = command(&argv);
    }

    #[test]
    fn any_values_are_survived(picks in prop::collection::vec((0..OPTIONS.len(), "[0-9kKmMgG.,:%u-]{0,9}"), 0..9)) {
        let mut argv = vec![OsString::from("-c"), OsString::from("host")];
        for (option, value) in picks {
            argv.push(format!("--{}={value}", OPTIONS[option].long()).into());
        }
        if let Ok(Command::Client { spec, .. }) = command(&argv) {
            prop_assert!(spec.test.streams >= 1 && spec.test.block_len_bytes >= 1);
        }
    }
}
