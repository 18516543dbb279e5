//! The HTTP server against common clients and hostile ones.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use linerate_interop::namespaces::{self, CLIENT, DEVICE, Net, SERVER, inside};
use linerate_interop::{
    Finished, HttpServer, Process, Signal, Status, cpu_time, each_case, free_port, limited,
    linerate, ours, wait_for_status,
};

fn run(program: &str, arguments: &[&str]) -> Finished {
    let mut command = Command::new(program);
    command.args(arguments);
    Process::start(command).finish()
}

/// Fetches a URL; the number of bytes of the body and everything curl says about it.
fn curl(arguments: &[&str]) -> Finished {
    let format = [
        "-sS",
        "-o",
        "/dev/null",
        "-w",
        "%{http_code} %{size_download} %{size_upload}",
        "--max-time",
        "30",
    ];
    run("curl", &[&format, arguments].concat())
}

#[test]
fn curl_gets_every_size_in_every_form() {
    let server = HttpServer::start(&[]);
    let rows: [(&str, &[&str], &str); 12] = [
        ("/0", &[], "200 0 0"),
        ("/1k", &[], "200 1024 0"),
        ("/10k", &[], "200 10240 0"),
        ("/100k", &[], "200 102400 0"),
        ("/1m", &[], "200 1048576 0"),
        ("/b/12345", &["--http1.0"], "200 12345 0"),
        ("/b/64m", &[], "200 67108864 0"),
        ("/b/5m?random=1", &[], "200 5242880 0"),
        ("/b/300001?chunked=70000", &[], "200 300001 0"),
        ("/1m?chunked=1k", &["--http1.0"], "200 1048576 0"),
        ("/1k", &["--head"], "200 0 0"),
        ("/b/65m", &[], "404 0 0"),
    ];
    each_case(&rows, |(path, options, expected)| {
        let url = server.url(path);
        let finished = curl(&[options, &[url.as_str()][..]].concat());
        finished.expect_clean();
        assert_eq!(finished.stdout, *expected, "{path}");
    });
}

