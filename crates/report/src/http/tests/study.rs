//! A study as text, line by line where it matters.

use linerate_model::http::{HttpVersion, Mode, NegotiatedProtocol, NegotiatedTls};

use super::super::fixtures::{client_limited, full, hostile, idle_only, interrupted, without_agent};
use super::super::{Style, comparison_text, html, text};
use super::{BLOCKS, all, check_lines};

const FULL: &str = "\
linerate http lab http://192.168.5.2:8080: 2026-09-21 14:13:20 UTC, took 18:42, seed 1
client: linerate 0.1.0, Linux 6.1.0-28-amd64, 4 processors, enp1s0, 1.00 Gbit/s, MTU 1500
server: linerate 0.1.0, Linux 6.1.0-28-amd64, 4 processors, enp2s0, 1.00 Gbit/s, MTU 1500

1 Baseline: is the path clean?
  The path is clean: 941 Mbit/s, 100 % of what the link carries, nothing resent.

T0 TCP without HTTP: received payload per second
  sender  streams     goodput  of theory  resent segments  resent share  server CPU  client CPU
  client        1  941 Mbit/s    100.0 %                0           0 %       8.0 %        12 %
  server        4  941 Mbit/s    100.0 %                0           0 %       8.0 %        12 %
  theory: what frames of this size let through on this link; CPU: 100 % is one processor

2 Isolation: what does bare HTTP reach on it?
  Bare HTTP fills the link at every payload.

T1 payloads by themselves; medians of 3 runs
  payload   c    2xx/s  payload MB/s  http MiB/s  wire Mbit/s  of X_net  server CPU  client CPU  us/2xx  verdict
  1k       64  101,360         103.8       110.4        999.0    99.9 %       382 %       191 %    37.6  N
  10k      64   11,272         115.4       111.3        999.0    99.9 %        73 %        36 %    64.7  N
  100k     64    1,147         117.4       112.1        999.0    99.9 %        13 %       6.5 %   113.2  N
  payload: bodies of 2xx, 10^6 bytes; http: heads and bodies, 2^20 bytes; wire: frames and gaps, busier direction;
  X_net: 2xx/s the network allows; CPU: of the program, 100 % is one processor; us/2xx: the server's processor time per
  answer; verdict: letters of T2a

3 Whole picture: throughput, latency, processors and limits of both ends
  Use 64 connections for 1k and 16 for 10k and 100k; more only add latency.

T2a payload MB/s (bodies of 2xx, 10^6 bytes) by connections, with verdicts; medians of 3 runs
  payload         c16         c64       c128       c256       c512      c1024
  1k         47.5 f    *103.8 N    103.8 N    103.8 N    103.8 N+Q  103.8 N+Q
  10k      *115.4 N     115.4 N    115.4 N    115.4 N    115.4 N+Q  115.4 N+Q
  100k     *117.4 N     117.4 N    117.4 N    117.4 N    117.4 N+Q  117.4 N+Q
  *: best stable, fewest connections that are fast, steady and without failures
  N network-bound; Q queueing, only latency grows; f too few requests in flight; after a +: fits as well

T2b 99th percentile of the latency by connections
  payload       c16       c64     c128     c256     c512    c1024
  1k        1.38 ms  *2.53 ms  5.05 ms  10.1 ms  20.2 ms  40.4 ms
  10k      *5.68 ms   22.7 ms  45.4 ms  90.8 ms   182 ms   363 ms
  100k     *55.8 ms    223 ms   446 ms   893 ms   1.79 s   3.57 s

T2c error rate by connections: failures / (2xx + failures)
  payload   c16   c64  c128  c256  c512  c1024
  1k        0 %  *0 %   0 %   0 %   0 %    0 %
  10k      *0 %   0 %   0 %   0 %   0 %    0 %
  100k     *0 %   0 %   0 %   0 %   0 %    0 %

T2d what the connections of each payload say together
  payload  best 2xx/s  equal within  knee  predicted knee  only latency grows at  best stable  latency jumps
  1k          101,360        3.00 %   c64              35             c512 c1024         *c64  c256 -> c512: +0 %
                                                                                               throughput, 6.2 x p99
";

#[test]
fn full_study_reads_from_the_verdict_to_the_numbers() {
    let text = text(&full(), Style::PLAIN);
    for (number, (line, expected)) in text.lines().zip(FULL.lines()).enumerate() {
        assert_eq!(line, expected, "line {}", number + 1);
    }
    for line in [
        "  20,000  20,000     0     395 MiB  20.0 KiB       82.0 MiB  4.00 KiB       0.4 %    7.63 MiB  200 B       0.1 %",
        "  1k c10000 at 1,000/s  10,000     0  1,000  100.0 %  310 us  990 us  2.10 ms    12.0 MiB       3.8 %  o",
        "  unknown  10,000 busy connections keep 90 % of the best  not run",
        "  conntrack                      n/a     n/a  n/a                                    n/a     n/a  n/a",
        "                                  + queueing-bound             p99 6.2 x that at the knee",
        "  network-bound (20 cells): the best outcome; a faster link or a smaller payload brings more",
        "  1k   -##### 47.5 MB/s (c16) to 103.8 MB/s (c1024)",
    ] {
        assert!(text.lines().any(|one| one == line), "{line}\n{text}");
    }
    assert!(text.contains("T6 preflight") && text.contains("T7 environment"));
}

