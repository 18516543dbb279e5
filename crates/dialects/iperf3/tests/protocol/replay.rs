//! Recorded dialogues of real programs: our client answers the recorded server, our server the
//! recorded client, and our bytes must equal theirs, except as listed here.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use linerate_iperf3::wire::udp_header::is_reply;
use linerate_iperf3::wire::{
    Client, ClientAction, ClientInput, ClientSetup, Cookie, ErrorCode, Params, Policy, Results,
    Server, ServerAction, ServerInput, ServerSetup, UdpHeader,
};
use linerate_model::spec::BitrateLimit;
use linerate_model::{Failure, FailureKind};
use serde_json::Value;

use crate::items::{Item, Items, keys};

struct Capture {
    name: String,
    from_client: Vec<(usize, Item)>,
    from_server: Vec<(usize, Item)>,
    datagrams: Vec<Value>,
}

impl Capture {
    fn new_release_client(&self) -> bool {
        self.name.contains(".c321-")
    }

    fn new_release_server(&self) -> bool {
        self.name.contains("-s321.")
    }

    fn json(items: &[(usize, Item)], nth: usize) -> Option<&[u8]> {
        let mut texts = items.iter().filter_map(|(_, item)| match item {
            Item::Json(text) => Some(text.as_slice()),
            _ => None,
        });
        texts.nth(nth)
    }
}

/// All captures, items in the order the relay saw them.
fn captures() -> Vec<Capture> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/iperf3");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(dir)
        .expect("fixtures are part of the repository")
        .map(|entry| entry.expect("a readable entry").path())
        .filter(|path| path.to_string_lossy().ends_with(".ctl.json"))
        .collect();
    paths.sort();

    paths.iter().map(|path| load(path)).collect()
}

fn load(path: &std::path::Path) -> Capture {
    let text = std::fs::read(path).expect("a readable fixture");
    let json: Value = serde_json::from_slice(&text).expect("valid JSON");
    let side = |dir: &str| {
        let mut items: Vec<(usize, Item)> = Vec::new();
        for (at, event) in json["control"]
            .as_array()
            .expect("a list")
            .iter()
            .enumerate()
        {
            if event["dir"] == dir {
                // Bytes without a form of their own are listed after everything, but came before
                // the end.
                let end = items.iter().position(|(_, item)| *item == Item::Eof);
                items.insert(end.unwrap_or(items.len()), (at, item(event)));
            }
        }

        items
    };

    Capture {
        name: path
            .file_name()
            .expect("a file")
            .to_string_lossy()
            .into_owned(),
        from_client: side("C>S"),
        from_server: side("S>C"),
        datagrams: json["udp_first_datagrams"]
            .as_array()
            .cloned()
            .unwrap_or_default(),
    }
}

fn item(event: &Value) -> Item {
    match event["what"].as_str().expect("a kind") {
        "cookie" => Item::Cookie(event["value"].as_str().expect("text").as_bytes().to_vec()),
        "state" => Item::State(event["byte"].as_i64().expect("a number") as i8),
        "json" => Item::Json(match event["raw"].as_str() {
            Some(raw) => raw.as_bytes().to_vec(),
            None => serde_json::to_vec(&event["object"]).expect("it was JSON"),
        }),
        "error_words" => {
            let word = |key: &str| event[key].as_i64().expect("a number") as i32;
            Item::Words([word("i_errno").to_be_bytes(), word("errno").to_be_bytes()].concat())
        }
        "leftover_bytes" => {
            let hex = event["hex"].as_str().expect("hexadecimal text");
            let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
            Item::Words((0..hex.len()).step_by(2).map(byte).collect())
        }
        "EOF" => Item::Eof,
        other => panic!("unknown item {other}"),
    }
}

fn interrupted() -> ClientInput {
    ClientInput::Interrupted {
        signal_text: "Interrupt(2)".to_owned(),
    }
}

#[test]
fn our_client_sends_the_recorded_bytes() {
    let captures = captures();
    assert_eq!(captures.len(), 128);
    for capture in &captures {
        replay_server(capture);
    }
}

