//! The load generator against servers that fail: every way to fail has a class of its own, and no
//! run hangs.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use linerate_interop::namespaces::{Net, SERVER, inside};
use linerate_interop::{
    Finished, HttpLoad, HttpServer, RawServer, Signal, TIMEOUT, Then, each_case, linerate,
    send_text, words,
};

/// Four connections, each of which may be opened four times.
const SHORT: [&str; 8] = ["-c", "4", "-d", "1s", "--warmup", "0", "--timeout", "300ms"];
const ATTEMPTS: u64 = 16;

const WELL: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";

/// Action of a server after a request, given the number of the request.
type Behaviour = fn(u64, &mut TcpStream) -> Then;

/// A failure of a server, and its name.
#[derive(Debug)]
struct Fault {
    #[expect(dead_code, reason = "shown for a case that fails")]
    name: &'static str,
    class: &'static str,
    options: &'static [&'static str],
    response: String,
    then: Then,
    /// Instead of one response.
    behaviour: Option<Behaviour>,
}

fn fault(
    name: &'static str,
    class: &'static str,
    response: impl Into<String>,
    then: Then,
) -> Fault {
    Fault {
        name,
        class,
        options: &[],
        response: response.into(),
        then,
        behaviour: None,
    }
}

fn endless(name: &'static str, behaviour: Behaviour) -> Fault {
    Fault {
        behaviour: Some(behaviour),
        ..fault(name, "timeout", "", Then::Hold)
    }
}

/// Sends a byte now and then, so that the connection is never silent and never done.
fn drip(stream: &mut TcpStream, bytes: &str) -> Then {
    for byte in bytes.bytes().cycle() {
        if send_text(stream, [byte], Then::Next) == Then::Close {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    Then::Close
}

fn ok(rest: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{rest}")
}

fn broken_connections() -> Vec<Fault> {
    let chunks = |text: &str| ok(&format!("Transfer-Encoding: chunked\r\n\r\n{text}"));
    let short = ok("Content-Length: 10\r\n\r\nabc");
    vec![
        fault("reset before", "reset_before_answer", "", Then::Reset),
        fault(
            "reset in the head",
            "reset_mid_answer",
            ok("Content-"),
            Then::Reset,
        ),
        fault(
            "reset in the body",
            "reset_mid_answer",
            short.as_str(),
            Then::Reset,
        ),
        Fault {
            options: &["--think", "100ms"],
            ..fault(
                "reset while nothing is asked",
                "reset_idle",
                WELL,
                Then::Reset,
            )
        },
        fault("closed before", "eof", "", Then::Close),
        fault("closed in the head", "eof", ok("Content-"), Then::Close),
        fault("closed in the body", "eof", short, Then::Close),
        fault("closed in a chunk", "eof", chunks("5\r\nabc"), Then::Close),
        fault(
            "closed before the last chunk",
            "eof",
            chunks("3\r\nabc\r\n"),
            Then::Close,
        ),
        fault(
            "closed behind an interim answer",
            "eof",
            INTERIM,
            Then::Close,
        ),
    ]
}

const INTERIM: &str = "HTTP/1.1 100 Continue\r\n\r\n";

fn silent_servers() -> Vec<Fault> {
    let large = format!("Content-Length: 1000000\r\n\r\n{}", "x".repeat(100_000));
    vec![
        fault("no answer", "timeout", "", Then::Hold),
        fault("half a head", "timeout", ok("Content-"), Then::Hold),
        fault(
            "half a body",
            "timeout",
            ok("Content-Length: 10\r\n\r\nabc"),
            Then::Hold,
        ),
        fault("a large body that stops", "timeout", ok(&large), Then::Hold),
        endless("a head that never ends", |_, stream| {
            send_text(stream, ok(""), Then::Next);
            drip(stream, "X: y\r\n")
        }),
        endless("a body that never ends", |_, stream| {
            send_text(stream, ok("\r\n"), Then::Next);
            drip(stream, "x")
        }),
        endless("interim answers alone", |_, stream| drip(stream, INTERIM)),
    ]
}

fn unreadable_responses() -> Vec<Fault> {
    let unreadable = |name, response: String| fault(name, "protocol", response, Then::Hold);
    let switching = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n";
    let both = "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    vec![
        unreadable("another protocol", "SSH-2.0-OpenSSH_9.2\r\n".to_owned()),
        unreadable("bytes", "\0\u{ff}\r\n\r\n".to_owned()),
        unreadable(
            "two lengths",
            ok("Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc"),
        ),
        unreadable("a length and chunks", ok(both)),
        unreadable(
            "a chunk without a size",
            ok("Transfer-Encoding: chunked\r\n\r\nxyz\r\n"),
        ),
        unreadable(
            "a head without an end",
            ok(&format!("X: {}", "y".repeat(70_000))),
        ),
        unreadable("another protocol from now on", switching.to_owned()),
        fault(
            "more than was announced",
            "protocol",
            format!("{WELL}defg\r\n"),
            Then::Next,
        ),
        Fault {
            options: &["--verify"],
            behaviour: Some(|number, stream| {
                let body = ["abc", "abd"][usize::from(number > 8)];
                send_text(
                    stream,
                    ok(&format!("Content-Length: 3\r\n\r\n{body}")),
                    Then::Next,
                )
            }),
            ..fault("another body", "protocol", "", Then::Next)
        },
    ]
}

#[test]
fn every_failure_has_a_class_and_an_end() {
    let faults = [
        broken_connections(),
        silent_servers(),
        unreadable_responses(),
    ];
    let faults: Vec<Fault> = faults.into_iter().flatten().collect();
    each_case(&faults, |fault| {
        let (behaviour, response, then) = (fault.behaviour, fault.response.clone(), fault.then);
        // The first request is answered well, or there would be no load.
        let server = RawServer::start(move |number, stream| match (number, behaviour) {
            (0, _) => send_text(stream, WELL, Then::Next),
            (_, Some(behaviour)) => behaviour(number, stream),
            _ => send_text(stream, &response, then),
        });
        let load = HttpLoad::start(&server.url("/"), &[&SHORT, fault.options].concat());
        let load = HttpLoad::of(load.finish_within(TIMEOUT));
        load.finished.expect_code(i32::from(load.number("ok") == 0));
        load.expect_only(fault.class);

        let failures = load.errors()[0].1;
        if fault.class == "reset_idle" {
            assert_eq!(load.number("connections/dropped"), failures, "{load:?}");
        } else {
            assert_eq!(
                load.number("requests"),
                load.number("ok") + failures,
                "{load:?}"
            );
        }

        let is_cheap = fault.options == ["--verify"];
        assert!(
            failures > 0 && (is_cheap || failures <= ATTEMPTS),
            "{load:?}"
        );
    });
}

/// A server that answers nothing at all is found out before the load.
#[test]
fn peer_without_http_gets_no_load() {
    let rows: [(&str, Behaviour, &str); 3] = [
        (
            "garbage",
            |_, stream| send_text(stream, "SSH-2.0-x\r\n\r\n", Then::Hold),
            "does not respond in HTTP/1.1",
        ),
        ("reset", |_, _| Then::Reset, "no response from"),
        ("closed", |_, _| Then::Close, "no response from"),
    ];
    each_case(&rows, |(_, response, message)| {
        let server = RawServer::start(*response);
        let load = HttpLoad::start(&server.url("/"), &SHORT).finish();
        load.expect_code(4).expect_stderr(message);
        assert_eq!(server.requested(), 1, "one request and no more");
    });
}

/// Connections that are lost again and again are not opened for ever; the others continue.
#[test]
fn server_failing_on_some_connections_serves_the_others() {
    let server = RawServer::start(|number, stream| {
        if number % 1000 == 999 {
            Then::Reset
        } else {
            send_text(stream, WELL, Then::Next)
        }
    });
    let load = HttpLoad::run(&server.url("/"), &SHORT);
    load.finished.expect_code(0);
    load.expect_only("reset_before_answer");

    let failures = load.errors()[0].1;
    assert_eq!(
        load.number("ok") + failures,
        load.number("requests"),
        "{load:?}"
    );
    assert_eq!(server.requested(), load.number("requests") + 1, "{load:?}");
}

/// A server that answers the first contact and then does what the test wants with its listener.
fn server_for_one(then: impl FnOnce(TcpListener) + Send + 'static) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        if let Ok((mut stream, _)) = listener.accept() {
            send_text(&mut stream, WELL, Then::Next);
            then(listener);
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });

    format!("http://{address}/")
}

