//! Loads that the generator refuses to make for servers that are not known to be ours, and where it
//! ends by itself.

use std::time::Duration;

use linerate_interop::namespaces::{Net, SERVER, run};
use linerate_interop::{
    Finished, HttpLoad, HttpServer, RawServer, TIMEOUT, Then, each_case, send_text, words,
};

fn load(url: &str, arguments: &[&str]) -> Finished {
    HttpLoad::start(url, arguments).finish()
}

/// Of a network for documentation (RFC 5737), so neither private nor that of the client. Its server
/// is in a namespace: whatever happens, nothing leaves this host.
const PUBLIC: &str = "203.0.113.1";

/// A client's namespace and a server at a public address.
struct Abroad {
    net: Net,
    server: HttpServer,
}

impl Abroad {
    fn new() -> Option<Self> {
        let net = Net::new()?;
        run(&format!("ip -n {} addr add {PUBLIC}/32 dev lo", net.b));
        run(&format!(
            "ip -n {} route add {PUBLIC}/32 via {SERVER}",
            net.a
        ));

        let server = HttpServer::in_net(
            &net,
            &format!("{PUBLIC}:80"),
            &["--threads", "1", "--allow", "0.0.0.0/0"],
        );
        Some(Self { net, server })
    }

    fn load(&self, words: &[&str]) -> Finished {
        HttpLoad::in_net(
            &self.net,
            &format!("http://{PUBLIC}/0"),
            &[&["--warmup", "0"], words].concat(),
        )
        .finish()
    }
}

#[test]
fn excessive_load_on_a_public_server_is_refused() {
    let Some(abroad) = Abroad::new() else { return };
    let rows: [&[&str]; 5] = [
        &["-c", "17", "--rate", "50", "-d", "1s"],
        &["-c", "17", "--rate", "50", "-d", "1s", "--allow-large"],
        &["-c", "16", "--rate", "101", "-d", "1s"],
        &["-c", "16", "-d", "1s"],
        &["-c", "16", "--rate", "50", "-d", "31s"],
    ];
    for words in rows {
        let refused = abroad.load(words);
        refused
            .expect_code(2)
            .expect_stderr("--i-own-this-target HOST");
        assert!(refused.stdout.is_empty(), "{refused:?}");
    }

    abroad
        .server
        .stop()
        .expect_clean()
        .expect_stdout(" 0 connections (0 refused");
}

#[test]
fn public_server_takes_small_loads_and_those_of_its_owner() {
    let Some(abroad) = Abroad::new() else { return };
    let polite = HttpLoad::of(abroad.load(&["-c", "16", "--rate", "100", "-d", "1s"]));
    polite.expect_all_well().expect_all_open(16);

    let owned = ["-c", "50", "-d", "300ms", "--i-own-this-target", PUBLIC];
    let owned = HttpLoad::of(abroad.load(&owned));
    owned.expect_all_well().expect_all_open(50);

    let requests = polite.number("requests") + owned.number("requests") + 2;
    abroad
        .server
        .stop()
        .expect_clean()
        .expect_stdout(&format!(" {requests} requests"));
}

#[test]
fn excessive_load_on_a_private_server_is_refused_with_the_option_that_allows_it() {
    let server = RawServer::that_sends("", Then::Hold);
    let rows: [(&[&str], &str); 2] = [
        (&["-c", "1025"], "--allow-large"),
        (&["-X", "POST"], "--allow-unsafe-methods"),
    ];
    for (arguments, way_out) in rows {
        let refused = load(&server.url("/"), arguments);
        refused.expect_code(2).expect_stderr(way_out);
        assert!(refused.stdout.is_empty(), "{refused:?}");
    }

    assert_eq!(server.requested(), 0);
}

#[test]
fn ownership_option_must_name_the_host() {
    let server = HttpServer::start(&[]);
    let url = server.url("/0");
    let short = ["-d", "200ms", "--warmup", "0"];
    let wrong = load(
        &url,
        &[&short[..], &["--i-own-this-target", "example.org"]].concat(),
    );
    wrong
        .expect_code(2)
        .expect_stderr("example.org")
        .expect_stderr("127.0.0.1");

    let ownership = [
        "--i-own-this-target",
        "127.0.0.1",
        "-c",
        "1100",
        "--ramp",
        "max",
    ];
    let right = HttpLoad::of(load(&url, &[&short[..], &ownership].concat()));
    right.expect_all_well().expect_all_open(1100);

    let large = HttpLoad::of(load(
        &url,
        &[
            &short[..],
            &["--allow-large", "-c", "1100", "--ramp", "max"],
        ]
        .concat(),
    ));
    large.expect_all_well().expect_all_open(1100);
}

