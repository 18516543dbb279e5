//! Recorded dialogues of real programs: our machines accept them and send what theirs sent.

use std::time::{Duration, Instant};

use linerate_iperf2::wire::ack::ServerAck;
use linerate_iperf2::wire::bounceback::{BounceHead, HEAD_LEN, Reply, Responder};
use linerate_iperf2::wire::burst::{BURST_HEAD_LEN, BurstHead, BurstReader};
use linerate_iperf2::wire::client::{StreamClient, StreamClientSetup};
use linerate_iperf2::wire::datagram::{FlowOpening, NumberWidth};
use linerate_iperf2::wire::frame::FrameWords;
use linerate_iperf2::wire::header::{Rate, parse_tcp, parse_udp};
use linerate_iperf2::wire::machine::{Action, Input};
use linerate_iperf2::wire::server::StreamServer;
use linerate_iperf2::wire::settings::{client_header, server_spec};
use linerate_iperf2::wire::{
    DatagramHead, FinalReport, Header, Mode, Opening, Policy, Timestamp, Version, recognise,
};
use linerate_model::spec::{ClientSpec, LocalOptions};
use linerate_model::workload::{Isochronous, Pairing, Shape};
use linerate_model::{Direction, EndCondition, TestSpec, Transport};

use crate::captures::{Call, Capture, captures};

fn version(capture: &Capture) -> Version {
    if capture.is_new_release() {
        Version::V2_2_1
    } else {
        Version::V2_1_8
    }
}

/// First bytes of the client, if it spoke at all.
fn first_sent(capture: &Capture) -> Option<&Call> {
    Capture::sent(&capture.client).next()
}

#[test]
fn every_recorded_opening_is_recognised() {
    for capture in captures().iter().filter(|capture| !capture.is_udp()) {
        let Some(first) = first_sent(capture) else {
            assert!(
                capture.mode().contains("connectonly"),
                "{} says nothing",
                capture.name
            );
            continue;
        };
        let expected = match capture.mode() {
            "tcp_C" => Opening::Data,
            // The load and the requests begin at the same time.
            "tcp_workingload" => {
                assert!(matches!(
                    recognise(&first.bytes),
                    Opening::Header | Opening::BounceBack
                ));
                continue;
            }
            mode if mode.contains("bounceback") => Opening::BounceBack,
            _ => Opening::Header,
        };
        assert_eq!(recognise(&first.bytes), expected, "{}", capture.name);
    }
}

#[test]
fn recorded_tcp_headers_survive_byte_for_byte() {
    let mut seen = 0;
    for capture in captures().iter().filter(|capture| !capture.is_udp()) {
        // Later writes may begin with a stale copy of the header, so only the first of each side is
        // one.
        let firsts = Capture::sent(&capture.client)
            .take(1)
            .chain(Capture::sent(&capture.server).take(1));
        for call in firsts {
            if call.bytes.len() != call.len || recognise(&call.bytes) != Opening::Header {
                continue;
            }

            let header = parse_tcp(&call.bytes).expect(&capture.name);
            assert_eq!(header.version, version(capture), "{}", capture.name);
            assert_eq!(header.emit_tcp(), call.bytes, "{}", capture.name);
            seen += 1;
        }
    }

    assert!(seen > 50, "{seen}");
}

#[test]
fn recorded_udp_headers_survive_byte_for_byte() {
    let mut seen = 0;
    for capture in captures().iter().filter(|capture| capture.is_udp()) {
        let Some(first) = first_sent(capture) else {
            continue;
        };
        if matches!(capture.mode(), "udp_C" | "udp_triptimes_l64") {
            assert!(parse_udp(&first.bytes).is_err(), "{}", capture.name);
            continue;
        }

        let mut datagram = first.bytes.clone();
        let header = parse_udp(&datagram).expect(&capture.name);
        assert_eq!(header.version, version(capture), "{}", capture.name);

        let ours = header.emit_udp();
        let head = DatagramHead::parse(&datagram, NumberWidth::Wide).expect("a head");
        assert_eq!(head.number, 1, "{}", capture.name);

        let common = datagram.len().min(ours.len());
        datagram.truncate(common);
        assert_eq!(ours[16..common], datagram[16..], "{}", capture.name);
        seen += 1;
    }

    assert!(seen > 25, "{seen}");
}

