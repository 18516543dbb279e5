//! The HTTP server where hyper speaks for it: TLS, and HTTP/2 with and without.

use std::process::Command;

use linerate_interop::{Certificate, Finished, HttpServer, Process, Signal, Status, each_case, ours};

fn run(program: &str, arguments: &[&str]) -> Finished {
    let mut command = Command::new(program);
    command.args(arguments);
    Process::start(command).finish()
}

/// Status, version of HTTP, bytes received and bytes sent, as curl sees them.
fn curl(arguments: &[&str]) -> Finished {
    let format = "%{http_code} %{http_version} %{size_download} %{size_upload}";
    let common = ["-sS", "-o", "/dev/null", "-w", format, "--max-time", "30"];
    run("curl", &[&common, arguments].concat())
}

fn https(server: &HttpServer, path: &str) -> String {
    server.url(path).replace("http://", "https://")
}

#[test]
fn curl_receives_requested_bodies_in_both_versions() {
    let encrypted = HttpServer::start(&["--tls"]);
    let plain = HttpServer::start(&["--h2"]);
    let rows: [(&HttpServer, &[&str], &str, &str); 9] = [
        (&encrypted, &["-k"], "/1k", "200 2 1024 0"),
        (&encrypted, &["-k", "--http1.1"], "/1k", "200 1.1 1024 0"),
        (&encrypted, &["-k", "--tls-max", "1.2"], "/b/64m", "200 2 67108864 0"),
        (
            &encrypted,
            &["-k", "--http1.1"],
            "/b/300001?chunked=70000",
            "200 1.1 300001 0",
        ),
        (&encrypted, &["-k", "--head"], "/100k", "200 2 0 0"),
        (&encrypted, &["-k"], "/nowhere", "404 2 0 0"),
        (&plain, &["--http2-prior-knowledge"], "/1m?random=1", "200 2 1048576 0"),
        (&plain, &["--http1.1"], "/1m", "200 1.1 1048576 0"),
        (&plain, &["--http1.0"], "/10k", "200 1.1 10240 0"),
    ];
    each_case(
        &rows,
        |(_, options, path, _)| format!("{options:?} {path}"),
        |(server, options, path, expected)| {
            let url = if options[0] == "-k" {
                https(server, path)
            } else {
                server.url(path)
            };
            let finished = curl(&[options, &[url.as_str()][..]].concat());
            finished.expect_clean();
            // curl tells the version of the answer, which for an HTTP/1.0 request may be either.
            let stdout = finished.stdout.replace(" 1 ", " 1.1 ");
            assert_eq!(stdout, *expected);
        },
    );
}

