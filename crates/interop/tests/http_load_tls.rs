//! The load generator over TLS and HTTP/2: counts that agree with the server's, certificates that are trusted or
//! not, and servers that do not speak what is asked for.

use linerate_interop::{
    Certificate, HttpLoad, HttpServer, Nginx, RawServer, Signal, TIMEOUT, Then, each_case, wait_for,
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

/// nginx with a certificate.
fn nginx(certificate: &Certificate, words: &str) -> Nginx {
    let (cert, key) = (certificate.path("cert.pem"), certificate.path("key.pem"));
    Nginx::start_speaking(words, &format!("ssl_certificate {cert}; ssl_certificate_key {key};"))
}

/// Words of the server, words of the generator, a path, and the negotiated versions of HTTP and TLS.
type ProtocolRow<'a> = (&'a [&'a str], &'a [&'a str], &'a str, (&'a str, &'a str));

#[test]
fn the_server_counts_what_the_generator_counts() {
    let rows: [ProtocolRow<'_>; 8] = [
        (&["--tls"], &["-k"], "/1k", ("1.1", "1.3")),
        (&["--tls"], &["-k", "--h2", "-m", "8"], "/10k", ("2", "1.3")),
        (&["--h2"], &["--h2", "--streams", "3"], "/1k", ("2", "")),
        (&["--tls"], &["-k", "--h2", "-X", "HEAD"], "/1m", ("2", "1.3")),
        (
            &["--tls"],
            &["-k", "--verify"],
            "/b/300001?chunked=70000",
            ("1.1", "1.3"),
        ),
        (
            &["--tls"],
            &["-k", "--h2", "-m", "2", "--rate", "400"],
            "/1k",
            ("2", "1.3"),
        ),
        (
            &["--tls"],
            &["-k", "--rate", "400", "--arrival", "poisson"],
            "/1k",
            ("1.1", "1.3"),
        ),
        (&["--h2"], &["--h2", "--think", "5ms", "--procs", "2"], "/1k", ("2", "")),
    ];
    each_case(
        &rows,
        |(_, options, path, _)| format!("{options:?} {path}"),
        |(server, options, path, (http, tls))| {
            let server = HttpServer::start(server);
            let url = if tls.is_empty() {
                server.url(path)
            } else {
                https(&server.url(path))
            };
            let load = HttpLoad::run(&url, &[&SHORT, *options].concat());
            load.expect_all_well();
            assert_eq!(load.protocol(), ((*http).to_owned(), (*tls).to_owned()), "{load:?}");
            assert!(!load.has("http_bytes") && !load.has("response_head_bytes"), "{load:?}");
            let requests = load.number("requests") + FIRST_CONTACT;
            server
                .stop()
                .expect_stdout(&format!("{requests} requests, {requests} answers (0 errors)"));
        },
    );
}

#[test]
fn payload_is_what_the_bodies_had_and_an_open_loop_sends_what_is_due() {
    let server = HttpServer::start(&["--tls"]);
    let url = https(&server.url("/b/12345"));
    let load = HttpLoad::run(
        &url,
        &[&SHORT[..], &["-k", "--h2", "-m", "4", "--rate", "1000"]].concat(),
    );
    load.expect_all_well().expect_all_open(4);
    assert_eq!(load.number("requests"), 500, "{load:?}");
    assert_eq!(load.number("payload_bytes"), 500 * 12_345, "{load:?}");
    assert_eq!(load.number("service/n"), 500, "{load:?}");
}

#[test]
fn bodies_are_sent_in_both_versions() {
    let server = HttpServer::start(&["--tls"]);
    let folder = tempfile::tempdir().expect("a folder");
    let body = folder.path().join("body");
    std::fs::write(&body, vec![b'x'; 5000]).expect("write");
    let body = body.display().to_string();
    let upload = ["-k", "-X", "POST", "--allow-unsafe-methods", "--body", &body];
    let first = HttpLoad::run(&https(&server.url("/sink")), &[&SHORT[..], &upload].concat());
    let second = HttpLoad::run(&https(&server.url("/sink")), &[&SHORT[..], &upload, &["--h2"]].concat());
    let sent = [&first, &second].map(|load| load.expect_all_well().number("requests") + FIRST_CONTACT);
    let reported = server.stop();
    let received = reported
        .stdout
        .lines()
        .find_map(|line| line.split_once(" B sent, "))
        .expect("a summary");
    let received: u64 = received
        .1
        .split(' ')
        .next()
        .and_then(|bytes| bytes.parse().ok())
        .expect("bytes");
    assert!(received > 5000 * (sent[0] + sent[1]), "{reported:?}");
}

#[test]
fn timed_nginx_counts_the_same_although_it_closes_connections_now_and_then() {
    let certificate = Certificate::make();
    let server = nginx(&certificate, "ssl http2");
    let cacert = certificate.path("cert.pem");
    let url = https(&server.url("/1k"));
    let mut logged = 0;
    // Far more than the thousand requests after which nginx closes a connection, in HTTP/2 by GOAWAY.
    for (options, version) in [
        (&[][..], "1.1"),
        (&["--h2"][..], "2"),
        (&["--h2", "-m", "16"][..], "2"),
        (&["--h2", "-m", "16", "--rate", "6000"][..], "2"),
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
    let certificate = Certificate::make();
    let server = nginx(&certificate, "ssl http2");
    let (cacert, pin) = (certificate.path("cert.pem"), certificate.fingerprint());
    let url = https(&server.url("/1k"));
    let rows: [&[&str]; 4] = [
        &["--insecure"],
        &["--cacert", &cacert],
        &["--pin-sha256", &pin],
        &["-k", "--procs", "2"],
    ];
    each_case(
        &rows,
        |options| format!("{options:?}"),
        |options| {
            HttpLoad::run(&url, &[&SHORT, *options].concat()).expect_all_well();
        },
    );
    let other = Certificate::make();
    expect_refusal(
        &url,
        &[],
        4,
        "invalid peer certificate: CaUsedAsEndEntity; --cacert FILE",
    );
    expect_refusal(&url, &["--h2"], 4, "cannot be trusted");
    expect_refusal(&url, &["--cacert", &other.path("cert.pem")], 4, "cannot be trusted");
    expect_refusal(&url, &["--pin-sha256", &other.fingerprint()], 4, "cannot be trusted");
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
    expect_refusal(&url, &["--cacert", "/nowhere.pem"], 2, "--cacert /nowhere.pem: ");
    // Nothing was asked by those who were not satisfied.
    assert!(HttpLoad::run(&url, &["-k", "-d", "200ms"]).number("ok") > 0);
}

#[test]
fn a_self_made_certificate_is_pinned_by_what_the_server_printed() {
    let server = HttpServer::start(&["--tls"]);
    expect_refusal(&https(&server.url("/1k")), &[], 4, "UnknownIssuer; --cacert FILE");
    let printed = server.process.stdout();
    let pin = printed
        .split_once("SHA-256 ")
        .expect("a fingerprint")
        .1
        .lines()
        .next()
        .expect("a line");
    HttpLoad::run(
        &https(&server.url("/1k")),
        &[&SHORT[..], &["--pin-sha256", pin]].concat(),
    )
    .expect_all_well();
}

#[test]
fn servers_of_other_protocols_are_named_without_waiting() {
    let certificate = Certificate::make();
    let plain = HttpServer::start(&[]);
    expect_refusal(&https(&plain.url("/1k")), &["-k"], 4, "does not speak TLS on this port");
    expect_refusal(&plain.url("/1k"), &["--h2"], 4, "does not answer in HTTP/2");
    let old = nginx(&certificate, "ssl");
    expect_refusal(
        &https(&old.url("/1k")),
        &["-k", "--h2"],
        4,
        "does not agree to HTTP/2 (ALPN)",
    );
    let silent = RawServer::that_sends("", Then::Hold);
    for (url, options) in [(https(&silent.url("/")), "-k"), (silent.url("/"), "--h2")] {
        expect_refusal(&url, &[options], 4, "no answer from");
    }
}

#[test]
fn handshakes_that_fail_are_a_class_of_their_own() {
    // The server closes what is too much before the handshake.
    let server = HttpServer::start(&["--tls", "--max-conns", "2"]);
    for version in [&[][..], &["--h2"]] {
        let load = HttpLoad::run(
            &https(&server.url("/1k")),
            &[&SHORT[..], &["-k", "--no-breaker"], version].concat(),
        );
        load.expect_only("tls");
        assert_eq!(load.number("connections/opened"), 2, "{load:?}");
        assert!(load.number("ok") > 0, "{load:?}");
    }
}

#[test]
fn what_fails_on_a_stream_has_its_class_and_leaves_the_connection_alone() {
    let server = HttpServer::start(&["--tls", "--aids"]);
    let rows: [(&str, &[&str], &str); 3] = [
        ("/1k?status=503", &[], "status_5xx"),
        ("/nowhere", &["--h2", "-m", "2"], "status_4xx"),
        ("/1k?delay=20000", &["--h2", "-m", "2", "--timeout", "300ms"], "timeout"),
    ];
    each_case(
        &rows,
        |(path, options, _)| format!("{path} {options:?}"),
        |(path, options, class)| {
            // A first contact that is answered at once, and a load that is not.
            let url = https(&server.url(path));
            if *class == "timeout" {
                return expect_refusal(&url, &[&["-k"], *options].concat(), 4, "no answer from");
            }
            let load = HttpLoad::run(&url, &[&SHORT[..], &["-k", "--no-breaker"], options].concat());
            load.expect_only(class);
            assert_eq!(load.number("connections/reconnects"), 0, "{load:?}");
        },
    );
}

#[test]
fn a_server_that_dies_ends_the_load_with_typed_failures() {
    for options in [&[][..], &["--h2", "-m", "4"]] {
        let server = HttpServer::start(&["--tls"]);
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
        let load = HttpLoad::start(&https(&server.url("/1k")), &arguments.concat());
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
        let requested = count(&["reset_before_answer", "reset_mid_answer", "eof"]);
        // A reconnect while the server dies may still be accepted.
        let came_back = count(&["connect_refused", "tls"]);
        assert_eq!(requested, load.number("requests") - load.number("ok"), "{load:?}");
        assert_eq!(came_back, 4, "{load:?}");
        // A connection may also be lost between two requests.
        let all: u64 = load.errors().iter().map(|(_, count)| count).sum();
        assert_eq!(all, requested + came_back + count(&["reset_idle"]), "{load:?}");
        assert!(load.number("ok") > 0, "{load:?}");
        assert_eq!(load.number("connections/open_at_end"), 0, "{load:?}");
    }
}

#[test]
fn idle_connections_are_held_and_their_heartbeats_counted() {
    let server = HttpServer::start(&["--tls", "--idle-timeout", "60"]);
    let options = [
        "-k",
        "--h2",
        "-c",
        "50",
        "--idle",
        "--heartbeat",
        "500ms",
        "--touch",
        "-d",
        "1s",
        "--warmup",
        "0",
    ];
    let load = HttpLoad::run(&https(&server.url("/0")), &options);
    load.expect_all_open(50).expect_all_well();
    assert_eq!(load.number("requests"), 100, "{load:?}");
    let requested = 100 + 50 + FIRST_CONTACT;
    server.stop().expect_stdout(&format!("{requested} requests"));
}

#[test]
fn unsupported_options_of_tls_are_refused_with_an_alternative() {
    for (url, arguments, text) in [
        ("https://127.0.0.1:1/", &["-k", "--pipeline", "4"][..], "--h2 --streams"),
        ("http://127.0.0.1:1/", &["--h2", "--pipeline", "4"], "--streams N"),
        ("http://127.0.0.1:1/", &["--streams", "4"], "--pipeline N"),
        ("http://127.0.0.1:1/", &["--h2", "-c", "50000"], "in plain text"),
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
