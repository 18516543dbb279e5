//! The load generator against servers that answer well, each in its own way: no failure, and a
//! count that agrees with the server's.

use linerate_interop::{
    HttpLoad, HttpServer, Nginx, RawServer, Signal, Status, TIMEOUT, Then, each_case, free_port,
    linerate, send_text, wait_for,
};

/// Everything is counted, from the first request of the load on.
const SHORT: [&str; 6] = ["-c", "4", "-d", "500ms", "--warmup", "0"];
/// The request that asks for permission, as it were, before the load.
const FIRST_CONTACT: u64 = 1;

fn ok(fields: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}\r\n{body}")
}

/// Answer of a raw server to each request, its next step, the options of the load, and the bytes of
/// head and body that are counted for each answer.
#[derive(Debug)]
struct Form {
    #[expect(dead_code, reason = "shown for a case that fails")]
    name: &'static str,
    response: String,
    then: Then,
    options: &'static [&'static str],
    counted_bytes: usize,
}

fn form(name: &'static str, response: String, then: Then) -> Form {
    let counted_bytes = response.len();
    Form {
        name,
        response,
        then,
        options: &[],
        counted_bytes,
    }
}

fn forms() -> Vec<Form> {
    let chunked = ok(
        "Transfer-Encoding: chunked\r\n",
        "3\r\nabc\r\n4;a=b\r\ndefg\r\n0\r\nTrailer: x\r\n\r\n",
    );
    let head_bytes = chunked.find("\r\n\r\n").map_or(0, |end| end + 4);
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n";
    let plain = ok("Content-Length: 3\r\n", "abc");

    vec![
        form("a length", plain.clone(), Then::Next),
        Form {
            counted_bytes: head_bytes + 7,
            ..form("chunks, an extension, a trailer", chunked, Then::Next)
        },
        form(
            "closing each time",
            ok("Connection: close\r\nContent-Length: 3\r\n", "abc"),
            Then::Close,
        ),
        form("until it closes", ok("", "abcdef"), Then::Close),
        form(
            "HTTP/1.0 until it closes",
            "HTTP/1.0 200 OK\r\n\r\nabcdef".to_owned(),
            Then::Close,
        ),
        form(
            "HTTP/1.0 with a length",
            "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc".to_owned(),
            Then::Close,
        ),
        form(
            "HTTP/1.0 that stays",
            "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 3\r\n\r\nabc".to_owned(),
            Then::Next,
        ),
        Form {
            counted_bytes: plain.len(),
            ..form(
                "interim answers before it",
                format!("{interim}{plain}"),
                Then::Next,
            )
        },
        form(
            "204 without a length",
            "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
            Then::Next,
        ),
        form("an empty body", ok("Content-Length: 0\r\n", ""), Then::Next),
        Form {
            options: &["-X", "HEAD"],
            ..form("HEAD", ok("Content-Length: 1000000\r\n", ""), Then::Next)
        },
        form(
            "a head of 30 kB",
            ok(
                &format!("X: {}\r\nContent-Length: 3\r\n", "y".repeat(30_000)),
                "abc",
            ),
            Then::Next,
        ),
        Form {
            options: &["--pipeline", "8"],
            ..form("eight at once", plain, Then::Next)
        },
    ]
}

#[test]
fn responses_of_every_form_are_read_and_counted() {
    each_case(&forms(), |form| {
        let server = RawServer::that_sends(form.response.clone(), form.then);
        let load = HttpLoad::run(&server.url("/"), &[&SHORT, form.options].concat());
        load.expect_all_well();

        let ok = load.number("ok");
        assert_eq!(
            load.number("http_bytes"),
            ok * form.counted_bytes as u64,
            "{load:?}"
        );
        assert_eq!(server.requested(), ok + FIRST_CONTACT, "{load:?}");
    });
}

#[test]
fn response_sent_byte_by_byte_is_parsed() {
    let server = RawServer::start(|_, stream| {
        for byte in ok("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n").bytes() {
            send_text(stream, [byte], Then::Next);
        }
        Then::Next
    });
    let load = HttpLoad::run(&server.url("/"), &[&SHORT[..], &["--verify"]].concat());
    load.expect_all_well();
    assert_eq!(server.requested(), load.number("ok") + FIRST_CONTACT);
    assert_eq!(load.number("payload_bytes"), load.number("ok") * 3);
}