/// A client specification that does what the recorded one was started with.
fn spec(capture: &Capture) -> Option<ClientSpec> {
    let mut test = TestSpec {
        end: EndCondition::Duration(Duration::from_millis(300)),
        ..TestSpec::default()
    };
    let workload = &mut test.workload;

    match capture.mode() {
        "tcp_default" | "tcp_nearcongest" => {}
        "tcp_enh" => test.end = EndCondition::Bytes(256 << 10),
        "tcp_n" => test.end = EndCondition::Bytes(300 << 10),
        "tcp_X" => {
            test.end = EndCondition::Bytes(256 << 10);
            workload.detect_peer = true;
        }
        "tcp_X_triptimes" => {
            test.end = EndCondition::Bytes(256 << 10);
            (workload.detect_peer, workload.trip_times) = (true, true);
        }
        "tcp_triptimes" => {
            test.end = EndCondition::Bytes(512 << 10);
            workload.trip_times = true;
        }
        "tcp_b" => test.pacing.rate_bps = Some(10_000_000),
        "tcp_fqrate" => test.pacing.fq_rate_bps = Some(50_000_000),
        "tcp_tos" => {
            test.end = EndCondition::Bytes(256 << 10);
            test.socket.tos = 0x20;
        }
        "tcp_Z" => {
            test.end = EndCondition::Bytes(256 << 10);
            test.socket.congestion = Some("reno".to_owned());
        }
        "tcp_permitkey" => {
            test.end = EndCondition::Bytes(256 << 10);
            workload.permit_key = Some("secret123".to_owned());
        }
        "tcp_prefetch" => {
            test.end = EndCondition::Bytes(512 << 10);
            workload.unsent_limit_bytes = Some(64 << 10);
        }
        "tcp_burst" => {
            workload.shape = Shape::Bursts {
                size_bytes: 256 << 10,
                period: Duration::from_millis(100),
            };
        }
        "tcp_isoch" | "tcp_isoch_triptimes" => {
            workload.trip_times = capture.mode().ends_with("triptimes");
            workload.shape = Shape::Isochronous(Isochronous {
                frames_per_s: 60.0,
                mean_bps: 1e6,
                deviation_bps: 0.0,
                gap: Duration::ZERO,
            });
        }
        "tcp_reverse" => {
            test.end = EndCondition::Bytes(256 << 10);
            test.direction = Direction::Reverse;
        }
        "tcp_reverse_t" | "tcp_reverse_triptimes" => {
            test.direction = Direction::Reverse;
            test.pacing.rate_bps = Some(10_000_000);
            workload.trip_times = capture.mode().ends_with("triptimes");
        }
        "tcp_fullduplex" => {
            test.direction = Direction::Bidirectional;
            test.pacing.rate_bps = Some(10_000_000);
            workload.pairing = Pairing::Shared;
        }
        "tcp_dual" | "tcp_tradeoff" => {
            test.end = EndCondition::Bytes(256 << 10);
            test.direction = Direction::Bidirectional;
            workload.pairing = if capture.mode() == "tcp_dual" {
                Pairing::ConnectBack
            } else {
                Pairing::ConnectBackAfterwards
            };
        }
        _ => return None,
    }

    let local = LocalOptions {
        port: 5001,
        ..LocalOptions::default()
    };
    Some(ClientSpec::new("10.77.0.2", local, test))
}

#[test]
fn our_client_sends_the_recorded_bytes() {
    let mut replayed = 0;
    for capture in &captures() {
        let Some(spec) = spec(capture) else { continue };
        let name = &capture.name;
        let recorded = &first_sent(capture).expect("it sent something").bytes;
        let start = parse_tcp(recorded)
            .expect("a header")
            .start
            .unwrap_or_default();
        let header = client_header(&spec, version(capture), start).expect("it can be sent");
        let now = Instant::now();
        let setup = StreamClientSetup {
            header: Some(header.clone()),
            time_limit: spec.test.end.duration(),
        };
        let mut client = StreamClient::new(now, setup);
        assert_eq!(
            client.poll_action(),
            Some(Action::SendPayload(recorded.clone())),
            "{name}"
        );
        play_server(capture, &header, &mut client);
        replayed += 1;
    }

    assert_eq!(replayed, 2 * 22);
}