#[test]
fn an_unsafe_method_is_sent_when_allowed() {
    let server = HttpServer::start(&[]);
    let folder = tempfile::tempdir().expect("a folder");
    let body = folder.path().join("body");
    std::fs::write(&body, vec![b'x'; 5000]).expect("a file");

    let body = body.display().to_string();
    let arguments = [
        "-X",
        "POST",
        "--body",
        &body,
        "--allow-unsafe-methods",
        "-d",
        "300ms",
        "--warmup",
        "0",
    ];
    let load = HttpLoad::run(&server.url("/sink"), &arguments);
    load.expect_all_well();
    assert!(
        load.number("request_bytes") >= 5000 * load.number("requests"),
        "{load:?}"
    );
}

#[test]
fn a_redirection_to_another_host_ends_it() {
    let redirection =
        |to: &str| format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
    let away = RawServer::that_sends(redirection("http://elsewhere.example/"), Then::Next);
    let short = ["-d", "300ms", "--warmup", "0"];
    let ended = load(&away.url("/"), &short);
    ended
        .expect_code(1)
        .expect_stderr("redirects to another host");
    assert_eq!(away.requested(), 1, "one request and no more");

    let here = RawServer::that_sends(redirection("/elsewhere"), Then::Next);
    HttpLoad::run(&here.url("/"), &short).expect_only("status_3xx");
}

#[test]
fn failing_server_ends_the_load() {
    let failing = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
    let busy = "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n";
    let later = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 60\r\nContent-Length: 0\r\n\r\n";

    let rows = [
        ("all fail", failing, 1, "status_5xx"),
        ("one in ten fails", failing, 10, "status_5xx"),
        ("all are too many", busy, 1, "status_4xx"),
        ("it asks for a pause", later, 1000, "status_5xx"),
    ];
    each_case(&rows, |(_, response, every, class)| {
        let (response, every) = (*response, *every);
        let server = RawServer::start(move |number, stream| {
            let is_failure = number % every == every - 1;
            let well = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            send_text(stream, if is_failure { response } else { well }, Then::Next)
        });

        let arguments = ["-c", "4", "--rate", "1000", "-d", "60s", "--warmup", "0"];
        let load =
            HttpLoad::of(HttpLoad::start(&server.url("/"), &arguments).finish_within(TIMEOUT));
        load.finished.expect_code(1);
        assert!(load.has_flag("breaker-tripped"), "{load:?}");
        load.expect_only(class);
        assert!(load.number("window_ns") < 60_000_000_000, "{load:?}");
    });
}

#[test]
fn hanging_server_ends_the_load() {
    let server = RawServer::start(|number, stream| match number {
        0 => send_text(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            Then::Next,
        ),
        _ => Then::Hold,
    });
    let options = words("-c 500 --rate 100 --timeout 500ms -d 60s --warmup 0");
    let load = HttpLoad::of(HttpLoad::start(&server.url("/"), &options).finish_within(TIMEOUT));
    load.finished.expect_code(1);
    assert!(load.has_flag("breaker-tripped"), "{load:?}");
    load.expect_only("timeout");
}

#[test]
fn no_breaker_continues_the_load() {
    let later = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 60\r\nContent-Length: 0\r\n\r\n";
    let server = RawServer::that_sends(later, Then::Next);

    let arguments = [
        "--no-breaker",
        "-c",
        "4",
        "--rate",
        "100",
        "-d",
        "4s",
        "--warmup",
        "0",
    ];
    let load = HttpLoad::of(
        HttpLoad::start(&server.url("/"), &arguments).finish_within(Duration::from_secs(60)),
    );
    load.finished.expect_code(1);
    load.expect_only("status_5xx");
    assert!(!load.has_flag("breaker-tripped"), "{load:?}");
    assert_eq!(load.number("requests"), 400, "{load:?}");
}
