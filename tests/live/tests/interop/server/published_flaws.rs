//! Inputs that end, block or fill servers of iperf3 before 3.22: the inputs of what was published
//! in 2026. Each is refused or has no effect, and the next client is served.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use linerate_interop::{
    Control, Keys, RawClient, Received, Server, Status, TIMEOUT, cpu_time, frame, fresh_cookie,
    original, ours, ours_only, state, wait_until,
};

/// CVE-2026-101276: the watchdog of a test frees streams whose worker is blocked.
#[test]
fn a_test_beyond_its_time_ends_while_its_worker_is_blocked() {
    let ours = ours_only!("ends servers before 3.22");
    let mut server = Server::start(ours, &["--lr-liveness", "2"]);
    let parameters = r#"{"tcp":true,"omit":0,"time":1,"parallel":1,"reverse":true,"len":131072}"#;
    let mut client = RawClient::running(server.port, parameters);

    // It reads less than is sent, so that the test makes progress and the worker waits for room.
    let mut data = client.data.take().expect("a stream");
    let ended = wait_until(TIMEOUT, || {
        let _ = data.take(64 * 1024);
        client.control.response_within(Duration::from_millis(50))
            == Received::Byte(state::SERVER_ERROR)
    });
    assert!(ended, "{server:?}");
    assert_eq!(
        client.control.take(4),
        160_u32.to_be_bytes(),
        "the time of the test has passed"
    );
    drop((client, data));
    expect_service(&mut server);
}

/// CVE-2026-101283 and its neighbour: tokens that are longer, shorter or other than what was
/// encrypted with the key.
#[test]
fn tokens_of_any_length_are_refused() {
    let ours = ours_only!("ends servers before 3.22");
    let keys = Keys::make();
    let lengths = [1, 3, 4, 256, 257, 344, 345, 512, 1024, 7000];
    let odd = ["", "=", "====", "%%%%"].map(str::to_owned);
    let tokens = lengths
        .map(|length| "A".repeat(length))
        .into_iter()
        .chain(odd);
    for token in tokens {
        // An address is locked out after a few failed logins.
        let mut server = keys.server(ours, None);
        let mut control = Control::connect(server.port);
        control.send(&fresh_cookie());
        control.expect(state::PARAM_EXCHANGE);
        control.send(&frame(&format!(
            r#"{{"tcp":true,"time":1,"len":1000,"authtoken":"{token}"}}"#
        )));

        let answer = control.drain();
        let refused = [&[state::SERVER_ERROR][..], &142_u32.to_be_bytes(), &[0; 4]].concat();
        assert_eq!(
            answer,
            refused,
            "{} bytes of {:?}",
            token.len(),
            token.chars().next()
        );
        assert!(!server.process.has_ended(), "{server:?}");
        keys.client(server.port, ours, "rossi", &[]).expect_clean();
    }
}

/// CVE-2026-102253: sizes of a receiver that splits what has arrived into parts of 0 bytes.
#[test]
fn sizes_of_segmented_datagrams_make_no_endless_loop() {
    let ours = ours_only!("blocks servers before 3.22");
    let mut server = Server::start(ours, &[]);

    let sizes = [
        r#""gso":0,"gso_dg_size":0,"gro":1,"gro_bf_size":0"#,
        r#""gso":1,"gso_dg_size":0,"gso_bf_size":0,"gro":1,"gro_bf_size":16"#,
        r#""gso":1,"gso_dg_size":0,"gso_bf_size":65507,"gro":1,"gro_bf_size":65507"#,
        r#""gso":1,"gso_dg_size":1,"gro":1,"gro_bf_size":1"#,
        r#""gso":1,"gso_dg_size":-1,"gro":1,"gro_bf_size":-1"#,
        r#""gso":1,"gso_dg_size":4294967296,"gro":1,"gro_bf_size":4294967296"#,
    ];
    for sizes in sizes {
        let parameters = format!(
            r#"{{"udp":true,"omit":0,"time":10,"parallel":1,"len":16,"bandwidth":1000,{sizes}}}"#
        );
        let mut client = RawClient::named(server.port);
        client.control.send(&frame(&parameters));

        if client.control.response() != Received::Byte(state::CREATE_STREAMS) {
            continue;
        }

        let data = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        data.connect(("127.0.0.1", server.port)).expect("loopback");
        data.set_read_timeout(Some(TIMEOUT))
            .expect("the time is not zero");
        data.send(b"9876").expect("loopback");
        data.recv(&mut [0; 4]).expect("the server answers a hello");
        client.expect_start();

        let before = (Instant::now(), cpu_time(server.process.id()));
        data.send(&[0; 16]).expect("loopback");
        wait_until(TIMEOUT, || before.0.elapsed() > Duration::from_secs(1));

        let used = cpu_time(server.process.id()) - before.1;
        assert!(
            used < Duration::from_millis(500),
            "{sizes}: {used:?} in {:?}",
            before.0.elapsed()
        );
        client.finish();
    }

    expect_service(&mut server);
}

/// CVE-2026-71217: numbers without bounds.
#[test]
fn parameters_beyond_their_bounds_take_no_memory() {
    let ours = ours_only!("fills the memory of servers before 3.22");
    let mut server = Server::start(ours, &[]);
    server.run(original(), &["-n", "64K"]).expect_clean();

    let idle_kib = Status::of(server.process.id()).resident_kib;
    let huge = [
        "2147483647",
        "4294967296",
        "9223372036854775807",
        "1e300",
        "-1",
        "-9223372036854775808",
    ];

    let keys = [
        "parallel",
        "len",
        "window",
        "MSS",
        "burst",
        "num",
        "blockcount",
        "time",
        "omit",
        "bandwidth",
        "TOS",
    ];
    for key in keys {
        for value in huge {
            let mut client = RawClient::named(server.port);
            client
                .control
                .send(&frame(&format!(r#"{{"tcp":true,"{key}":{value}}}"#)));
            let answer = client.control.response();
            let is_answered = [state::SERVER_ERROR, state::CREATE_STREAMS]
                .map(Received::Byte)
                .contains(&answer);
            assert!(is_answered, "{key} {value}: {answer:?}");
        }
    }

    let grown_kib = Status::of(server.process.id())
        .resident_kib
        .saturating_sub(idle_kib);
    assert!(grown_kib < 16 * 1024, "{grown_kib} KiB");
    expect_service(&mut server);
}

#[track_caller]
fn expect_service(server: &mut Server) {
    assert!(!server.process.has_ended(), "{server:?}");
    server.run(original(), &["-n", "64K"]).expect_clean();
    server.run(ours(), &["-n", "64K"]).expect_clean();
}