/// Plays the recorded server to our client.
fn replay_server(capture: &Capture) {
    let name = &capture.name;
    let recorded = Capture::json(&capture.from_client, 0).expect("every client sent parameters");
    let mut params = Params::parse(recorded).expect("real parameters are valid");
    params.linerate_protocol = None;

    let Item::Cookie(cookie) = &capture.from_client[0].1 else {
        panic!("{name}: no cookie")
    };
    let mut wire = [0; 37];
    wire[..36].copy_from_slice(cookie);

    let setup = ClientSetup {
        cookie: Cookie::parse(&wire),
        spec: params.to_spec(),
        params,
    };
    let now = Instant::now();
    let mut client = Client::new(now, setup);
    let mut sent = Vec::new();
    let mut outcome = None;

    for (at, item) in &capture.from_server {
        // What the recorded client did by itself before this item.
        for (_, own) in capture.from_client.iter().filter(|(when, _)| when < at) {
            match own {
                Item::State(4) => client.handle_local(now, ClientInput::EndReached),
                Item::State(12) => client.handle_local(now, interrupted()),
                Item::State(16) if name.contains("bad-congestion") => {
                    client.handle_local(
                        now,
                        ClientInput::Failed(ErrorCode::SetCongestion.failure(None)),
                    );
                }
                _ => {}
            }
        }

        answer_client(&mut client, now, capture, &mut sent, &mut outcome);
        match item {
            Item::Eof => client.handle_control_eof(now),
            other => client.handle_control(now, &other.bytes()),
        }

        answer_client(&mut client, now, capture, &mut sent, &mut outcome);
    }

    let outcome = outcome.unwrap_or_else(|| panic!("{name}: our client did not finish"));
    assert_eq!(
        outcome_of_client(&outcome),
        expected_client_outcome(name),
        "{name}"
    );
    compare_client(capture, &sent);
}

fn answer_client(
    client: &mut Client,
    now: Instant,
    capture: &Capture,
    sent: &mut Vec<u8>,
    outcome: &mut Option<Result<(), Failure>>,
) {
    while let Some(action) = client.poll_action() {
        assert_eq!(*outcome, None, "{}", capture.name);
        match action {
            ClientAction::Send(bytes) => sent.extend(bytes),
            // A client that does not know its congestion control fails now.
            ClientAction::OpenStreams if !capture.name.contains("bad-congestion") => {
                client.handle_local(now, ClientInput::StreamsOpened);
            }
            ClientAction::CollectResults => {
                let ours = Capture::json(&capture.from_client, 1).expect("the client sent results");
                let ours = Results::parse(ours).expect("real results are valid");
                client.handle_local(now, ClientInput::Results(Box::new(ours)));
            }
            ClientAction::Close(result) => *outcome = Some(result),
            _ => {}
        }
    }
}

/// The result and the error number.
fn outcome_of_client(outcome: &Result<(), Failure>) -> (&'static str, Option<i32>) {
    match outcome {
        Ok(()) => ("done", None),
        Err(failure) => {
            let word = match failure.kind {
                FailureKind::Error => "error",
                FailureKind::Peer { .. } => "peer",
                FailureKind::Interrupted => "interrupted",
                FailureKind::PeerTerminated => "terminated",
                FailureKind::PeerClosed => "closed",
            };
            (word, failure.code)
        }
    }
}

fn expected_client_outcome(name: &str) -> (&'static str, Option<i32>) {
    let old_server = name.contains("-s312.");
    let case = name.split('.').next().unwrap_or(name);
    match case {
        "ctl-auth-badpw" if old_server => ("peer", Some(142)),
        "ctl-auth-badpw" => ("error", Some(109)),
        "ctl-auth-ok" if name.contains(".c321-s312.") => ("peer", Some(142)),
        "ctl-auth-ok" if name.contains(".c312-s321.") => ("error", Some(109)),
        "ctl-bad-congestion" => ("error", Some(134)),
        "ctl-bitrate-limit-exceeded" | "ctl-bitrate-limit-refused" if old_server => {
            ("error", Some(109))
        }
        "ctl-bitrate-limit-exceeded" | "ctl-bitrate-limit-refused" => ("peer", Some(27)),
        "ctl-max-duration-refused" => ("peer", Some(37)),
        "ctl-sigint-client" => ("interrupted", Some(119)),
        "ctl-sigint-server" => ("terminated", Some(120)),
        _ => ("done", None),
    }
}

