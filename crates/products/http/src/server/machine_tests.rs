//! Requests in, responses out, in memory.

use super::loopback_harness::LoopbackHarness;
use super::machine::{Closing, Next};
use super::stats::ThreadStats;

impl LoopbackHarness {
    fn statuses(&self) -> Vec<String> {
        let sent = self.sent();
        let lines = sent.lines().filter_map(|line| line.split_once("HTTP/1.1 "));
        lines.map(|(_, status)| status[..3].to_owned()).collect()
    }

    fn stats(&self) -> ThreadStats {
        self.counters.snapshot()
    }
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// Requests of every kind on a persistent connection; the last one closes it.
fn mixture() -> Vec<u8> {
    let mut input = get("/b/5") + &get("/nowhere") + "HEAD /10k HTTP/1.1\r\nHost: a\r\n\r\n";
    input += "POST /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nGET / HT";
    input +=
        "PUT /sink HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    input += &get("/b/9?chunked=4");
    input += "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n";
    input += "GET /0 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    input += "GET /1k HTTP/1.0\r\n\r\n";

    input.into_bytes()
}

#[test]
fn responses_are_in_order_however_the_requests_are_segmented() {
    let mut whole = LoopbackHarness::new();
    assert_eq!(whole.receive(&mixture()), Next::End);
    assert_eq!(
        whole.statuses(),
        [
            "200", "404", "200", "204", "204", "200", "204", "200", "200"
        ],
        "{}",
        whole.sent()
    );
    assert_eq!((whole.stats().requests, whole.stats().responses), (9, 9));
    assert_eq!(whole.stats().payload_bytes, 5 + 9 + 1024);
    assert_eq!(whole.machine.closing, Closing::AfterResponse);

    for step in [1, 2, 3, 7, 50, 1000] {
        let mut cut = LoopbackHarness::new();
        let next = mixture()
            .chunks(step)
            .map(|piece| cut.receive(piece))
            .last();
        assert_eq!(next, Some(Next::End));
        assert_eq!(cut.sent(), whole.sent(), "{step}");
    }
}

#[test]
fn invalid_request_gets_one_response_and_closes_the_connection() {
    for (input, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "400"),
        ("GET / HTTP/1.1\nHost: a\n\n", "400"),
        ("GET / HTTP/3.0\r\nHost: a\r\n\r\n", "505"),
        (
            "POST /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: \
             chunked\r\n\r\n",
            "400",
        ),
        (
            "POST /sink HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
            "501",
        ),
        (
            "POST /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\nExpect: 100-continue\r\n\r\n",
            "413",
        ),
        (
            "POST /sink HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
            "400",
        ),
        (
            "PUT /sink HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n",
            "",
        ),
    ] {
        let mut harness = LoopbackHarness::new();
        let input = input.to_owned() + &"x".repeat(101) + &get("/1k");
        assert_eq!(harness.receive(input.as_bytes()), Next::End, "{input:?}");
        assert_eq!(harness.machine.closing, Closing::Lingering);

        let expected = if status.is_empty() { "413" } else { status };
        assert_eq!(harness.statuses(), [expected], "{input:?}");
        assert!(harness.sent().contains("Connection: close"));
        assert_eq!(
            harness.receive(get("/1k").as_bytes()),
            Next::End,
            "nothing is read any more"
        );
        assert_eq!(harness.statuses().len(), 1);
    }
}

#[test]
fn expect_continue_is_confirmed() {
    let mut harness = LoopbackHarness::new();
    let head =
        "POST /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n";
    assert_eq!(harness.receive(head.as_bytes()), Next::Read);
    assert_eq!(harness.sent(), "HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(harness.receive(b"abc"), Next::Read);
    assert_eq!(harness.statuses(), ["100", "204"]);
}

#[test]
fn body_can_be_skipped_except_its_last_byte() {
    let mut harness = LoopbackHarness::new();
    harness.receive(b"POST /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nab");
    assert_eq!(harness.machine.skippable_bytes(), 97);
    harness.machine.skip(97);
    assert_eq!(harness.machine.skippable_bytes(), 0);
    assert!(harness.statuses().is_empty());
    assert_eq!(harness.receive(b"x"), Next::Read);
    assert_eq!(harness.statuses(), ["204"]);
}