#[test]
fn uploads_are_discarded_and_bounded() {
    let server = HttpServer::start(&["--tls", "--max-body", "1M"]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, len: usize| {
        let path = folder.path().join(name);
        std::fs::write(&path, vec![b'x'; len]).expect("write");
        path.display().to_string()
    };
    let (fits, exceeds) = (file("fits", 1 << 20), file("exceeds", (1 << 20) + 1));
    for version in ["--http2", "--http1.1"] {
        let finished = curl(&["-k", version, "-T", &fits, &https(&server, "/sink")]);
        finished.expect_clean();
        assert!(
            finished.stdout.starts_with("204 ") && finished.stdout.ends_with(" 1048576"),
            "{finished:?}"
        );
        let refused = curl(&["-k", version, "-T", &exceeds, &https(&server, "/sink")]);
        assert!(refused.stdout.starts_with("413 "), "{refused:?}");
    }
}

#[test]
fn h2load_finds_no_error_and_the_server_counts_what_it_counts() {
    let encrypted = HttpServer::start(&["--tls"]);
    let plain = HttpServer::start(&["--h2"]);
    let rows: [(&[&str], String); 3] = [
        (&[], https(&encrypted, "/1k")),
        (&["--h1"], https(&encrypted, "/10k")),
        (&[], plain.url("/100k")),
    ];
    for (options, url) in rows {
        let finished = run("h2load", &[options, &["-n1000", "-c4", "-m8", &url]].concat());
        finished
            .expect_code(0)
            .expect_stdout("1000 succeeded, 0 failed, 0 errored, 0 timeout");
    }
    encrypted
        .stop()
        .expect_clean()
        .expect_stdout("2000 requests, 2000 answers (0 errors)");
    plain
        .stop()
        .expect_clean()
        .expect_stdout("1000 requests, 1000 answers (0 errors)");
}

#[test]
fn the_certificate_is_the_one_whose_fingerprint_was_printed() {
    let server = HttpServer::start(&["--tls"]);
    let address = server.address.to_string();
    let script = "openssl s_client -connect \"$0\" </dev/null 2>/dev/null | openssl x509 -noout -fingerprint -sha256 -ext subjectAltName";
    let shown = run("sh", &["-c", script, &address]);
    let fingerprint = shown
        .stdout
        .lines()
        .find_map(|line| line.split_once('='))
        .expect("a fingerprint")
        .1;
    assert!(
        server.process.stdout().contains(&format!("SHA-256 {fingerprint}\n")),
        "{shown:?}"
    );
    shown
        .expect_stdout("IP Address:127.0.0.1")
        .expect_stdout("DNS:localhost");
}

#[test]
fn given_certificate_is_used_and_trusted() {
    let certificate = Certificate::make();
    let path = |name: &str| certificate.path(name);
    let server = HttpServer::start(&["--cert", &path("cert.pem"), "--key", &path("key.pem")]);
    let finished = curl(&["--cacert", &path("cert.pem"), &https(&server, "/10k")]);
    finished.expect_clean();
    assert_eq!(finished.stdout, "200 2 10240 0");
    let suspicious = curl(&[&https(&server, "/10k")]);
    suspicious.expect_code(60);
    for (cert, key, culprit) in [
        ("missing.pem", "key.pem", "missing.pem"),
        ("cert.pem", "cert.pem", "cert.pem"),
    ] {
        let refused = run(
            &ours().path().display().to_string(),
            &[
                "http",
                "serve",
                "--no-control",
                "--tcp=0",
                "--bind",
                "127.0.0.1:0",
                "--cert",
                &path(cert),
                "--key",
                &path(key),
            ],
        );
        refused.expect_code(1).expect_stderr(culprit);
    }
}

#[test]
fn strangers_to_the_protocol_and_the_idle_are_closed() {
    let server = HttpServer::start(&["--tls", "--idle-timeout", "1", "--max-conns", "2"]);
    let idle = Status::of(server.process.id());
    let mut plain = server.connect();
    plain.ask("/1k");
    // An alert, which is no answer, and then the end.
    let mut reported = Vec::new();
    let _ = std::io::Read::read_to_end(&mut plain.stream, &mut reported);
    assert!(!reported.starts_with(b"HTTP"));
    server.process.wait_for_idle(idle);
    let unencrypted = HttpServer::start(&["--h2", "--idle-timeout", "1"]);
    let mut idle = unencrypted.connect();
    assert_eq!(idle.get("/1k").body.len(), 1024);
    assert!(idle.is_closed());
    unencrypted
        .stop()
        .expect_clean()
        .expect_stdout("(0 refused, 1 timed out)");
}

#[test]
fn signals_end_a_server_with_connections() {
    for arguments in [["--tls", "--threads=2"], ["--h2", "--threads=1"]] {
        let server = HttpServer::start(&arguments);
        let _held = server.connect();
        server.process.signal(Signal::Terminate);
        server.process.finish().expect_clean().expect_stdout("Served");
    }
}

#[test]
fn browser_that_trusts_the_certificate_receives_the_body() {
    let server = HttpServer::start(&["--tls"]);
    let folder = tempfile::tempdir().expect("a folder");
    // A page is complete when its pictures have been fetched, whatever can be seen on them.
    let page = folder.path().join("page.html");
    std::fs::write(&page, format!("<img src=\"{}\">", https(&server, "/b/12345"))).expect("write");
    let finished = run(
        "chromium",
        &[
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--ignore-certificate-errors",
            &format!("--user-data-dir={}", folder.path().join("profile").display()),
            "--dump-dom",
            &format!("file://{}", page.display()),
        ],
    );
    let summary = server.stop();
    let expected = "1 requests, 1 answers (0 errors), 12345 B payload";
    assert!(summary.stdout.contains(expected), "{summary:?}\n{finished:?}");
}
