//! Clients that break every rule against our server. The server must close the connection by
//! itself, and the original's client must be served as if nothing had happened.

use std::time::Duration;

use linerate_interop::{
    Control, RawClient, Received, Server, cookie, each_case, frame, original, ours, ours_only,
    state, words,
};

/// Name, and the part of the client: it returns the control connection, open or not.
type Attack = (&'static str, fn(u16) -> Control);

const ATTACKS: [Attack; 33] = [
    ("silence", Control::connect),
    ("immediate end", |port| {
        sending(Control::connect(port), &[], true)
    }),
    ("garbage", |port| {
        sending(Control::connect(port), &[0xA5; 4096], false)
    }),
    ("a web browser", |port| {
        sending(
            Control::connect(port),
            b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
            true,
        )
    }),
    ("half a cookie, then silence", |port| {
        sending(Control::connect(port), &cookie()[..20], false)
    }),
    ("half a cookie, then the end", |port| {
        sending(Control::connect(port), &cookie()[..20], true)
    }),
    ("a cookie in drips", |port| {
        dripping(Control::connect(port), &cookie())
    }),
    ("a cookie, then silence", |port| {
        sending(Control::connect(port), &cookie(), false)
    }),
    ("end instead of parameters", |port| {
        sending(requested(port), &[], true)
    }),
    ("half a length", |port| {
        sending(requested(port), &[0, 0], true)
    }),
    ("length 0", |port| sending(requested(port), &[0; 4], false)),
    ("length 0 and a body", |port| {
        sending(requested(port), &[0, 0, 0, 0, b'{', b'}'], false)
    }),
    ("the greatest length", |port| {
        sending(requested(port), &[0xFF; 4], false)
    }),
    ("the greatest positive length", |port| {
        sending(requested(port), &[0x7F, 0xFF, 0xFF, 0xFF], false)
    }),
    ("parameters over the limit", |port| {
        let text = format!("{{\"tcp\":true,\"title\":\"{}\"}}", "x".repeat(8193 - 23));
        assert_eq!(text.len(), 8193);
        sending(requested(port), &frame(&text), false)
    }),
    ("parameters that stop half way", |port| {
        let text = frame("{\"tcp\":true,\"time\":1}");
        sending(requested(port), &text[..12], false)
    }),
    ("parameters in drips", |port| {
        dripping(
            requested(port),
            &frame("{\"tcp\":true,\"time\":1,\"title\":\"slow\"}"),
        )
    }),
    ("deep nesting", |port| {
        sending(requested(port), &frame(&"[".repeat(8000)), false)
    }),
    ("no JSON", |port| {
        sending(requested(port), &frame("time=1"), false)
    }),
    ("no text at all", |port| {
        sending(
            requested(port),
            &[0, 0, 0, 4, 0xFF, 0xFE, 0x00, 0x80],
            false,
        )
    }),
    ("values out of range", |port| {
        let text = "{\"tcp\":true,\"parallel\":100000,\"len\":-1,\"time\":-5,\"omit\":1e300,\"bandwidth\":-1}";
        sending(requested(port), &frame(text), false)
    }),
    ("numbers beyond every integer", |port| {
        let text =
            "{\"tcp\":true,\"time\":1e999,\"num\":99999999999999999999999999,\"parallel\":0.1}";
        sending(requested(port), &frame(text), true)
    }),
    ("end instead of streams", |port| {
        sending(accepted(port), &[], true)
    }),
    ("silence instead of streams", accepted),
    ("done instead of streams", |port| {
        sending(accepted(port), &[state::IPERF_DONE], false)
    }),
    ("terminated instead of streams", |port| {
        sending(accepted(port), &[state::CLIENT_TERMINATE], false)
    }),
    ("an unknown state before streams", |port| {
        sending(accepted(port), &[77], false)
    }),
    ("end while running", |port| {
        sending(running(port).control, &[], true)
    }),
    ("an unknown state while running", |port| {
        sending(running(port).control, &[77], false)
    }),
    ("end instead of results", |port| {
        sending(ended(port), &[], true)
    }),
    ("the greatest length of results", |port| {
        sending(ended(port), &[0xFF; 4], false)
    }),
    ("results that are no object", |port| {
        sending(ended(port), &frame("[1,2,3]"), false)
    }),
    ("results with the wrong types", |port| {
        let text =
            "{\"cpu_util_total\":\"x\",\"streams\":{\"id\":[]},\"sender_has_retransmits\":{}}";
        sending(ended(port), &frame(text), false)
    }),
];

#[test]
fn the_next_client_is_served_after_every_attack() {
    ours_only!("3.12 waits for ever after most of these");
    each_case(&ATTACKS, |(_, attack)| {
        let mut server = Server::start(ours(), &[]);
        attack(server.port).drain();
        server.run(original(), &["-n", "64K"]).expect_clean();
        assert!(!server.process.has_ended());
    });
}

/// One server takes all of it and keeps nothing.
#[test]
fn attacks_leave_nothing_behind() {
    ours_only!("3.12 waits for ever after most of these");
    // Those that make the server wait for its deadline are left out, for they were run above and
    // take ten seconds each.
    let slow = ["silence", "drips", "half way", "greatest length of results"];
    let quick = ATTACKS
        .iter()
        .filter(|(name, _)| !slow.iter().any(|word| name.contains(word)));
    let (server, idle) = Server::start_idle(ours());

    for (_, attack) in quick {
        attack(server.port).drain();
    }

    server.run(original(), &["-n", "64K"]).expect_clean();
    server.process.wait_for_idle(idle);
}

#[test]
fn wrong_types_in_the_parameters_do_not_stop_the_server() {
    ours_only!("3.12 crashes on some of these");
    let server = Server::start(ours(), &[]);

    let keys = "tcp omit time num blockcount parallel len bandwidth title congestion authtoken MSS \
                window TOS client_version burst flowlabel reverse server_affinity";
    for key in words(keys) {
        for value in [
            "null",
            "[]",
            "{}",
            "\"x\"",
            "true",
            "-1",
            "1e400",
            "18446744073709551615",
        ] {
            let mut control = requested(server.port);
            control.send(&frame(&format!("{{\"{key}\":{value}}}")));
            control.half_close();
            control.drain();
        }
    }

    server.run(original(), &["-n", "64K"]).expect_clean();
}

/// A stranger on the data port is turned away and the test continues.
#[test]
fn a_data_connection_with_a_foreign_cookie_is_refused() {
    let server = Server::start(ours(), &["-1"]);
    let mut client = RawClient::accepted(server.port, PARAMETERS);
    let mut stranger = Control::connect(server.port);
    stranger.send(&[b'z'; 37]);
    assert_eq!(stranger.response(), Received::Byte(state::ACCESS_DENIED));
    client.open_stream();
}

#[test]
fn client_during_a_test_is_refused_without_reading_it() {
    let server = Server::start(ours(), &["-1"]);
    let _running = running(server.port);
    let mut late_client = Control::connect(server.port);
    assert_eq!(late_client.response(), Received::Byte(state::ACCESS_DENIED));
    assert_eq!(late_client.response(), Received::Closed);
}

/// A test of one stream that was asked for.
const PARAMETERS: &str =
    r#"{"tcp":true,"omit":0,"time":1,"parallel":1,"len":1000,"client_version":"3.12"}"#;

fn requested(port: u16) -> Control {
    RawClient::named(port).control
}

fn accepted(port: u16) -> Control {
    RawClient::accepted(port, PARAMETERS).control
}

fn running(port: u16) -> RawClient {
    let mut client = RawClient::running(port, PARAMETERS);
    client.data.as_mut().expect("a stream").send(&[0; 1000]);
    client
}

/// A test that has ended; the server waits for results.
fn ended(port: u16) -> Control {
    let mut client = running(port);
    client.data = None;
    client.end();
    client.control
}

fn sending(mut control: Control, bytes: &[u8], then_end: bool) -> Control {
    control.send(bytes);
    if then_end {
        control.half_close();
    }
    control
}

/// One byte at a time, so slowly that a time-out per byte would never end it.
fn dripping(mut control: Control, bytes: &[u8]) -> Control {
    for byte in bytes {
        if !control.send(&[*byte])
            || control.response_within(Duration::from_millis(900)) == Received::Closed
        {
            break;
        }
    }

    control
}
