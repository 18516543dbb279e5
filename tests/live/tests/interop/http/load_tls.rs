//! The load generator over TLS and HTTP/2: counts that agree with the server's, certificates that
//! are trusted or not, and servers that do not speak what is asked for.

use std::net::TcpListener;
use std::thread;

use linerate_interop::{
    Certificate, HttpLoad, HttpServer, Nginx, RawServer, Signal, TIMEOUT, Then, each_case,
    wait_for, words,
};

/// Everything is counted, from the first request of the load on.
const SHORT: [&str; 6] = ["-c", "4", "-d", "500ms", "--warmup", "0"];
/// The request that asks for permission, as it were, before the load.
const FIRST_CONTACT: u64 = 1;

fn https(url: &str) -> String {
    url.replace("http://", "https://")
}

/// A load that has to be refused before it begins.
#[track_caller]
fn expect_refusal(url: &str, arguments: &[&str], code: i32, text: &str) {
    let finished = HttpLoad::start(url, arguments).finish();
    finished.expect_code(code).expect_stderr(text);
}

/// nginx with TLS and HTTP/2 that closes no connection after a number of requests.
fn nginx() -> Nginx {
    Nginx::start("ssl http2", KEPT_OPEN)
}

const KEPT_OPEN: &str = "keepalive_requests 10000000;";

/// Words of nginx's `listen` line, options of the generator, a path, and the versions of HTTP and
/// TLS in use.
type Case<'a> = (&'a str, &'a [&'a str], &'a str, (&'a str, &'a str));

#[test]
fn timed_the_server_counts_what_the_generator_counts() {
    let rows: [Case<'_>; 8] = [
        ("ssl http2", &["-k"], "/1k", ("1.1", "1.3")),
        (
            "ssl http2",
            &["-k", "--h2", "-m", "8"],
            "/10k",
            ("2", "1.3"),
        ),
        ("http2", &["--h2", "--streams", "3"], "/1k", ("2", "")),
        (
            "ssl http2",
            &["-k", "--h2", "-X", "HEAD"],
            "/100k",
            ("2", "1.3"),
        ),
        ("ssl http2", &["-k", "--verify"], "/100k", ("1.1", "1.3")),
        (
            "ssl http2",
            &["-k", "--h2", "-m", "2", "--rate", "100"],
            "/1k",
            ("2", "1.3"),
        ),
        (
            "ssl http2",
            &["-k", "--rate", "100", "--arrival", "poisson"],
            "/1k",
            ("1.1", "1.3"),
        ),
        (
            "http2",
            &["--h2", "--think", "5ms", "--procs", "2"],
            "/1k",
            ("2", ""),
        ),
    ];
    each_case(&rows, |(words, options, path, (http, tls))| {
        let server = Nginx::start(words, KEPT_OPEN);
        let load = HttpLoad::run(&server.url(path), &[&SHORT, *options].concat());
        load.expect_all_well();
        assert_eq!(
            load.protocol(),
            ((*http).to_owned(), (*tls).to_owned()),
            "{load:?}"
        );
        assert!(
            !load.has("http_bytes") && !load.has("response_head_bytes"),
            "{load:?}"
        );
        server.expect_logged(load.number("requests") + FIRST_CONTACT);
    });
}

#[test]
fn timed_payload_is_what_the_bodies_had_and_an_open_loop_sends_what_is_due() {
    let server = nginx();
    let load = HttpLoad::run(
        &server.url("/10k"),
        &[&SHORT[..], &["-k", "--h2", "-m", "4", "--rate", "300"]].concat(),
    );
    load.expect_all_well().expect_all_open(4);
    assert_eq!(load.number("requests"), 150, "{load:?}");
    assert_eq!(load.number("payload_bytes"), 150 * 10_240, "{load:?}");
    assert_eq!(load.number("service/n"), 150, "{load:?}");
}