#[test]
fn without_an_agent_server_metrics_are_missing() {
    let text = text(&without_agent(), Style::PLAIN);
    for part in [
        "server: no agent there, so what it cost is not known\n",
        "  1k       64  101,360         103.8       110.4        999.0    99.9 %         n/a       191 %     n/a  u\n",
        "There was no agent at the server, so its figures are n/a\n",
        "u unknown; after a +",
        "  kernel                     6.1.0-28-amd64                   n/a\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("server CPU per"), "{text}");
}

#[test]
fn interrupted_study_is_marked_and_keeps_finished_cells() {
    let text = text(&interrupted(), Style::PLAIN);
    for part in [
        "It did not come to its end: what was finished by then stands here\n",
        "latency, processors and limits of both ends\n  not run\n",
        "medians of 0 to 3 runs",
        "117.4 N+Q    n/a x\n",
        "no finished run; run 1 aborted: interrupted; run",
        "1 cell: interrupted: the user ended it\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_limit_of_the_client_is_marked_with_what_helps() {
    let text = text(&client_limited(), Style::PLAIN);
    for part in [
        "  local ports       28,232 of 28,232  *100.0 %  1k c10000 at 1,000/s",
        "12 connections found no local port\n",
        "client-limit (1 cell): --ports explicit, or more source addresses with --src\n",
        "1 cell: generator-late: ",
        // One of its runs has requests that never ended beyond this quantile.
        "990 us  >= 2.10 ms",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn quantile_of_too_few_values_is_missing() {
    let mut study = full();
    study.cells[3].median.p99_ns = None;
    let text = text(&study, Style::PLAIN);
    assert!(text.contains("n/a (n=470631)  *2.53 ms"), "{text}");
}

#[test]
fn a_study_of_idle_connections_has_their_chapter_alone() {
    let text = text(&idle_only(), Style::PLAIN);
    for absent in ["T0", "T1", "T2", "T3b", "T4", "T5", "T6", "P1"] {
        assert!(!text.contains(&format!("{absent} ")), "{absent}\n{text}");
    }
    assert!(text.contains("1 Baseline: is the path clean?\n  not run\n"));
    assert!(
        text.contains("server program 20.0 KiB per connection (R2 0.9998)"),
        "{text}"
    );
    assert!(
        text.contains("  server program .-=# 23.4 MiB (1,000) to 395 MiB (20,000)\n") || text.contains("P4 "),
        "{text}"
    );
}

#[test]
fn lines_fit_and_nothing_acts_on_a_terminal() {
    for (name, study) in all() {
        for style in [Style::PLAIN, BLOCKS] {
            check_lines(name, &text(&study, style));
            check_lines(name, &comparison_text(&study, &full(), style));
        }
    }
    let coloured = text(
        &hostile(),
        Style {
            is_coloured: true,
            ..BLOCKS
        },
    );
    let ours = coloured.replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
    assert!(coloured.contains("\u{1b}[1m") && !ours.contains('\u{1b}'));
}

#[test]
fn ascii_is_ascii() {
    let mut study = full();
    study.notes.push("p99 ≥ 5 s".to_owned());
    let text = text(&study, Style::PLAIN);
    assert!(text.is_ascii(), "{:?}", text.lines().find(|line| !line.is_ascii()));
}

#[test]
fn protocol_and_the_reason_of_a_missing_ceiling_are_listed() {
    let mut study = full();
    study.protocol = vec![NegotiatedProtocol {
        http: HttpVersion::Http2,
        tls: Some(NegotiatedTls {
            version: "1.3".to_owned(),
            cipher: "TLS13_AES_256_GCM_SHA384".to_owned(),
        }),
    }];
    let load = study.cells[0].runs[0].load.as_mut().expect("a run");
    load.mode = Mode::Closed {
        pipeline: 8,
        think_ns: 0,
    };
    study.ceiling_missing = Some("nobody knows".to_owned());
    let lines = [
        "protocol: HTTP/2 over TLS 1.3 (TLS13_AES_256_GCM_SHA384), 8 requests at a time on each connection",
        "2xx/s that the network allows (X_net), and shares of it: n/a, nobody knows",
    ];
    let (shown, page) = (text(&study, Style::PLAIN), html(&study));
    for line in lines {
        assert!(shown.lines().any(|one| one == line), "{line}\n{shown}");
        assert!(page.contains(line), "{line}");
    }
    assert!(shown.contains("http is n/a inside TLS"), "{shown}");
    study.protocol = vec![NegotiatedProtocol::default()];
    assert!(!text(&study, Style::PLAIN).contains("protocol: "));
}