#[test]
fn unsuccessful_responses_are_counted_by_kind() {
    let rows = [
        (
            "301 Moved Permanently\r\nLocation: /elsewhere",
            "status_3xx",
        ),
        ("304 Not Modified\r\nETag: \"x\"", "status_3xx"),
        ("404 Not Found", "status_4xx"),
        ("429 Too Many Requests", "status_4xx"),
        ("500 Internal Server Error", "status_5xx"),
    ];
    each_case(&rows, |(status, class)| {
        let length = if status.starts_with("304") {
            ""
        } else {
            "Content-Length: 0\r\n"
        };
        let server =
            RawServer::that_sends(format!("HTTP/1.1 {status}\r\n{length}\r\n"), Then::Next);
        let load = HttpLoad::run(&server.url("/"), &SHORT);
        load.finished.expect_code(1);
        load.expect_only(class);
        assert_eq!(
            (load.number("ok"), load.number("payload_bytes")),
            (0, 0),
            "{load:?}"
        );
        assert_eq!(load.errors()[0].1, load.number("requests"), "{load:?}");
        assert_eq!(server.requested(), load.number("requests") + FIRST_CONTACT);
    });
}

#[test]
fn nginx_logs_as_many_requests_as_are_reported() {
    const MANY: &str = "keepalive_requests 1000000;";

    let rows: [(&str, &str, &[&str]); 7] = [
        ("/1k", MANY, &["-c", "64"]),
        (
            "/100k",
            "sendfile on; keepalive_requests 1000000;",
            &["-c", "16"],
        ),
        ("/10k", "keepalive_requests 5;", &["-c", "8"]),
        ("/1k", "keepalive_timeout 0;", &["-c", "8"]),
        (
            "/10k",
            "ssi on; ssi_types *; keepalive_requests 1000000;",
            &["-c", "8", "--verify"],
        ),
        ("/1k", MANY, &["-c", "8", "-X", "HEAD"]),
        (
            "/none",
            "keepalive_requests 1000000; location /none { return 204; }",
            &["-c", "8", "--pipeline", "4"],
        ),
    ];
    each_case(&rows, |(path, server, options)| {
        let nginx = Nginx::start("", server);
        let load = HttpLoad::run(&nginx.url(path), &[options, &SHORT[2..]].concat());
        load.expect_all_well();
        nginx.expect_logged(load.number("requests") + FIRST_CONTACT);
        assert_eq!(load.number("connections/dropped"), 0, "{load:?}");

        let is_closed_now_and_then =
            ["keepalive_requests 5;", "keepalive_timeout 0;"].contains(server);
        assert_eq!(
            load.number("connections/reconnects") > 0,
            is_closed_now_and_then,
            "{load:?}"
        );
    });
}

/// Requests that were sent behind the one whose response closes the connection get no response.
#[test]
fn a_keepalive_limit_shows_only_where_requests_were_sent_ahead() {
    let nginx = Nginx::start("", "keepalive_requests 5;");
    let load = HttpLoad::run(
        &nginx.url("/1k"),
        &[&SHORT[..], &["--pipeline", "4"]].concat(),
    );
    load.expect_only("eof");
    nginx.expect_logged(load.number("ok") + FIRST_CONTACT);
}