/// Bytes of the recorded server to this client, and the end of a test.
fn play_server(capture: &Capture, header: &Header, client: &mut StreamClient) {
    let (now, clock) = (
        Instant::now(),
        Timestamp::from_unix_ns(1_795_286_916_000_000_000),
    );
    let name = &capture.name;

    if let Some(answer) = Capture::sent(&capture.server).find(|call| call.bytes.len() == call.len) {
        assert!(
            client.handle_bytes(now, clock, &answer.bytes).is_empty(),
            "{name}"
        );
    }

    let mut actions = Vec::new();
    let mut poll = |client: &mut StreamClient| {
        while let Some(action) = client.poll_action() {
            actions.push(action);
        }
    };
    poll(client);
    client.handle_local(now, Input::SendingDone { next_number: 0 });
    client.handle_eof(now);
    poll(client);
    assert_eq!(actions.pop(), Some(Action::Close(Ok(()))), "{name}");

    let saw = |wanted: &dyn Fn(&Action) -> bool| actions.iter().any(wanted);
    assert_eq!(
        saw(&|a| matches!(a, Action::ServerAck(_))),
        header.detect_peer,
        "{name}"
    );
    assert_eq!(
        saw(&|a| matches!(a, Action::ClockCheck(_))),
        header.detect_peer && header.trip_times,
        "{name}"
    );
    assert_eq!(
        saw(&|a| *a == Action::StartSending),
        header.mode.client_sends(),
        "{name}"
    );

    let receives = |a: &Action| matches!(a, Action::StartReceiving { .. });
    assert_eq!(saw(&receives), header.mode.server_sends(), "{name}");
}

#[test]
fn our_server_sends_the_recorded_bytes() {
    let mut replayed = 0;
    for capture in captures().iter().filter(|capture| !capture.is_udp()) {
        let Some(first) =
            first_sent(capture).filter(|call| recognise(&call.bytes) == Opening::Header)
        else {
            continue;
        };
        let name = &capture.name;
        let header = parse_tcp(&first.bytes).expect(name);
        let start = header.start.unwrap_or_default();

        // The times in an answer are the server's own.
        let recorded = capture
            .server
            .iter()
            .find(|call| call.is_sent && call.bytes.len() == call.len);
        let ack = recorded.and_then(|call| ServerAck::parse(&call.bytes));
        let (accepted, answered) = ack
            .and_then(|ack| ack.times)
            .map_or((start, start), |t| (t.accepted, t.answered));

        let policy = Policy {
            version: version(capture),
            permit_key: header.permit_key,
            ..Policy::default()
        };
        let mut server = StreamServer::new(Instant::now(), accepted, policy);

        for byte in &first.bytes {
            assert!(
                server
                    .handle_bytes(answered, std::slice::from_ref(byte))
                    .is_empty(),
                "{name}"
            );
        }

        let Some(Action::Accepted(test)) = server.poll_action() else {
            panic!("{name}: not accepted")
        };
        assert_eq!(
            (test.payload_bytes, test.clocks_disagree),
            (first.len, false),
            "{name}"
        );

        let sent = std::iter::from_fn(|| server.poll_action()).find_map(|action| match action {
            Action::Send(bytes) | Action::SendPayload(bytes) => Some(bytes),
            _ => None,
        });
        match (sent, recorded) {
            (Some(sent), Some(recorded)) if ack.is_some() => {
                assert_eq!(sent, recorded.bytes, "{name}");
            }
            // The header of a server that frames its data carries its own time.
            (Some(sent), Some(recorded)) if recognise(&recorded.bytes) == Opening::Header => {
                let mut sent = parse_tcp(&sent).expect(name);
                let theirs = parse_tcp(&recorded.bytes).expect(name);
                sent.start = theirs.start;
                assert_eq!(sent, theirs, "{name}");
            }
            (Some(sent), _) => assert!(
                ServerAck::parse(&sent).is_some(),
                "{name}: the recording is cut"
            ),
            (None, _) => assert!(ack.is_none() && test.mode().server_sends(), "{name}"),
        }

        replayed += 1;
    }

    assert!(replayed > 40, "{replayed}");
}