fn compare_client(capture: &Capture, sent: &[u8]) {
    let name = &capture.name;
    let mut ours = Items::of_client(sent);

    let mut theirs: Vec<Item> = capture
        .from_client
        .iter()
        .map(|(_, item)| item.clone())
        .collect();
    theirs.retain(|item| *item != Item::Eof);

    // Real clients send their good-bye into a connection that is closed already.
    if outcome_is_closed(name) {
        assert_eq!(theirs.pop(), Some(Item::State(16)), "{name}");
    }

    for their in theirs {
        let our = ours
            .next()
            .unwrap_or_else(|| panic!("{name}: our client did not say {their:?}"));
        match (&their, &our) {
            (Item::Json(their), Item::Json(our)) => {
                if capture.new_release_client() {
                    assert_eq!(keys(our), keys(their), "{name}");
                }
            }
            _ => assert_eq!(our, their, "{name}"),
        }
    }

    assert_eq!(ours.next(), None, "{name}");
}

fn outcome_is_closed(name: &str) -> bool {
    expected_client_outcome(name).1 == Some(109)
}

#[test]
fn our_server_sends_the_recorded_bytes() {
    for capture in &captures() {
        // Both need the recorded key, or the recorded mishap of the padding.
        if !capture.name.starts_with("ctl-auth-") {
            replay_client(capture);
        }
    }
}

fn policy(name: &str) -> Policy {
    let mut policy = Policy::default();
    if name.contains("max-duration-refused") {
        policy.max_duration = Some(Duration::from_secs(2));
    }

    if name.contains("bitrate-limit-refused") {
        let window = Duration::from_secs(5);
        policy.bitrate_limit = Some(BitrateLimit {
            rate_bps: 100_000_000,
            window,
        });
    }

    policy
}

/// Plays the recorded client to our server.
fn replay_client(capture: &Capture) {
    let name = &capture.name;
    let now = Instant::now();
    let cookie = Cookie::from_random([1; 36]);
    let setup = ServerSetup {
        cookie,
        policy: policy(name),
        unix_s: 1_800_000_000,
    };
    let mut server = Server::new(now, setup);
    let mut sent = Vec::new();
    let mut outcome = None;

    for (_, item) in capture.from_client.iter().skip(1) {
        answer_server(&mut server, now, capture, &mut sent, &mut outcome);
        match item {
            Item::Eof => server.handle_control_eof(now),
            other => server.handle_control(now, &other.bytes()),
        }
    }

    answer_server(&mut server, now, capture, &mut sent, &mut outcome);
    let outcome = outcome.unwrap_or_else(|| panic!("{name}: our server did not finish"));
    assert_eq!(
        outcome_of_client(&outcome),
        expected_server_outcome(name),
        "{name}"
    );
    compare_server(capture, &sent);
}