/// nginx passes the bodies on to a server of ours, which counts their bytes.
#[test]
fn bodies_are_sent_in_both_versions() {
    let counting = HttpServer::start(&[]);
    let pass = format!(
        "location / {{ proxy_pass {}; }} {KEPT_OPEN}",
        counting.url("")
    );
    let server = Nginx::start("ssl http2", &pass);
    let folder = tempfile::tempdir().expect("a folder");
    let body = folder.path().join("body");
    std::fs::write(&body, vec![b'x'; 5000]).expect("write");

    let body = body.display().to_string();
    let upload = [
        "-k",
        "-X",
        "POST",
        "--allow-unsafe-methods",
        "--body",
        &body,
    ];
    let first = HttpLoad::run(&server.url("/sink"), &[&SHORT[..], &upload].concat());
    let second = HttpLoad::run(
        &server.url("/sink"),
        &[&SHORT[..], &upload, &["--h2"]].concat(),
    );
    let sent =
        [&first, &second].map(|load| load.expect_all_well().number("requests") + FIRST_CONTACT);
    let summary = counting.stop();
    let mut totals = summary
        .stdout
        .lines()
        .filter_map(|line| line.split_once(" B sent, "));
    let (_, received) = totals.next().expect("a summary");
    let received: u64 = received
        .split(' ')
        .next()
        .and_then(|bytes| bytes.parse().ok())
        .expect("bytes");
    assert!(received > 5000 * (sent[0] + sent[1]), "{summary:?}");
}

#[test]
fn timed_nginx_counts_the_same_although_it_closes_connections_now_and_then() {
    // Far fewer requests than a second has, after which nginx closes a connection, in HTTP/2 by
    // GOAWAY.
    let server = Nginx::start("ssl http2", "keepalive_requests 20;");
    let (cacert, url) = (server.certificate().path("cert.pem"), server.url("/1k"));
    let mut logged = 0;

    for (options, version) in [
        (&[][..], "1.1"),
        (&["--h2"][..], "2"),
        (&["--h2", "-m", "16"][..], "2"),
        (&["--h2", "-m", "16", "--rate", "200"][..], "2"),
    ] {
        let common = ["--cacert", &cacert, "-c", "2", "-d", "1s", "--warmup", "0"];
        let load = HttpLoad::run(&url, &[&common[..], options].concat());
        load.expect_all_well();
        assert_eq!(load.protocol().0, version, "{load:?}");
        assert!(load.number("connections/reconnects") > 0, "{load:?}");
        logged += load.number("requests") + FIRST_CONTACT;
        server.expect_logged(logged);
    }
}

#[test]
fn certificate_is_trusted_by_store_file_pin_or_option() {
    let server = nginx();
    let certificate = server.certificate();
    let (cacert, pin) = (certificate.path("cert.pem"), certificate.fingerprint());
    let url = server.url("/1k");

    let rows: [&[&str]; 4] = [
        &["--insecure"],
        &["--cacert", &cacert],
        &["--pin-sha256", &pin],
        &["-k", "--procs", "2"],
    ];
    each_case(&rows, |options| {
        HttpLoad::run(&url, &[&SHORT, *options].concat()).expect_all_well();
    });
    let other = Certificate::make();

    expect_refusal(
        &url,
        &[],
        4,
        "invalid peer certificate: CaUsedAsEndEntity; --cacert FILE",
    );
    expect_refusal(&url, &["--h2"], 4, "cannot be trusted");
    expect_refusal(
        &url,
        &["--cacert", &other.path("cert.pem")],
        4,
        "cannot be trusted",
    );
    expect_refusal(
        &url,
        &["--pin-sha256", &other.fingerprint()],
        4,
        "cannot be trusted",
    );

    let named = url.replace("127.0.0.1", "localhost");
    expect_refusal(
        &named,
        &["-4", "--cacert", &cacert],
        4,
        "not valid for name \"localhost\"",
    );
    expect_refusal(
        &url,
        &["--cacert", &certificate.path("key.pem")],
        2,
        "no certificate in PEM form",
    );
    expect_refusal(
        &url,
        &["--cacert", "/nowhere.pem"],
        2,
        "--cacert /nowhere.pem: ",
    );

    // Nothing was asked by those who were not satisfied.
    assert!(HttpLoad::run(&url, &["-k", "-d", "200ms"]).number("ok") > 0);
}

#[test]
fn a_self_made_certificate_is_pinned_by_what_the_server_printed() {
    let plain = HttpServer::start(&[]);
    expect_refusal(
        &https(&plain.url("/1k")),
        &["-k"],
        4,
        "does not speak TLS on this port",
    );
    expect_refusal(
        &plain.url("/1k"),
        &["--h2"],
        4,
        "does not respond in HTTP/2",
    );

    let old = Nginx::start("ssl", "");
    expect_refusal(
        &old.url("/1k"),
        &["-k", "--h2"],
        4,
        "does not agree to HTTP/2 (ALPN)",
    );
    let silent = RawServer::that_sends("", Then::Hold);
    for (url, options) in [(https(&silent.url("/")), "-k"), (silent.url("/"), "--h2")] {
        expect_refusal(&url, &[options], 4, "no response from");
    }
}