#[test]
fn a_server_that_is_gone_when_the_load_begins_refuses_it() {
    let url = server_for_one(drop);
    let load = HttpLoad::run(&url, &SHORT);
    load.finished.expect_code(4);
    load.expect_only("connect_refused");
    assert_eq!(load.number("connections/opened"), 0, "{load:?}");
}

/// Its queue is full when it stops accepting; the kernel drops the first segments of all others.
#[test]
fn connect_to_a_server_that_never_accepts_times_out() {
    let (done, is_done) = channel::<()>();
    let url = server_for_one(move |listener| {
        // Until the load has ended, which is when the other end of the channel goes.
        let _ = is_done.recv();
        drop(listener);
    });

    let options = words("-c 6000 --idle --no-touch -d 200ms --warmup 0 --connect-timeout 300ms");
    let load = HttpLoad::run(
        &url,
        &[&options[..], &["--ramp", "max", "--allow-large"]].concat(),
    );
    drop(done);
    load.expect_only("connect_timeout");

    let opened = load.number("connections/opened");
    assert!(opened > 0 && opened < 6000, "{load:?}");
}

/// The kernel connects as many as the listen queue holds; what the server accepted is known by its
/// responses.
#[test]
fn idle_connections_that_the_server_never_accepted_are_not_held() {
    const ACCEPTED: u64 = 30;
    const WANTED: u64 = 100;

    let (done, is_done) = channel::<()>();
    let url = server_for_one(move |listener| {
        let guests = (0..ACCEPTED).filter_map(|_| listener.accept().ok());
        for (mut stream, _) in guests {
            thread::spawn(move || {
                send_text(&mut stream, WELL, Then::Next);
                let _ = stream.read_to_end(&mut Vec::new());
            });
        }

        let _ = is_done.recv();
    });
    let options =
        format!("http load {url} -c {WANTED} --idle -d 200ms --warmup 0 --timeout 1s --ramp max");
    let load = linerate(&options).finish_within(TIMEOUT);

    drop(done);
    load.expect_stdout(&format!("{ACCEPTED} of {WANTED} connections held"));
    load.expect_stdout(&format!("{} timeout", WANTED - ACCEPTED));
    load.expect_stdout("LimitNOFILE");
}

