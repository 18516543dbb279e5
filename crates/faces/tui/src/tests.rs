//! Screens against reviewed texts, at three sizes. `UPDATE_SNAPSHOTS=1` rewrites them.

use std::time::Duration;
use std::{env, fs};

use linerate_document::Glyphs;
use linerate_model::event::{Event, TestHeader};
use linerate_model::http::{CellKey, Phase, Reading};
use linerate_model::interval::{IntervalReport, StreamInterval, TcpInterval};
use linerate_model::live::{LiveHost, LiveState, LiveStream};
use linerate_model::printable::acts;
use linerate_model::service::{ClientProgress, Progress, ServerEvent, TestFacts};
use linerate_model::spec::{Direction, EndCondition, Transport};
use linerate_model::stream::StreamId;
use ratatui_core::backend::{Backend, TestBackend};

use super::*;

const SIZES: [(u16, u16); 3] = [(80, 24), (40, 10), (200, 60)];
const SECOND_NS: u64 = 1_000_000_000;

fn view((columns, rows): (u16, u16)) -> View {
    View {
        columns,
        rows,
        now_ns: 11_524 * SECOND_NS,
        glyphs: Glyphs::Blocks,
        is_coloured: true,
        is_paused: false,
        is_help: false,
    }
}

/// Screen of a terminal, line by line.
fn shown(state: &LiveState, view: View) -> String {
    let screen = screen(state, view);
    let mut terminal = TestBackend::new(view.columns, view.rows);
    let empty = Buffer::empty(screen.area);
    terminal
        .draw(empty.diff(&screen).into_iter())
        .expect("memory");

    let cells = terminal.buffer().content();
    let line = |cells: &[ratatui_core::buffer::Cell]| {
        cells.iter().map(|cell| cell.symbol()).collect::<String>()
    };
    cells
        .chunks(usize::from(view.columns))
        .map(|cells| line(cells).trim_end().to_owned() + "\n")
        .collect()
}

fn assert_expected(name: &str, state: &LiveState) {
    for (columns, rows) in SIZES {
        let file = format!(
            "{}/src/expected/{name}-{columns}x{rows}.txt",
            env!("CARGO_MANIFEST_DIR")
        );
        let text = shown(state, view((columns, rows)));

        if env::var_os("UPDATE_SNAPSHOTS").is_some() {
            fs::write(&file, &text).expect("the folder is there");
        }

        assert_eq!(
            text,
            fs::read_to_string(&file).unwrap_or_default(),
            "{name} {columns}x{rows}"
        );
    }
}

fn server(sessions: u16) -> LiveState {
    let mut state = LiveState::default();
    for address in ["0.0.0.0:5201", "0.0.0.0:5001"] {
        state.server_event(
            &ServerEvent::Listening {
                address: address.parse().expect("an address"),
            },
            0,
        );
    }

    let peer = |number: u16| {
        format!("192.0.2.{}:{}", number % 250, 50_000 + number)
            .parse()
            .expect("an address")
    };
    for number in 1..=sessions {
        let transport = if number % 3 == 0 {
            Transport::Udp
        } else {
            Transport::Tcp
        };
        let direction = if number % 4 == 0 {
            Direction::Reverse
        } else {
            Direction::Forward
        };
        let mut facts = TestFacts::new(peer(number), transport, direction, number.into());
        facts.number = number.into();
        facts.user = (number % 2 == 0).then(|| "alice\u{1b}[31m".to_owned());
        facts.running_beside = u32::from(number) - 1;
        state.server_event(&ServerEvent::TestStarted(facts), 11_520 * SECOND_NS);
        state.announce(
            &format!("192.0.2.{}", number % 250),
            50_000 + number,
            EndCondition::Duration(Duration::from_secs(10)),
        );
    }

    for step in 1..=4_u64 {
        let client = |number: u16| ClientProgress {
            number: number.into(),
            peer: peer(number),
            received_bytes: 100_000_000 * step + u64::from(number),
            sent_bytes: 0,
        };
        let progress = Progress {
            tests: sessions.into(),
            streams: 1,
            elapsed: Duration::from_secs(1),
            clients: (1..=sessions).map(client).collect(),
            ..Progress::default()
        };
        state.server_event(
            &ServerEvent::Progress(progress),
            (11_520 + step) * SECOND_NS,
        );
    }

    let mut host = LiveHost::default();
    (host.cpus_busy, host.softirq, host.drops) = (vec![0.97, 0.5, 0.0, 0.1], 0.31, Some(0));
    state.host = Some(host);

    let server = state.server_mut();
    (server.tests_max, server.refused, server.records) = (Some(1000), 3, Some((812, 0)));
    state
}

fn test() -> LiveState {
    let mut state = LiveState::default();
    let mut header = TestHeader {
        peer_host: "192.0.2.7".to_owned(),
        peer_port: 5201,
        ..TestHeader::default()
    };
    header.spec.end = EndCondition::Duration(Duration::from_secs(10));
    state.event(&Event::TestAccepted(Box::new(header)), 0);

    let test = state.test.as_mut().expect("a test");
    test.streams = vec![LiveStream::default(); 2];
    test.streams[1].id = StreamId(1);
    test.streams_all = 2;
    state.event(
        &Event::TestStarted {
            at_monotonic_ns: None,
        },
        11_520 * SECOND_NS,
    );

    for step in 1..=4_u32 {
        let row = |id: u32| {
            let mut tcp = TcpInterval::default();
            (tcp.retransmits, tcp.rtt_us, tcp.snd_cwnd_bytes) = (3, 1234, 1 << 20);

            StreamInterval {
                id: StreamId(id),
                start_ns: u64::from(step - 1) * SECOND_NS,
                end_ns: u64::from(step) * SECOND_NS,
                bytes: u64::from(step * (id + 1)) * 50_000_000,
                tcp: Some(tcp),
                ..StreamInterval::default()
            }
        };
        let interval = IntervalReport::new(vec![row(0), row(1)]);
        state.event(&Event::Interval(interval), 0);
    }

    state
}