#[test]
fn handshakes_that_fail_are_a_class_of_their_own() {
    let server = nginx();
    // Every other connection goes to the next port, where each is closed before the handshake.
    let next = server.address.port() + 1;
    let listener = TcpListener::bind(("127.0.0.1", next)).expect("a port that is kept for this");
    thread::spawn(move || listener.incoming().for_each(drop));

    let url = server.url("/1k").replace("/1k", &format!("-{next}/1k"));
    for version in [&[][..], &["--h2"]] {
        let load = HttpLoad::run(
            &url,
            &[&SHORT[..], &["-k", "--no-breaker"], version].concat(),
        );
        load.expect_only("tls");
        assert_eq!(load.number("connections/opened"), 2, "{load:?}");
        assert!(load.number("ok") > 0, "{load:?}");
    }
}

#[test]
fn what_fails_on_a_stream_has_its_class_and_leaves_the_connection_alone() {
    let busy = format!("location /busy {{ return 503; }} {KEPT_OPEN}");
    let server = Nginx::start("ssl http2", &busy);

    for (path, options, class) in [
        ("/busy", &[][..], "status_5xx"),
        ("/nowhere", &["--h2", "-m", "2"], "status_4xx"),
    ] {
        let load = HttpLoad::run(
            &server.url(path),
            &[&SHORT[..], &["-k", "--no-breaker"], options].concat(),
        );
        load.expect_only(class);
        assert_eq!(load.number("connections/reconnects"), 0, "{load:?}");
    }
}

#[test]
fn a_server_that_dies_ends_the_load_with_typed_failures() {
    for options in [&[][..], &["--h2", "-m", "4"]] {
        let server = nginx();
        let arguments = [
            &[
                "-k",
                "-c",
                "4",
                "-d",
                "3s",
                "--warmup",
                "0",
                "--timeout",
                "1s",
                "--no-breaker",
            ],
            options,
        ];
        let load = HttpLoad::start(&server.url("/1k"), &arguments.concat());
        let begun = wait_for(TIMEOUT, || load.stderr().contains("1 of 3 s").then_some(()));
        assert!(begun.is_some(), "{load:?}");
        server.process.signal(Signal::Kill);

        let load = HttpLoad::of(load.finish());
        let count = |classes: &[&str]| -> u64 {
            let errors = load.errors().into_iter();
            errors
                .filter(|(class, _)| classes.contains(&class.as_str()))
                .map(|(_, count)| count)
                .sum()
        };
        let without_response = count(&["reset_before_answer", "reset_mid_answer", "eof"]);

        // A reconnect while the server dies may still be accepted.
        let came_back = count(&["connect_refused", "tls"]);
        assert_eq!(
            without_response,
            load.number("requests") - load.number("ok"),
            "{load:?}"
        );
        assert_eq!(came_back, 4, "{load:?}");

        // A connection may also be lost between two requests.
        let all: u64 = load.errors().iter().map(|(_, count)| count).sum();
        assert_eq!(
            all,
            without_response + came_back + count(&["reset_idle"]),
            "{load:?}"
        );
        assert!(load.number("ok") > 0, "{load:?}");
        assert_eq!(load.number("connections/open_at_end"), 0, "{load:?}");
    }
}

#[test]
fn idle_connections_are_held_and_their_heartbeats_counted() {
    let server = nginx();
    let options = words("-k --h2 -c 50 --idle --heartbeat 500ms --touch -d 1s --warmup 0");
    let load = HttpLoad::run(&server.url("/1k"), &options);
    load.expect_all_open(50).expect_all_well();
    assert_eq!(load.number("requests"), 100, "{load:?}");
    server.expect_logged(100 + 50 + FIRST_CONTACT);
}

#[test]
fn unsupported_options_of_tls_are_refused_with_an_alternative() {
    for (url, arguments, text) in [
        (
            "https://127.0.0.1:1/",
            &["-k", "--pipeline", "4"][..],
            "--h2 --streams",
        ),
        (
            "http://127.0.0.1:1/",
            &["--h2", "--pipeline", "4"],
            "--streams N",
        ),
        ("http://127.0.0.1:1/", &["--streams", "4"], "--pipeline N"),
        (
            "http://127.0.0.1:1/",
            &["--h2", "-c", "50000"],
            "in plain text",
        ),
        ("http://127.0.0.1:1/", &["--h2", "--spin"], "--spin"),
        ("http://127.0.0.1:1/", &["-k"], "only https has"),
        (
            "https://127.0.0.1:1/",
            &["--pin-sha256", "abc"],
            "64 hexadecimal digits",
        ),
    ] {
        expect_refusal(url, arguments, 2, text);
    }
}