#[test]
fn recorded_modes_mean_what_was_typed() {
    for capture in &captures() {
        let Some(first) = first_sent(capture) else {
            continue;
        };
        let transport = if capture.is_udp() {
            Transport::Udp
        } else {
            Transport::Tcp
        };

        let header = if capture.is_udp() {
            parse_udp(&first.bytes)
        } else {
            parse_tcp(&first.bytes)
        };
        let Ok(header) = header else { continue };
        let spec = server_spec(&header, transport);
        let name = &capture.name;

        let mode = match capture.mode() {
            m if m.contains("reverse") => Mode::Reverse,
            m if m.contains("fullduplex") || m.contains("workingload") => Mode::FullDuplex,
            m if m.contains("dual") => Mode::Dual,
            m if m.contains("tradeoff") => Mode::TradeOff,
            _ => Mode::Forward,
        };
        assert_eq!(header.mode, mode, "{name}");
        assert_eq!(
            header.trip_times,
            capture.mode().contains("triptimes"),
            "{name}"
        );
        assert_eq!(
            header.streams,
            if name.contains("_P2") || name.contains("sync") {
                2
            } else {
                1
            },
            "{name}"
        );
        assert_eq!(header.port, 5001, "{name}");

        match capture.mode() {
            "udp_pps" => {
                assert_eq!(
                    header.rate,
                    Some(Rate::BitsPerSecond(100)),
                    "{name}: the header does not hold the unit"
                );
            }
            "udp_b" => assert_eq!(spec.pacing.rate_bps, Some(5_000_000)),
            "udp_n" => assert_eq!(spec.end, EndCondition::Bytes(10 << 10)),
            "udp_nofin" => assert!(spec.workload.without_final_report),
            "tcp_fqrate" => assert_eq!(spec.pacing.fq_rate_bps, Some(50_000_000)),
            "tcp_l32_P2_w1M" => {
                assert_eq!((spec.block_len_bytes, spec.block_len_explicit), (32, true));
            }
            "tcp_synctransferid" if capture.is_new_release() => {
                assert_eq!(header.transfer_id, Some(1));
            }
            "tcp_Z" if capture.is_new_release() => {
                assert_eq!(spec.socket.congestion.as_deref(), Some("reno"));
            }
            "tcp_burst" => {
                let Shape::Bursts { size_bytes, period } = spec.workload.shape else {
                    panic!("{name}")
                };
                assert_eq!(
                    (size_bytes, period),
                    (256 << 10, Duration::from_millis(100)),
                    "{name}"
                );
            }
            _ => {}
        }
    }
}

#[test]
fn digits_are_not_taken_for_options() {
    for capture in captures()
        .iter()
        .filter(|capture| capture.mode() == "udp_C")
    {
        let opening = FlowOpening::parse(&first_sent(capture).expect("it sent something").bytes)
            .expect("a flow");
        assert_eq!(
            (
                opening.header,
                opening.short_trip_times,
                opening.report_offset
            ),
            (None, false, 16)
        );
    }

    let short = captures()
        .into_iter()
        .find(|c| c.name == "wire-218/udp_triptimes_l64")
        .expect("recorded");
    let opening =
        FlowOpening::parse(&first_sent(&short).expect("it sent something").bytes).expect("a flow");
    assert!(opening.short_trip_times);
}

#[test]
fn recorded_reports_are_understood_and_written_alike() {
    let mut seen = 0;
    for capture in captures().iter().filter(|capture| capture.is_udp()) {
        for call in Capture::sent(&capture.server).filter(|call| call.len == 128) {
            let name = &capture.name;
            let report = FinalReport::parse(&call.bytes).expect(name);
            assert_eq!((report.lost, report.out_of_order), (0, 0), "{name}");
            assert!(
                report.datagrams > 5 && report.bytes / report.datagrams <= 1470,
                "{name}"
            );
            assert!(
                report.duration > Duration::from_millis(50) && report.jitter_s < 0.01,
                "{name}"
            );
            assert_eq!(
                report.transit_s.is_some(),
                matches!(
                    capture.mode(),
                    "udp_enh" | "udp_triptimes" | "udp_triptimes_l64"
                ),
                "{name}"
            );

            let mut ours = report.emit(16);
            if report.transit_s.is_none() {
                // Theirs sends transit times that are not read.
                ours[56..108].copy_from_slice(&call.bytes[56..108]);
                assert_eq!(ours, call.bytes, "{name}");
            }

            seen += 1;
        }
    }

    assert!(seen > 10, "{seen}");
}