#[test]
fn a_kept_load_is_what_was_printed_and_limits_are_held_against_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("history.db").display().to_string();
    let server = HttpServer::start(&[]);
    let line = format!(
        "http load {} -c 2 -d 1s --warmup 0 -q --store {store}",
        server.url("/b/1k")
    );
    let printed = linerate(&format!("{line} --json --expect ok>1,p99>1h --title lab")).finish();
    printed.expect_code(2).expect_stderr("unit \"h\"");

    let printed = linerate(&format!(
        "{line} --json --expect ok>1,p99>1000s --title lab"
    ))
    .finish();
    printed.expect_code(5).expect_stderr("p99>1000s: ");
    let record = printed.record();
    assert_eq!(
        (&record["kind"], &record["state"]),
        (&"http-load".into(), &"complete".into()),
        "{record:#}"
    );
    assert!(
        record["body"]["http-load"]["target"]
            .as_str()
            .is_some_and(|url| url.ends_with("/b/1k")),
        "{record:#}"
    );
    assert!(
        record["path"]["addresses"][0].is_string() && record["hosts"][0]["snapshot"].is_object(),
        "{record:#}"
    );

    let shown = linerate(&format!("history show last --json --store {store}")).finish();
    assert_eq!(shown.expect_clean().stdout, printed.stdout);
    let page = linerate(&format!("history show last --store {store} --expect ok>1")).finish();
    page.expect_clean()
        .expect_stdout(" responses/s")
        .expect_stdout("Limit ");

    let missed = linerate(&format!("history show last --store {store} --expect ok<1")).finish();
    missed.expect_code(5).expect_stderr("ok<1: ");
}

#[test]
fn our_server_counts_as_many_requests_as_are_reported() {
    let rows: [(&str, &[&str]); 6] = [
        ("/b/1k", &["-c", "64"]),
        ("/b/1m", &["-c", "4"]),
        ("/b/1m?random=1", &["-c", "4", "--verify"]),
        ("/b/10k?chunked=1k", &["-c", "8", "--pipeline", "4"]),
        ("/b/1k", &["-c", "8", "--rate", "200"]),
        ("/0", &["-c", "8", "--think", "10ms"]),
    ];
    each_case(&rows, |(path, options)| {
        let server = HttpServer::start(&[]);
        let load = HttpLoad::run(&server.url(path), &[options, &SHORT[2..]].concat());
        load.expect_all_well();

        let requests = load.number("requests") + FIRST_CONTACT;
        server.stop().expect_clean().expect_stdout(&format!(
            " {requests} requests, {requests} responses (0 errors)"
        ));
    });
}

#[test]
fn a_connection_that_idles_may_be_closed_without_harm() {
    let server = RawServer::start(|_, stream| {
        send_text(stream, ok("Content-Length: 3\r\n", "abc"), Then::Close)
    });
    let load = HttpLoad::run(
        &server.url("/"),
        &[&SHORT[..], &["--think", "100ms"]].concat(),
    );
    load.expect_all_well();

    // Every connection is lost as often as it may be opened, the first time included.
    assert_eq!(load.number("connections/dropped"), 16, "{load:?}");
    assert_eq!(load.number("connections/reconnects"), 12, "{load:?}");
}

#[test]
fn an_interrupt_ends_the_load_with_what_is_known() {
    let server = HttpServer::start(&[]);
    let idle = Status::of(server.process.id());
    let load = HttpLoad::start(
        &server.url("/1k"),
        &["-c", "8", "-d", "60s", "--warmup", "0"],
    );
    let busy = wait_for(TIMEOUT, || responses_begun(&server, idle));
    assert!(busy.is_some(), "no load: {load:?}");
    load.signal(Signal::Interrupt);

    let load = HttpLoad::of(load.finish());
    load.finished.expect_code(130);
    assert!(
        load.has_flag("interrupted") && load.errors().is_empty(),
        "{load:?}"
    );
    assert!(load.number("ok") > 0, "{load:?}");

    let window_ns = load.number("window_ns");
    assert!(window_ns > 0 && window_ns < 60_000_000_000, "{load:?}");
}

/// The server has spent time on the connections of a load.
fn responses_begun(server: &HttpServer, idle: Status) -> Option<()> {
    let id = server.process.id();
    let has_guests = Status::of(id).descriptors >= idle.descriptors + 8;
    (has_guests && linerate_interop::cpu_time(id).as_millis() >= 200).then_some(())
}

#[test]
fn closed_port_gets_no_load() {
    let url = format!("http://127.0.0.1:{}/", free_port());
    let finished = linerate(&format!("http load {url} --json")).finish();
    finished.expect_code(4).expect_stderr(
        "Connection refused; is `linerate http serve` (or another server) running there",
    );
    assert!(finished.stdout.is_empty(), "{finished:?}");
}
