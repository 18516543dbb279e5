//! Requests in, answers out: the conversation over memory.

use super::conversation::{Ending, Next};
use super::figures::ThreadFigures;
use super::talk::Talk;

impl Talk {
    fn statuses(&self) -> Vec<String> {
        let said = self.said();
        let lines = said.lines().filter_map(|line| line.split_once("HTTP/1.1 "));
        lines.map(|(_, status)| status[..3].to_owned()).collect()
    }

    fn figures(&self) -> ThreadFigures {
        self.counters.snapshot()
    }
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// Requests of every kind that leave the connection open, and the last one that does not.
fn mixture() -> Vec<u8> {
    let mut input = get("/b/5") + &get("/nowhere") + "HEAD /10k HTTP/1.1\r\nHost: a\r\n\r\n";
    input += "POST /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nGET / HT";
    input += "PUT /sink HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    input += &get("/b/9?chunked=4");
    input += "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n";
    input += "GET /0 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    input += "GET /1k HTTP/1.0\r\n\r\n";
    input.into_bytes()
}

#[test]
fn answers_leave_in_the_order_of_the_requests_however_these_are_cut() {
    let mut whole = Talk::new();
    assert_eq!(whole.hear(&mixture()), Next::End);
    assert_eq!(
        whole.statuses(),
        ["200", "404", "200", "204", "204", "200", "204", "200", "200"],
        "{}",
        whole.said()
    );
    assert_eq!((whole.figures().requests, whole.figures().responses), (9, 9));
    assert_eq!(whole.figures().payload_bytes, 5 + 9 + 1024);
    assert_eq!(whole.conversation.ending(), Ending::Agreed);
    for step in [1, 2, 3, 7, 50, 1000] {
        let mut cut = Talk::new();
        let next = mixture().chunks(step).map(|piece| cut.hear(piece)).last();
        assert_eq!(next, Some(Next::End));
        assert_eq!(cut.said(), whole.said(), "{step}");
    }
}

#[test]
fn sixteen_requests_at_once_get_sixteen_answers() {
    let mut talk = Talk::new();
    assert_eq!(talk.hear(get("/b/77").repeat(16).as_bytes()), Next::Read);
    assert_eq!(talk.statuses().len(), 16);
    assert!(talk.conversation.is_blank() && talk.kept.is_empty());
}

#[test]
fn what_cannot_be_read_is_answered_once_and_ends_the_connection() {
    for (input, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "400"),
        ("GET / HTTP/1.1\nHost: a\n\n", "400"),
        ("GET / HTTP/3.0\r\nHost: a\r\n\r\n", "505"),
        (
            "POST /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
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
        let mut talk = Talk::new();
        let input = input.to_owned() + &"x".repeat(101) + &get("/1k");
        assert_eq!(talk.hear(input.as_bytes()), Next::End, "{input:?}");
        assert_eq!(talk.conversation.ending(), Ending::CutShort);
        let expected = if status.is_empty() { "413" } else { status };
        assert_eq!(talk.statuses(), [expected], "{input:?}");
        assert!(talk.said().contains("Connection: close"));
        assert_eq!(talk.hear(get("/1k").as_bytes()), Next::End, "nothing is read any more");
        assert_eq!(talk.statuses().len(), 1);
    }
}

#[test]
fn a_client_that_waits_is_told_to_go_on() {
    let mut talk = Talk::new();
    let head = "POST /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n";
    assert_eq!(talk.hear(head.as_bytes()), Next::Read);
    assert_eq!(talk.said(), "HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(talk.hear(b"abc"), Next::Read);
    assert_eq!(talk.statuses(), ["100", "204"]);
}

#[test]
fn a_body_can_be_skipped_but_for_its_last_byte() {
    let mut talk = Talk::new();
    talk.hear(b"POST /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nab");
    assert_eq!(talk.conversation.skippable_bytes(), 97);
    talk.conversation.skip(97);
    assert_eq!(talk.conversation.skippable_bytes(), 0);
    assert!(talk.statuses().is_empty());
    assert_eq!(talk.hear(b"x"), Next::Read);
    assert_eq!(talk.statuses(), ["204"]);
}
