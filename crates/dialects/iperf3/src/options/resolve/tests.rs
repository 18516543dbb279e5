//! Goal: a command line becomes the test its options describe, or the complaint the original would
//! make.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;

use linerate_model::command_line::table::Value;
use linerate_model::command_line::values::ValueChecks;
use linerate_model::spec::{
    AddressFamily, BitrateLimit, IoStrategy, Keepalive, Payload, ReceiveWait, SendPath,
};
use linerate_model::units::UnitFormat;
use proptest::prelude::*;

use super::super::error::UsageError;
use super::super::parse::Parsed;
use super::super::table::OPTIONS;
use super::*;

const KEY: &str = "-----BEGIN PUBLIC KEY-----\n";

fn surroundings() -> Surroundings<'static> {
    Surroundings {
        read_file: &|path| match path.to_str() {
            Some("key.pem") => Ok(KEY.into()),
            Some("users" | "junk") => Ok(b"mario,00\n".into()),
            _ => Err(io::ErrorKind::NotFound.into()),
        },
        file_len: &|path| match path.to_str() {
            Some("data") => Some(3_000_000),
            Some("empty") => Some(0),
            _ => None,
        },
        password: &|| Some("rossi".to_owned()),
    }
}

fn argv(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

fn command(argv: &[OsString]) -> Result<Command, UsageError> {
    match Args::parse(argv, ValueChecks::default())? {
        Parsed::Run(args) => Ok(resolve(*args, &surroundings())?),
        other => panic!("{argv:?} is no test: {other:?}"),
    }
}

fn client(line: &str) -> (ClientSpec, OutputOptions) {
    match command(&argv(&format!("-c host {line}"))) {
        Ok(Command::Client { spec, output, .. }) => (*spec, output),
        other => panic!("{line} is no client: {other:?}"),
    }
}

fn server(line: &str) -> (ServerSpec, ProcessOptions) {
    match command(&argv(&format!("-s {line}"))) {
        Ok(Command::Server { spec, process, .. }) => (*spec, process),
        other => panic!("{line} is no server: {other:?}"),
    }
}

/// The complaint without its fixed beginning.
fn complaint(line: &str) -> String {
    let message = command(&argv(line))
        .expect_err(line)
        .message(OsStr::new("prog"));
    let message = String::from_utf8(message).expect("only text was typed");
    message
        .trim_start_matches("iperf3: parameter error - ")
        .to_owned()
}

/// What is no range is the number in front, as for the original; so it is for a server.
#[test]
fn range_of_ports_is_of_a_client() {
    let ports = |value: &str| {
        let spec = client(&format!("-p {value}")).0;
        (spec.local.port, spec.ports.map(|ports| ports.to_string()))
    };
    let range = "5201-5210".to_owned();
    assert_eq!(ports("5201-5210"), (5201, Some(range)));

    for text in [
        "5201",
        "5201-5201",
        "5201-",
        "5201-5200",
        "5201x",
        "5201-99999",
    ] {
        assert_eq!(ports(text), (5201, None), "{text}");
    }
    assert_eq!(client("-p 5300-5310 -p 5201").0.ports, None);
    assert_eq!(server("-p 5201-5210").0.local.port, 5201);
}

#[test]
fn nothing_said_is_ten_seconds_of_tcp() {
    let (spec, output) = client("");
    assert_eq!((spec.host.as_str(), spec.local.port), ("host", 5201));
    assert_eq!(
        spec.test.end,
        EndCondition::Duration(Duration::from_secs(10))
    );
    assert_eq!(
        (spec.test.transport, spec.test.block_len_bytes),
        (Transport::Tcp, 131_072)
    );
    assert!(!spec.test.block_len_explicit);
    assert_eq!(
        (spec.test.pacing.rate_bps, spec.test.pacing.timer_us),
        (None, 1000)
    );
    assert_eq!(output, OutputOptions::default());
}

#[test]
fn a_file_ends_the_test_unless_an_end_is_named() {
    let ten_seconds = EndCondition::Duration(Duration::from_secs(10));
    let rows = [
        ("-F data", EndCondition::Bytes(3_000_000)),
        ("-F data -R", EndCondition::Bytes(3_000_000)),
        (
            "-F data -t 20",
            EndCondition::Duration(Duration::from_secs(20)),
        ),
        ("-F data -t 0", EndCondition::Unlimited),
        ("-F data -n 1K", EndCondition::Bytes(1024)),
        ("-F data -k 2", EndCondition::Blocks(2)),
        ("-F empty", ten_seconds),
        ("-F /dev/zero", ten_seconds),
    ];
    for (line, expected) in rows {
        assert_eq!(client(line).0.test.end, expected, "{line}");
    }
}

#[test]
fn a_negative_connect_timeout_is_none() {
    assert_eq!(client("--connect-timeout -5").0.connect_timeout, None);
    assert_eq!(
        client("--connect-timeout 300").0.connect_timeout,
        Some(Duration::from_millis(300))
    );
    assert_eq!(
        complaint("-c host --connect-timeout abc"),
        "invalid unit value or suffix: 'abc'"
    );
}

#[test]
fn client_options_reach_the_test() {
    let (spec, _) =
        client("-P 4 -R -O 2 -t 0 -w 1M -M 1400 -N -C bbr -S 0x10 -L 7 -Z --skip-rx-copy -m");
    let test = &spec.test;
    assert_eq!((test.streams, test.direction), (4, Direction::Reverse));
    assert_eq!(
        (test.omit, test.end),
        (Duration::from_secs(2), EndCondition::Unlimited)
    );
    assert_eq!(test.socket.window_bytes, Some(1 << 20));
    assert_eq!(
        (test.socket.mss_bytes, test.socket.no_delay),
        (Some(1400), true)
    );
    assert_eq!(test.socket.congestion.as_deref(), Some("bbr"));
    assert_eq!((test.socket.tos, test.socket.flow_label), (0x10, Some(7)));
    assert!(test.send_path == SendPath::SendFile && test.skip_rx_copy && test.mptcp);

    let (spec, _) = client(
        "--bidir -n 1K -b 5M/10 --fq-rate 1G --pacing-timer 2K --repeating-payload --extra-data x",
    );
    let test = &spec.test;
    assert_eq!(
        (test.direction, test.end),
        (Direction::Bidirectional, EndCondition::Bytes(1024))
    );
    assert_eq!(
        (test.pacing.rate_bps, test.pacing.burst_blocks),
        (Some(5_000_000), Some(10))
    );
    assert_eq!(
        (test.pacing.fq_rate_bps, test.pacing.timer_us),
        (Some(1_000_000_000), 2048)
    );
    assert_eq!(
        (test.payload, test.extra_data.as_deref()),
        (Payload::Repeating, Some("x"))
    );
    assert_eq!(client("-k 3").0.test.end, EndCondition::Blocks(3));
}

#[test]
fn udp_has_its_own_defaults() {
    let (spec, _) = client("-u");
    assert_eq!(
        (spec.test.block_len_bytes, spec.test.pacing.rate_bps),
        (0, Some(1_048_576))
    );
    assert_eq!(client("-u -b 0").0.test.pacing.rate_bps, None);

    let (spec, _) = client("-u -l 1400 --gsro --udp-counters-64bit --dont-fragment");
    let sizes = Segmentation {
        datagram_bytes: 1400,
        buffer_bytes: 46 * 1400,
    };
    assert_eq!(
        (spec.test.udp.gso, spec.test.udp.gro),
        (Some(sizes), Some(sizes))
    );
    assert!(
        spec.test.udp.counters_64bit
            && spec.test.socket.dont_fragment
            && spec.test.block_len_explicit
    );
    assert_eq!(
        client("-u -l 16 --gsro")
            .0
            .test
            .udp
            .gso
            .map(|s| s.buffer_bytes),
        Some(128 * 16)
    );
}

#[test]
fn the_number_of_sctp_streams_is_no_rate() {
    let (spec, _) = client("--sctp --nstreams 5 -X 192.0.2.1 -X 192.0.2.2");
    assert_eq!(
        (spec.test.transport, spec.test.block_len_bytes),
        (Transport::Sctp, 65_536)
    );
    assert_eq!(
        (spec.test.socket.sctp_streams, spec.test.pacing.rate_bps),
        (Some(5), None)
    );
    assert_eq!(spec.test.socket.sctp_bind, ["192.0.2.1", "192.0.2.2"]);
}

#[test]
fn a_device_behind_a_host_is_a_device_unless_it_is_a_scope() {
    let host_of = |line: &str| match command(&argv(line)) {
        Ok(Command::Client { spec, .. }) => (spec.host, spec.local.bind.device),
        other => panic!("{line} is no client: {other:?}"),
    };
    assert_eq!(host_of("-c a%eth0"), ("a".into(), Some("eth0".into())));
    assert_eq!(host_of("-c fe80::1%eth0"), ("fe80::1%eth0".into(), None));
    assert_eq!(
        host_of("-c a --bind-dev lo"),
        ("a".into(), Some("lo".into()))
    );

    let (spec, _) = client("-B ::1%lo --cport 5000 -4 -6");
    let bind = spec.local.bind;
    assert_eq!(
        (bind.host.as_deref(), bind.device.as_deref()),
        (Some("::1"), Some("lo"))
    );
    assert_eq!(
        (bind.client_port, bind.family),
        (Some(5000), Some(AddressFamily::V6))
    );
}

#[test]
fn local_options_reach_both_ends() {
    let line = "-p 99 -i 0.5 -A 3 --rcv-timeout 500 --snd-timeout 700 --cntl-ka=30/5/2 -F data";
    let (server, _) = server(line);
    let (client, _) = client(&format!("{line} -R"));
    assert_eq!(server.local, client.local);

    let local = client.local;
    assert_eq!(
        (local.port, local.interval),
        (99, Some(Duration::from_millis(500)))
    );
    assert_eq!(
        (local.cpu, local.rcv_timeout),
        (Some(3), Duration::from_millis(500))
    );
    assert_eq!(local.snd_timeout, Some(Duration::from_millis(700)));

    let keepalive = Keepalive {
        idle_s: 30,
        interval_s: 5,
        count: 2,
    };
    assert_eq!(
        (local.control_keepalive, local.file),
        (Some(keepalive), Some("data".into()))
    );
    assert_eq!(super::tests::client("-i 0").0.local.interval, None);
    assert_eq!(super::tests::client("-A 1,2").0.server_cpu, Some(2));
    assert_eq!(
        super::tests::client("--cntl-ka").0.local.control_keepalive,
        Some(Keepalive::default())
    );
}

#[test]
fn a_strategy_has_blocks_and_a_wait() {
    for (value, blocks_per_call, receive_wait) in [
        ("1/0", 1, ReceiveWait::Event),
        ("8/10", 8, ReceiveWait::Pause(10)),
        ("64/1000", 64, ReceiveWait::Pause(1000)),
        ("8/spin", 8, ReceiveWait::Spin),
    ] {
        let (spec, _) = client(&format!("--lr-io {value}"));
        assert_eq!(
            spec.local.io_strategy,
            Some(IoStrategy {
                blocks_per_call,
                receive_wait
            }),
            "{value}"
        );
    }

    assert_eq!(client("--lr-io auto").0.local.io_strategy, None);
    for value in [
        "8", "spin", "0/10", "65/10", "8/1001", "8/-1", "8/Spin", "/",
    ] {
        assert!(
            complaint(&format!("-c host --lr-io {value}")).contains("BLOCKS/spin"),
            "{value}"
        );
    }
}

#[test]
fn server_options_reach_the_server() {
    let (spec, process) = server(
        "-D -1 -I f.pid --idle-timeout 9 --server-max-duration 60 --server-bitrate-limit 1M/2 -m",
    );
    assert!(spec.one_off && spec.mptcp && process.daemon);
    assert_eq!(process.pidfile, Some("f.pid".into()));
    assert_eq!(spec.idle_timeout, Some(Duration::from_secs(9)));
    assert_eq!(spec.max_duration, Some(Duration::from_secs(60)));

    let limit = BitrateLimit {
        rate_bps: 1_000_000,
        window: Duration::from_secs(2),
    };
    assert_eq!(spec.bitrate_limit, Some(limit));
    assert_eq!(server("--server-bitrate-limit 0").0.bitrate_limit, None);
}

#[test]
fn logins_need_everything_on_both_ends() {
    let (spec, _) = client("--username mario --rsa-public-key-path key.pem --use-pkcs1-padding");
    let credentials = spec.credentials.expect("a login");
    assert_eq!(
        (credentials.username.as_str(), credentials.password.as_str()),
        ("mario", "rossi")
    );
    assert_eq!(
        (
            credentials.public_key_pem.as_str(),
            credentials.pkcs1_padding
        ),
        (KEY, true)
    );

    let (spec, _) = server(
        "--rsa-private-key-path key.pem --authorized-users-path users --time-skew-threshold 3",
    );
    let auth = spec.auth.expect("a login");
    assert_eq!(
        (auth.max_skew, auth.padding),
        (Duration::from_secs(3), AcceptedPadding::Oaep)
    );

    let client_auth = "you must specify a username, password, and path to a valid RSA public key";
    let server_auth =
        "you must specify a path to a valid RSA private key and a user credential file";

    let rows = [
        ("-c h --username mario", client_auth),
        ("-c h --rsa-public-key-path key.pem", client_auth),
        (
            "-c h --username mario --rsa-public-key-path nowhere",
            client_auth,
        ),
        (
            "-c h --username mario --rsa-public-key-path junk",
            client_auth,
        ),
        ("-s --rsa-private-key-path key.pem", server_auth),
        ("-s --authorized-users-path users", server_auth),
        (
            "-s --rsa-private-key-path junk --authorized-users-path users",
            server_auth,
        ),
        (
            "-s --rsa-private-key-path key.pem --authorized-users-path nowhere",
            "cannot access authorized users file",
        ),
    ];
    for (line, expected) in rows {
        let text = complaint(line);
        // Where a file is missing, a line above names it and the cause.
        assert!(text.ends_with(expected), "{line}: {text}");
        assert_eq!(
            text.contains("nowhere: "),
            line.contains("nowhere"),
            "{line}: {text}"
        );
    }
}

#[test]
fn credentials_that_no_server_could_read_are_refused() {
    let blank = Surroundings {
        password: &|| Some("two words".to_owned()),
        ..surroundings()
    };
    let line = "-c h --username mario --rsa-public-key-path key.pem";
    let parsed = Args::parse(&argv(line), ValueChecks::default());
    let Ok(Parsed::Run(args)) = parsed else {
        panic!("a test: {parsed:?}");
    };
    assert!(matches!(
        resolve(*args, &blank),
        Err(ParameterError::BlankInCredentials)
    ));
}

#[test]
fn reports_are_as_asked_for() {
    let (_, output) = client(
        "-f M -V --debug=2 --logfile log --forceflush --timestamps=%H -T name --json-stream",
    );
    assert_eq!(
        output.format,
        UnitFormat {
            is_bytes: true,
            power: Some(2)
        }
    );
    assert!(output.verbose && output.forceflush && output.json && output.json_stream);
    assert!(!output.json_stream_full);
    assert_eq!((output.debug, output.logfile), (2, Some("log".into())));
    assert_eq!(
        (output.timestamps.as_deref(), output.title.as_deref()),
        (Some("%H"), Some("name"))
    );
    assert_eq!(client("--timestamps").1.timestamps.as_deref(), Some("%c "));
    assert_eq!((client("-d").1.debug, client("--debug=-1").1.debug), (4, 4));
}

#[test]
fn json_output_warns_of_options_that_do_not_go_with_it() {
    let warnings_of = |line: &str| match Args::parse(&argv(line), ValueChecks::default()) {
        Ok(Parsed::Run(args)) => warnings(&args),
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(warnings_of("-c h -J -V -f k -d").len(), 3);
    assert_eq!(warnings_of("-c h -V -f k -d"), [""; 0]);
    assert_eq!(
        warnings_of("-c h -J -f k"),
        ["warning: Report format (-f) flag ignored with JSON output (-J)"]
    );
}

#[test]
fn contradictions_are_reported_in_the_order_of_the_original() {
    let server_only = "some option you are trying to set is server only";
    let client_only = "some option you are trying to set is client only";
    let no_role = "must either be a client (-c) or server (-s)";
    let end = "only one test end condition (-t, -n, -k) may be specified";
    let rows = [
        ("-t 5", no_role),
        ("", no_role),
        ("-t 5 -n 5", end),
        ("-s -t 5", client_only),
        ("-s -A 1,2", client_only),
        ("-s -T x", client_only),
        ("-c h -D", server_only),
        ("-c h -D -n 1 -k 1", server_only),
        ("-c h --use-pkcs1-padding", server_only),
        ("-c h -t 0 -n 5M", end),
        ("-s -c h", "cannot be both server and client"),
        ("-c h -s", "cannot be both server and client"),
        ("--bidir -R", "cannot be both reverse and bidirectional"),
        ("-c h -F f -u -l 8", "cannot transfer file using UDP"),
        (
            "-c h -l -1",
            "block size too large (maximum = 1048576 bytes)",
        ),
        ("-c h -n -1", "invalid unit value or suffix: '-1'"),
        ("-c h -b 1Q/5", "invalid unit value or suffix: '1Q'"),
        ("-c h -b 1Q/0", "invalid burst count (maximum = 1000)"),
        (
            "-s --idle-timeout 0",
            "idle timeout parameter is not positive or larger than allowed limit",
        ),
        (
            "-s --time-skew-threshold 0",
            "skew threshold must be a positive number",
        ),
        (
            "-s --server-max-duration -1",
            "test duration valid values are 0 to 86400 seconds",
        ),
        (
            "-s --server-bitrate-limit 1M/61",
            "invalid time interval for calculating average data rate",
        ),
        (
            "-c h -P=4",
            "invalid number of parallel streams (min = 1, max = 128)",
        ),
        (
            "-c h -i nan",
            "invalid report interval (min = 0.1, max = 60 seconds)",
        ),
        (
            "-c h -t 99999999999999999999",
            "test duration valid values are 0 to 86400 seconds",
        ),
    ];
    for (line, expected) in rows {
        assert_eq!(complaint(line), expected, "{line}");
    }
}

#[test]
fn values_the_original_accepts_are_accepted() {
    let rows = [
        "-t abc",
        "-t 5x",
        "-n 0 -t 5",
        "-n 0 -k 0",
        "-S 5x",
        "--dscp AF11",
        "-A 5x",
        "-A 1,",
        "-f kk",
        "-i abc",
        "-l 0",
        "-u -l 0x10",
        "-b 1M/1000",
        "-L 1x",
        "-P 128",
        "-M 10000",
        "--bandwidth 1M",
        "--linux-congestion cubic",
        "--no-fq-socket-pacing",
        "-Rt1",
        "-P4",
        "--rev",
        "--parallel=4",
        "-t 3 -t 4",
        "a b",
        "-- -z",
        "-R -R",
        "--json-stream-full-output",
        "--rcv-timeout 1000 --bidir",
        "--debug=9",
        "--cntl-ka=10",
        "--cntl-ka=//3",
        "--connect-timeout 1000 --get-server-output",
    ];
    for row in rows {
        client(row);
    }
}

#[test]
fn many_streams_need_to_be_asked_for() {
    assert_eq!(client("-P 16384 --lr-many-streams").0.test.streams, 16_384);
    assert_eq!(
        complaint("-c h --lr-many-streams -P 16385"),
        "invalid number of parallel streams (min = 1, max = 16384)"
    );
}

#[test]
fn no_two_options_share_a_name() {
    let mut names: Vec<String> = Vec::new();
    for option in OPTIONS {
        names.extend(option.short().map(|letter| letter.to_string()));
        names.extend(option.longs().map(str::to_owned));
    }

    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// Any word: options of the table with sensible and absurd values, and arbitrary bytes.
fn any_word() -> impl Strategy<Value = OsString> {
    let value = prop_oneof![
        Just(String::new()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| number.to_string()),
        "[0-9.eE+-]{0,8}[kKmMgGtTqx/%,:]{0,2}[0-9]{0,3}",
        Just("fe80::1%\u{1F600}".to_owned()),
    ];
    let option = (0..OPTIONS.len(), value.clone(), 0..3).prop_map(|(at, value, form)| {
        let option = &OPTIONS[at];
        match (form, option.short()) {
            (0, Some(letter)) => format!("-{letter}{value}"),
            (1, _) if option.value() != Value::None => format!("--{}={value}", option.long()),
            _ => format!("--{}", option.long()),
        }
    });
    prop_oneof![
        6 => option.prop_map(OsString::from),
        2 => value.prop_map(OsString::from),
        1 => Just(OsString::from("-s")),
        1 => Just(OsString::from("-chost")),
        1 => prop::collection::vec(1_u8..=255, 0..12).prop_map(OsString::from_vec),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    /// No command line makes the program panic, and a complaint can always be worded.
    #[test]
    fn any_command_line_has_an_answer(argv in prop::collection::vec(any_word(), 0..8)) {
        let outcome = match Args::parse(&argv, ValueChecks::default()) {
            Ok(Parsed::Run(args)) => resolve(*args, &surroundings()).map(drop).map_err(UsageError::from),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            prop_assert!(!error.message(OsStr::new("prog")).is_empty());
        }
    }
}