#[test]
fn curl_uploads_with_a_length_in_chunks_and_waiting_for_permission() {
    let server = HttpServer::start(&["--max-body", "4M"]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, len: usize| {
        let path = folder.path().join(name);
        std::fs::write(&path, vec![b'x'; len]).expect("write");
        path.display().to_string()
    };
    let (fits, exceeds) = (file("fits", 4 << 20), file("exceeds", (4 << 20) + 1));
    let url = server.url("/sink");

    for chunked in [false, true] {
        let coding: &[&str] = if chunked {
            &["-H", "Transfer-Encoding: chunked"]
        } else {
            &[]
        };
        for (path, status) in [(&fits, "204"), (&exceeds, "413")] {
            let finished = curl(&[coding, &["-T", path, &url]].concat());
            assert!(finished.stdout.starts_with(status), "{finished:?}");
        }
    }

    server
        .stop()
        .expect_clean()
        .expect_stdout("4 requests, 4 responses (2 errors)");
}

#[test]
fn wrk_finds_no_error() {
    let server = HttpServer::start(&[]);
    for path in ["/1k", "/100k", "/10k?chunked=1k"] {
        let finished = run("wrk", &["-t1", "-c16", "-d1s", &server.url(path)]);
        finished.expect_clean().expect_stdout("requests in");
        for failure in ["Socket errors", "Non-2xx", " 0 requests in"] {
            assert!(!finished.stdout.contains(failure), "{path}: {finished:?}");
        }
    }
}

#[test]
fn ab_keeps_its_connections_although_it_speaks_http_1_0() {
    let server = HttpServer::start(&[]);
    let url = server.url("/1k");

    for (options, kept) in [
        (&["-k"][..], "Keep-Alive requests:    2000"),
        (&[], "Failed requests:        0"),
    ] {
        let finished = run("ab", &[options, &["-q", "-n2000", "-c8", &url]].concat());
        finished.expect_code(0).expect_stdout(kept);
        finished
            .expect_stdout("Complete requests:      2000")
            .expect_stdout("Failed requests:        0")
            .expect_stdout("Total transferred:");
        assert!(!finished.stdout.contains("Non-2xx"), "{finished:?}");
    }

    server
        .stop()
        .expect_clean()
        .expect_stdout("4000 requests, 4000 responses (0 errors), 4096000 B payload");
}

#[test]
fn h2load_pipelines_and_the_server_counts_what_it_counts() {
    let server = HttpServer::start(&[]);
    let finished = run(
        "h2load",
        &["--h1", "-n4000", "-c8", "-m16", &server.url("/10k")],
    );
    finished
        .expect_code(0)
        .expect_stdout("4000 succeeded, 0 failed, 0 errored, 0 timeout");
    server.stop().expect_clean().expect_stdout("8 connections");
}

#[test]
fn requests_are_understood_byte_by_byte_and_sixteen_at_once() {
    let server = HttpServer::start(&["--threads", "1"]);
    let mut slow = server.connect();
    let input = "POST /sink HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \
                 chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n\
                 GET /b/7 HTTP/1.1\r\nHost: a\r\n\r\n";
    for byte in input.bytes() {
        slow.send([byte]);
    }

    assert_eq!(slow.response().status, 204);
    assert_eq!(slow.response().body, b"0123456");
    let mut deep = server.connect();
    let sizes: Vec<usize> = (0..16).map(|number| number * number * 700).collect();
    let requests: String = sizes
        .iter()
        .map(|size| format!("GET /b/{size} HTTP/1.1\r\nHost: a\r\n\r\n"))
        .collect();
    deep.send(requests);

    for size in sizes {
        assert_eq!(deep.response().body.len(), size, "in order");
    }
}

#[test]
fn ambiguous_request_is_refused_and_closes_the_connection() {
    let server = HttpServer::start(&[]);
    let post = |fields: &str| format!("POST /sink HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    // One for each part of the parser; its own tests have all of them.
    let rows = [
        (
            post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
            400,
        ),
        (post("Transfer-Encoding: xchunked\r\n"), 501),
        (post("X: y\nTransfer-Encoding: chunked\r\n"), 400),
        (
            post("Transfer-Encoding: chunked\r\n") + "5\nabcde\r\n0\r\n\r\n",
            400,
        ),
        (
            format!(
                "GET /0 HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
                "y".repeat(16_384)
            ),
            431,
        ),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), 505),
    ];
    each_case(&rows, |(input, status)| {
        let mut client = server.connect();
        client.send(format!("{input}GET /b/77 HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(client.response().status, *status);
        assert!(client.is_closed(), "one answer, then the end");
    });
}

#[test]
fn slow_senders_and_readers_do_not_delay_others() {
    let server = HttpServer::start(&["--threads", "1", "--max-conns", "500"]);
    let mut slow: Vec<_> = (0..200).map(|_| server.connect()).collect();
    slow.iter_mut()
        .for_each(|client| client.send("GET /1k HTTP/1.1\r\nHo"));

    let mut stalled: Vec<_> = (0..20).map(|_| server.connect()).collect();
    for client in &mut stalled {
        (0..4).for_each(|_| client.ask("/b/64m?random=1"));
    }

    let mut other = server.connect();
    for _ in 0..100 {
        assert_eq!(other.get("/10k").body.len(), 10_240);
    }

    // What is kept for a reader that has stopped is a few words, not its answers.
    assert!(
        Status::of(server.process.id()).resident_kib < 64 * 1024,
        "{server:?}"
    );
    let mut late = stalled.remove(0);

    for _ in 0..4 {
        assert_eq!(
            late.response().body.len(),
            64 << 20,
            "complete, however late"
        );
    }

    slow[0].send("st: a\r\n\r\n");
    assert_eq!(slow[0].response().body.len(), 1024);
}

#[test]
fn idle_connections_are_closed() {
    let server = HttpServer::start(&["--idle-timeout", "1"]);
    let before = Status::of(server.process.id());
    let (mut idle, mut half, mut stalled) = (server.connect(), server.connect(), server.connect());
    half.send("GET /1k HTT");
    stalled.ask("/b/64m");
    assert!(idle.is_closed());
    assert!(half.is_closed());

    // The third one is seen at the server only: part of its answer waits in our socket.
    server.process.wait_for_idle(before);
    server.stop().expect_clean().expect_stdout("3 timed out");
}

#[test]
fn connections_beyond_the_limit_get_503() {
    let server = HttpServer::start(&["--max-conns", "4"]);
    let mut guests: Vec<_> = (0..4).map(|_| server.connect()).collect();
    guests
        .iter_mut()
        .for_each(|guest| assert_eq!(guest.get("/0").status, 200));

    for _ in 0..3 {
        let mut refused = server.connect();
        let response = refused.response();
        assert_eq!(response.status, 503);
        assert!(response.header.contains("Connection: close\r\n") && refused.is_closed());
    }

    assert_eq!(guests[0].get("/1k").body.len(), 1024, "guests stay guests");
    drop(guests);
    let refused = 3 + wait_for_status(&server, 200);
    server
        .stop()
        .expect_clean()
        .expect_stdout(&format!("({refused} refused"));
}

#[test]
fn a_server_without_descriptors_waits_for_some_and_does_not_spin() {
    let server = HttpServer::start_by(
        limited("ulimit -n 40"),
        ([127, 0, 0, 1], free_port()).into(),
        &["--max-conns", "1000", "--threads", "1"],
    );
    let started = Instant::now();
    let mut clients: Vec<_> = (0..60).map(|_| server.connect()).collect();
    clients.iter_mut().for_each(|client| client.ask("/0"));
    assert_eq!(clients[0].response().status, 200);

    // Ten pauses long, so that a server that accepts without a pause is noticed.
    thread::sleep(Duration::from_secs(1));
    assert_eq!(clients[0].get("/0").status, 200);
    let mut last = clients.pop().expect("sixty");

    drop(clients);
    assert_eq!(last.response().status, 200, "served when others have left");
    let busy = cpu_time(server.process.id());
    assert!(
        busy < Duration::from_millis(50) + started.elapsed() / 2,
        "{busy:?} of {:?}",
        started.elapsed()
    );

    let finished = server.stop();
    finished.expect_clean();
    assert!(
        !finished.stdout.contains(" 0 times without a descriptor"),
        "{finished:?}"
    );
}

#[test]
fn signals_end_the_server_with_a_summary() {
    for signal in [Signal::Terminate, Signal::Interrupt] {
        let server = HttpServer::start(&["--threads", "2"]);
        let mut client = server.connect();
        assert_eq!(client.get("/1k").status, 200);
        server.process.signal(signal);

        let finished = server.process.finish();
        finished
            .expect_clean()
            .expect_stdout("threads      2\n")
            .expect_stdout("total      1 connections")
            .expect_stdout("thread 1");
        assert!(client.is_closed());
    }
}

/// The command is run on the other host; a bridge with an address of its own is not on the way
/// there.
#[test]
fn server_prints_a_command_that_clients_can_use() {
    let Some(net) = Net::new() else { return };
    for line in [
        "link add lr-bridge type bridge",
        "addr add 10.77.0.1/24 dev lr-bridge",
        "link set lr-bridge up",
    ] {
        namespaces::run(&format!("ip -n {} {line}", net.b));
    }

    namespaces::run(&format!("ip -n {} route add default via {CLIENT}", net.b));
    for (name, address) in [(&net.a, "2001:db8:7::1"), (&net.b, "2001:db8:7::2")] {
        namespaces::run(&format!(
            "ip -n {name} addr add {address}/64 dev {DEVICE} nodad"
        ));
    }

    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token").display().to_string();

    for (bind, host) in [("0.0.0.0", SERVER), ("[::]", "[2001:db8:7::2]")] {
        let words = [
            "http",
            "serve",
            "--bind",
            &format!("{bind}:8080"),
            "--token-file",
            &token,
        ];
        let server = Process::start(inside(&net.b, ours().path(), &words));
        server.wait_for_stdout("  client ", 1);

        let printed = server.stdout();
        let command = printed.lines().find_map(|line| {
            line.trim()
                .strip_prefix("client")?
                .trim()
                .strip_prefix("linerate ")
        });
        let command: Vec<&str> = command
            .unwrap_or_else(|| panic!("{printed}"))
            .split_whitespace()
            .collect();
        assert!(
            command[2].starts_with(&format!("http://{host}:8080/")),
            "{printed}"
        );

        let short = [
            "-d",
            "200ms",
            "--warmup",
            "0",
            "--line-rate",
            "1G",
            "--json",
        ];
        let load = Process::start(inside(
            &net.a,
            ours().path(),
            &[&command[..], &short].concat(),
        ))
        .finish();
        let server_side = &load.expect_code(0).json()["trials"][0]["detail"]["cell"]["server"];
        assert!(
            server_side.is_object(),
            "the control channel as well: {load:?}"
        );
    }
}

#[test]
fn addresses_that_are_not_allowed_are_closed_silently() {
    let server = HttpServer::start(&["--allow", "192.0.2.0/24"]);
    let mut stranger = server.connect();
    assert!(stranger.is_closed());
    let neighbours = HttpServer::start(&["--allow", "192.0.2.0/24", "--allow", "127.0.0.0/8"]);
    assert_eq!(neighbours.connect().get("/0").status, 200);
}

#[test]
fn an_address_in_use_is_named() {
    let server = HttpServer::start(&[]);
    let address = server.address.to_string();
    let second = linerate(&format!("http serve --no-control --tcp=0 --bind {address}")).finish();
    second
        .expect_code(1)
        .expect_stderr(&format!("bind {address}: Address already in use"));
}