/// Without a request nothing shows that the server has accepted a connection.
#[test]
fn idle_connections_without_a_request_are_not_said_to_be_held() {
    let (done, is_done) = channel::<()>();
    let url = server_for_one(move |listener| {
        let _ = is_done.recv();
        drop(listener);
    });
    let options = format!("http load {url} -c 8 --idle --no-touch -d 200ms --warmup 0");
    let load = linerate(&options).finish_within(TIMEOUT);

    drop(done);
    load.expect_stdout("0 of 8 connections held; 8 more are connected without a response");
}

#[test]
fn rate_beyond_what_the_connections_carry_names_their_number() {
    let server = RawServer::start(|_, stream| {
        // The service time of the server.
        thread::sleep(Duration::from_millis(500));
        send_text(stream, WELL, Then::Next)
    });
    let options = format!(
        "http load {} -c 2 --rate 20 -d 3s --warmup 0",
        server.url("/")
    );
    let load = linerate(&options).finish_within(TIMEOUT);
    load.expect_stdout("too few requests at the same time")
        .expect_stdout("2 connections allow")
        .expect_stdout("of 20/s that were due");
}

#[test]
fn timed_first_request_waits_for_the_timeout_and_no_longer() {
    // Both listen and never respond: a server, and what is on the port of its control channel.
    let silent = loop {
        let first = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = first.local_addr().expect("it is bound").port();
        let Some(next) = port
            .checked_add(1)
            .and_then(|next| TcpListener::bind(("127.0.0.1", next)).ok())
        else {
            continue;
        };
        break (port, first, next);
    };
    let begin = Instant::now();

    let load = linerate(&format!(
        "http load http://127.0.0.1:{}/ --timeout 1s",
        silent.0
    ))
    .finish_within(TIMEOUT);
    load.expect_code(4).expect_stderr("within 1s");
    assert!(begin.elapsed() < Duration::from_secs(4), "{load:?}");
}

#[test]
fn server_that_dies_ends_the_load_and_is_named() {
    let server = HttpServer::start(&[]);
    let load = linerate(&format!(
        "http load {} --json-stream -c 4 --rate 400 -d 60s --warmup 0",
        server.url("/1k")
    ));
    load.wait_for_stdout("\"second\"", 2);
    server.process.signal(Signal::Kill);

    let finished = load.finish_within(TIMEOUT);
    finished
        .expect_code(4)
        .expect_stdout("connection refused since")
        .expect_stdout("no finished run");
    finished.expect_stdout("\"server-gone\"");
}

/// The verdict on a load: its class, then what it rests on and what to do.
fn verdict(finished: &Finished) -> (String, String) {
    let primary = &finished.record()["body"]["http-load"]["verdict"]["primary"];
    (
        primary["class"].as_str().unwrap_or_default().to_owned(),
        primary.to_string(),
    )
}

#[test]
fn wrong_path_a_full_server_and_too_few_ports_are_named_before_statistics() {
    let server = HttpServer::start(&["--max-conns", "4"]);
    let wrong = HttpLoad::start(&server.url("/nothing"), &SHORT).finish();
    let (class, text) = verdict(wrong.expect_code(1));
    assert!(
        class == "invalid" && text.contains("every answer was 404: check the path of the URL"),
        "{wrong:?}"
    );

    let full = HttpLoad::start(
        &server.url("/1k"),
        &words("-c 16 -d 1s --warmup 0 --no-breaker"),
    )
    .finish();
    let (class, text) = verdict(&full);
    assert!(
        class == "server-limit" && text.contains("--max-conns"),
        "{full:?}"
    );

    let Some(net) = Net::new() else { return };
    let few = "echo 40000 40009 > /proc/sys/net/ipv4/ip_local_port_range";
    assert!(
        inside(&net.a, Path::new("sh"), &["-c", few])
            .status()
            .is_ok_and(|status| status.success())
    );

    let server = HttpServer::in_net(&net, &format!("{SERVER}:8080"), &[]);
    let options = words("-c 64 -d 1s --warmup 0 --ports kernel");
    let few = HttpLoad::in_net(&net, &server.url("/1k"), &options).finish();
    let (class, text) = verdict(&few);
    assert!(
        class == "client-limit" && text.contains("net.ipv4.ip_local_port_range"),
        "{few:?}"
    );
}