fn sweep() -> LiveState {
    let mut state = test();
    let sweep = state.sweep_mut();
    (sweep.host, sweep.setting) = ("192.0.2.7".to_owned(), "4 streams".to_owned());
    (sweep.runs_done, sweep.runs_planned, sweep.left_s) = (7, 20, 83.0);

    for (setting, value) in [("1 stream", 4e9), ("2 streams", 8e9), ("1 stream", 4.2e9)] {
        state.run_ended(setting, Some((value, format!("{:.2} Gbit/s", value / 1e9))));
    }

    state.run_ended("4 streams", None);
    state
}

fn http() -> LiveState {
    let mut state = LiveState::default();
    let http = state.http_mut();
    http.target = "http://192.0.2.7:8080/".to_owned();
    http.begin("matrix 10k c64, repeat 2, measure".to_owned());
    (http.run, http.runs, http.left_s) = (8, 20, Some(83.0));
    [2000.0, 9000.0, 12_345.0]
        .into_iter()
        .for_each(|ok| http.ok_per_s.push(ok));
    (http.payload_bytes, http.p99_ns, http.errors, http.open) =
        (126_412_800, Some(1_234_000), 2, 64);

    let mut reading = Reading::default();
    (reading.window_ns, reading.cpu_busy, reading.connections) = (SECOND_NS, Some(0.45), Some(64));
    http.client = Some(reading);

    for (connections, values) in [(64, &[9000.0, 12_000.0][..]), (8, &[4000.0]), (512, &[])] {
        let key = CellKey::new(Phase::Matrix, 10 << 10, connections);
        let level = http.cells.entry(key).or_default();
        level.setting = format!("matrix 10k c{connections}");
        values
            .iter()
            .for_each(|value| level.add(Some((*value, format!("{value}/s")))));

        if values.is_empty() {
            level.add(None);
        }
    }

    state
}

fn load() -> LiveState {
    let mut state = http();
    let http = state.http_mut();
    (http.run, http.runs) = (0, 0);
    http.cells.clear();
    state
}

#[test]
fn screens_are_as_reviewed() {
    assert_expected("server", &server(4));
    assert_expected("server-idle", &server(0));
    assert_expected("server-full", &server(100));
    assert_expected("test", &test());
    assert_expected("sweep", &sweep());
    assert_expected("http", &http());
    assert_expected("http-load", &load());
}

#[test]
fn ascii_terminals_get_ascii_only() {
    for state in [server(4), test(), sweep(), http()] {
        let text = shown(
            &state,
            View {
                glyphs: Glyphs::Ascii,
                ..view((80, 24))
            },
        );
        assert!(text.is_ascii(), "{text}");
    }
}

#[test]
fn texts_of_peers_reach_no_terminal_as_controls() {
    let mut state = server(4);
    let mut facts = TestFacts::new(
        "192.0.2.9:5".parse().expect("an address"),
        Transport::Tcp,
        Direction::Forward,
        1,
    );
    facts.number = 9;
    facts.user = Some("bob\u{9b}31m\u{202e}\u{2066}\u{200b}\u{e0041}".to_owned());
    state.server_event(&ServerEvent::TestStarted(facts), 11_520 * SECOND_NS);

    let text = shown(&state, view((200, 60)));
    assert!(text.contains("alice") && text.contains("bob"), "{text}");
    assert!(!text.contains(|c: char| c != '\n' && acts(c)), "{text:?}");
}

#[test]
fn pause_and_help_are_words() {
    let text = shown(
        &server(1),
        View {
            is_paused: true,
            ..view((40, 10))
        },
    );
    assert!(
        text.contains("PAUSED") && text.contains("p continue"),
        "{text}"
    );

    let text = shown(
        &server(1),
        View {
            is_help: true,
            ..view((40, 10))
        },
    );
    assert!(text.contains("Ctrl-Z") && text.contains("? back"), "{text}");
}

#[test]
fn without_colours_states_are_still_words() {
    let plain = screen(
        &server(4),
        View {
            is_coloured: false,
            ..view((80, 24))
        },
    );
    assert!(
        plain
            .content()
            .iter()
            .all(|cell| cell.fg == ratatui_core::style::Color::Reset)
    );
    assert!(
        shown(
            &server(4),
            View {
                is_coloured: false,
                ..view((80, 24))
            }
        )
        .contains("running 4/1000")
    );
}

#[test]
fn any_size_is_drawn() {
    for (columns, rows) in [(0, 0), (1, 1), (40, 1), (5, 40), (500, 3)] {
        for state in [server(4), test(), sweep(), http(), LiveState::default()] {
            let _ = screen(&state, view((columns, rows)));
        }
    }
}