fn answer_server(
    server: &mut Server,
    now: Instant,
    capture: &Capture,
    sent: &mut Vec<u8>,
    outcome: &mut Option<Result<(), Failure>>,
) {
    let name = &capture.name;
    while let Some(action) = server.poll_action() {
        assert_eq!(*outcome, None, "{name}");
        match action {
            ServerAction::Send(bytes) => sent.extend(bytes),
            ServerAction::Accepted(test) => {
                assert_eq!(test.spec, test.params.to_spec());
                server.handle_local(now, ServerInput::Prepared);
            }
            ServerAction::ExpectStreams(count) if !name.contains("bad-congestion") => {
                for _ in 0..count {
                    server.handle_local(now, ServerInput::StreamOpened);
                }
            }
            ServerAction::StartData if name.contains("bitrate-limit-exceeded") => {
                let code = ErrorCode::TotalRate;
                server.handle_local(
                    now,
                    ServerInput::Failed {
                        code,
                        errno: 0,
                        cause: None,
                    },
                );
            }
            ServerAction::StartData if name.contains("sigint-server") => {
                let signal_text = "Interrupt(2)".to_owned();
                server.handle_local(now, ServerInput::Terminated { signal_text });
            }
            ServerAction::StopData => {
                let ours = Capture::json(&capture.from_server, 0).expect("the server sent results");
                let ours = Results::parse(ours).expect("real results are valid");
                server.handle_local(now, ServerInput::Results(Box::new(ours)));
            }
            ServerAction::Close(result) => *outcome = Some(result),
            _ => {}
        }
    }
}

fn expected_server_outcome(name: &str) -> (&'static str, Option<i32>) {
    match name.split('.').next().unwrap_or(name) {
        "ctl-bitrate-limit-exceeded" | "ctl-bitrate-limit-refused" => ("error", Some(27)),
        "ctl-max-duration-refused" => ("error", Some(37)),
        "ctl-sigint-client" => ("terminated", Some(119)),
        "ctl-sigint-server" => ("interrupted", Some(120)),
        _ => ("done", None),
    }
}

fn compare_server(capture: &Capture, sent: &[u8]) {
    let name = &capture.name;
    let ours: Vec<Item> = Items::of_server(sent).collect();

    let mut theirs: Vec<Item> = capture
        .from_server
        .iter()
        .map(|(_, item)| item.clone())
        .collect();
    theirs.retain(|item| *item != Item::Eof);
    let failed = [Item::State(-2), Item::Words(vec![0, 0, 0, 27, 0, 0, 0, 0])];

    if name.contains("bitrate-limit-refused") && !capture.new_release_server() {
        // 3.12 finds out only when the streams are open.
        assert_eq!(theirs.pop(), Some(Item::State(10)));
        theirs.extend(failed);
    } else if name.contains("bitrate-limit-exceeded") {
        // 3.12 prints nothing, 3.21 everything twice.
        theirs.truncate(4);
        theirs.extend(failed);
    } else if name.contains("bad-congestion") {
        // Real servers start a test whose client is gone.
        theirs.truncate(2);
    } else if name.contains("sigint-client") {
        // 3.21 reports an error to a client that is gone.
        theirs.truncate(4);
    }

    assert_eq!(ours.len(), theirs.len(), "{name}: {ours:?}");
    for (our, their) in ours.iter().zip(&theirs) {
        match (our, their) {
            (Item::Json(our), Item::Json(their)) if capture.new_release_server() => {
                assert_eq!(keys(our), keys(their), "{name}");
            }
            (Item::Json(_), Item::Json(_)) => {}
            _ => assert_eq!(our, their, "{name}"),
        }
    }
}

#[test]
fn recorded_datagrams_are_what_we_take_them_for() {
    let mut headers = 0;
    for capture in &captures() {
        let wide = capture.name.contains("udp-64");
        let mut next_counter = std::collections::HashMap::new();

        for datagram in &capture.datagrams {
            let hex = datagram["head_hex"].as_str().expect("hexadecimal text");
            let head: Vec<u8> = (0..hex.len() / 2)
                .map(|at| {
                    u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hexadecimal digits")
                })
                .collect();

            let from_client = datagram["dir"] == "C>S";
            if datagram["len"] == 4 {
                assert!(from_client || is_reply(&head), "{}", capture.name);
                continue;
            }

            let header = UdpHeader::parse(&head, wide).expect("a complete header");
            let counter = next_counter
                .entry((datagram["stream"].to_string(), from_client))
                .or_insert(1);
            assert_eq!(header.counter, *counter, "{}", capture.name);
            assert!(header.usec < 1_000_000);
            *counter += 1;
            headers += 1;
        }
    }

    assert!(headers > 20, "{headers} headers in all captures");
}