#[test]
fn recorded_bursts_are_found() {
    for capture in &captures() {
        let expected = match capture.mode() {
            "tcp_triptimes" | "tcp_X_triptimes" => 131_072,
            "tcp_isoch" | "tcp_isoch_triptimes" => 2083,
            _ => continue,
        };
        let mut reader = BurstReader::default();
        let mut number = 0;

        for call in Capture::sent(&capture.client)
            .skip(1)
            .filter(|call| call.len == expected && call.bytes.len() > BURST_HEAD_LEN)
        {
            let head: &[u8; BURST_HEAD_LEN] = call.bytes.first_chunk().expect("a head");
            // The dumps of long runs are left out.
            if BurstHead::parse(head).is_none_or(|head| head.number != number + 1) {
                break;
            }

            let mut bytes = call.bytes.clone();
            bytes.resize(call.len, b'0');
            let head = reader.read(&mut bytes.as_slice()).expect("a whole burst");

            number += 1;
            assert_eq!(
                (head.number, head.size_bytes as usize),
                (number, expected),
                "{}",
                capture.name
            );
            assert!(!head.written.is_unset(), "{}", capture.name);
        }

        assert!(number >= 1, "{}", capture.name);
    }
}

#[test]
fn isochronous_words_are_found_in_both_releases() {
    for capture in captures()
        .iter()
        .filter(|capture| capture.mode() == "udp_isoch")
    {
        let mut frames = Vec::new();
        for call in Capture::sent(&capture.client)
            .skip(1)
            .filter(|call| call.bytes.len() >= 112)
        {
            let Ok(header) = parse_udp(&call.bytes) else {
                break;
            };
            frames.extend(FrameWords::parse(&call.bytes, header.version));
        }

        let first = frames.first().expect("frames");
        assert_eq!(
            (first.period_us, first.number, first.size_bytes),
            (16_666, 1, 2083),
            "{}",
            capture.name
        );
        assert!(
            frames.is_sorted_by_key(|frame| frame.number),
            "{}",
            capture.name
        );

        let mut datagram = [0; 160];
        first.write(&mut datagram, version(capture));
        assert_eq!(FrameWords::parse(&datagram, version(capture)), Some(*first));
    }
}

#[test]
fn recorded_requests_are_answered_like_the_recorded_server_did() {
    let mut seen = 0;
    for capture in captures()
        .iter()
        .filter(|capture| capture.mode().starts_with("tcp_bounceback"))
    {
        if capture.mode() == "tcp_bounceback_l40" {
            continue;
        }

        let name = &capture.name;
        let request = first_sent(capture).expect("it sent something");
        let mut bytes = request.bytes.clone();
        bytes.resize(request.len, b'0');

        let mut responder = Responder::default();
        let reply = responder
            .read(Timestamp::default(), &mut bytes.as_slice())
            .expect(name);
        let Some(Reply::Send(head)) = reply else {
            panic!("{name}: {reply:?}")
        };
        assert_eq!(head.request_bytes as usize, request.len, "{name}");

        // The client's trace shows the answer even where the server's is cut.
        let answer = capture
            .client
            .iter()
            .find(|call| !call.is_sent && call.bytes.len() >= HEAD_LEN);
        let Some(answer) = answer else { continue };
        let theirs = BounceHead::parse(answer.bytes.first_chunk().expect("a head")).expect(name);

        assert_eq!(head.reply_len() as usize, answer.len, "{name}");
        let ours = BounceHead {
            received: theirs.received,
            ..head
        };
        let ours = ours.reply(theirs.replied.expect("the server replied"));
        assert_eq!(ours[..60], answer.bytes[..60], "{name}");
        seen += 1;
    }

    assert_eq!(seen, 7);
}
