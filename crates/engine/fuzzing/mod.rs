//! What fuzz targets and property tests check: functions over arbitrary bytes that panic when a promise is broken.
//! Not part of the interface.

mod bounds;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use linerate_iperf3::framing::frame;
use linerate_iperf3::server::{Policy, ServerAction, ServerInput, ServerSetup};
use linerate_iperf3::{Cookie, ErrorCode, Params, Results, State};
use linerate_model::sharing::{Admission, Limits, Sharing};
use linerate_model::{CpuUsage, Transport};

use crate::server::desk::{Arrival, Desk, Stage};

pub use bounds::{half_open_flows, quotas};

/// Any events on several sessions at once leave every session with exactly one end, and the desk with no more sessions
/// than the rules allow. Returns how many tests ran.
pub fn sessions(script: &[u8]) -> usize {
    let Some((&[rules, ..], script)) = script.split_first_chunk::<1>() else {
        return 0;
    };
    let mut house = House::new(&sharing(rules), rules & 0x80 != 0);
    play(script, |event| house.play(event));
    house.empty();
    house.ran
}

/// What happens to one session alone is what happens to it among others, whatever those do and in whatever order. The
/// sessions of the script come from different addresses and the server has room for all, so that no rule joins them.
pub fn independence(script: &[u8]) {
    let roomy = Sharing::default();
    let mut together = House::new(&roomy, false);
    together.apart = true;
    play(script, |event| together.play(event));
    for guest in 0..GUESTS {
        let mut alone = House::new(&roomy, false);
        alone.apart = true;
        play(script, |event| {
            if event.concerns(guest) {
                alone.play(event);
            }
        });
        assert_eq!(alone.log.get(&guest), together.log.get(&guest), "guest {guest}");
    }
}

/// Sessions of a script.
const GUESTS: u8 = 6;

/// One event of a script.
#[derive(Debug, Clone, Copy)]
enum Event<'a> {
    /// This guest does what an honest client would do next; the number chooses its parameters.
    Next(u8, u8),
    /// A connection says the cookie of this guest: the guest itself, or one of its streams.
    Connect(u8),
    Bytes(u8, &'a [u8]),
    State(u8, State),
    Parameters(u8, u8),
    Results(u8),
    Eof(u8),
    Error(u8),
    /// Something fails on this end.
    Fail(u8),
    /// A UDP datagram from the address of this guest.
    Hello(u8),
    Time(u8),
}

impl Event<'_> {
    fn concerns(&self, guest: u8) -> bool {
        match self {
            Self::Time(_) => true,
            Self::Next(g, _)
            | Self::Connect(g)
            | Self::Bytes(g, _)
            | Self::State(g, _)
            | Self::Parameters(g, _)
            | Self::Results(g)
            | Self::Eof(g)
            | Self::Error(g)
            | Self::Fail(g)
            | Self::Hello(g) => *g == guest,
        }
    }
}

fn play(script: &[u8], mut step: impl FnMut(Event<'_>)) {
    let mut rest = script;
    while let Some(([kind, argument], tail)) = rest.split_first_chunk() {
        rest = tail;
        let guest = kind >> 4;
        let guest = guest % GUESTS;
        step(match kind % 16 {
            0..=4 => Event::Next(guest, *argument),
            5 => Event::Connect(guest),
            6 if *argument > 64 => Event::Next(guest, *argument),
            6 => {
                let (bytes, tail) = rest.split_at(usize::from(*argument).min(rest.len()));
                rest = tail;
                Event::Bytes(guest, bytes)
            }
            7 if *argument > 160 => Event::State(guest, State::ALL[usize::from(*argument) % State::ALL.len()]),
            8 if *argument > 160 => Event::Parameters(guest, *argument),
            9 if *argument > 200 => Event::Results(guest),
            10 if *argument > 200 => Event::Eof(guest),
            11 if *argument > 230 => Event::Error(guest),
            12 if *argument > 230 => Event::Fail(guest),
            7..=12 => Event::Next(guest, *argument),
            13 | 14 => Event::Hello(guest),
            // Mostly short times, so that few deadlines pass.
            _ => Event::Time(if *argument > 230 { *argument } else { *argument % 8 }),
        });
    }
}

/// A desk with everything around it that needs sockets, simulated.
struct House {
    desk: Desk,
    now: Instant,
    next_id: u64,
    /// Connection numbers of the guests that have a session.
    ids: BTreeMap<u8, u64>,
    /// Sessions whose test data flows.
    running: BTreeSet<u64>,
    /// What running guests have said, as a number of steps.
    said: BTreeMap<u64, u32>,
    /// What was done for each guest, in order.
    log: BTreeMap<u8, Vec<String>>,
    places: usize,
    ran: usize,
    /// Every guest has an address of its own.
    apart: bool,
}

impl House {
    fn new(sharing: &Sharing, one_off: bool) -> Self {
        let places = match (one_off, sharing.admission) {
            (true, _) | (_, Admission::Exclusive) => 1,
            (_, Admission::Parallel { tests_max } | Admission::Queue { tests_max, .. }) => tests_max as usize,
        };
        Self {
            desk: Desk::new(sharing, one_off),
            now: start(),
            next_id: 1,
            ids: BTreeMap::new(),
            running: BTreeSet::new(),
            said: BTreeMap::new(),
            log: BTreeMap::new(),
            places,
            ran: 0,
            apart: false,
        }
    }

    fn play(&mut self, event: Event<'_>) {
        match event {
            Event::Next(guest, choice) => self.next(guest, choice),
            Event::Connect(guest) => self.connect(guest),
            Event::Bytes(guest, bytes) => self.control(guest, bytes),
            Event::State(guest, state) => self.control(guest, &[state.byte()]),
            Event::Parameters(guest, kind) => self.control(guest, &parameters(kind)),
            Event::Results(guest) => self.control(guest, &frame(&results().to_json())),
            Event::Eof(guest) => self.with(guest, |desk, now, id| desk.handle_control_eof(now, id)),
            Event::Error(guest) => {
                self.with(guest, |desk, now, id| {
                    desk.handle_control_error(now, id, "Connection reset by peer");
                });
            }
            Event::Fail(guest) => {
                let input = ServerInput::Failed {
                    code: ErrorCode::NoMsg,
                    errno: 0,
                    cause: None,
                };
                self.with(guest, |desk, now, id| desk.handle_local(now, id, input));
            }
            Event::Hello(guest) => {
                if let Some(owner) = self.desk.claimant(self.address(guest).ip()) {
                    self.desk.handle_local(self.now, owner, ServerInput::StreamOpened);
                }
            }
            Event::Time(seconds) => {
                self.now += Duration::from_millis(u64::from(seconds) * 100);
                self.desk.handle_timeout(self.now);
            }
        }
        self.settle();
        self.check();
    }

    fn next(&mut self, guest: u8, choice: u8) {
        let id = self.ids.get(&guest).copied();
        match id.and_then(|id| self.desk.stage(id)) {
            None | Some(Stage::Opening) => self.connect(guest),
            Some(Stage::Asked) => self.control(guest, &parameters(choice)),
            Some(Stage::Waiting | Stage::Agreed) => {}
            Some(Stage::Running) => {
                let said = self.said.entry(id.unwrap_or_default()).or_insert(0);
                *said += 1;
                let word = match *said {
                    1..=2 => return,
                    3 => vec![State::TestEnd.byte()],
                    4 => frame(&results().to_json()),
                    _ => vec![State::IperfDone.byte()],
                };
                self.control(guest, &word);
            }
        }
        // The streams of a UDP test come without a connection.
        if let Some(owner) = self
            .desk
            .claimant(self.address(guest).ip())
            .filter(|owner| Some(*owner) == id)
        {
            self.desk.handle_local(self.now, owner, ServerInput::StreamOpened);
        }
    }

    fn connect(&mut self, guest: u8) {
        let id = self.next_id;
        self.next_id += 1;
        match self.desk.arrive(self.now, id, self.address(guest), cookie(guest)) {
            Arrival::Stream(owner) => {
                assert_eq!(self.ids.get(&guest), Some(&owner), "a stream belongs to who named it");
                self.desk.handle_local(self.now, owner, ServerInput::StreamOpened);
            }
            Arrival::Seat => {
                self.ids.insert(guest, id);
                self.desk.seat(self.now, id, setup(guest));
            }
            Arrival::Wait => {
                self.ids.insert(guest, id);
            }
            Arrival::Refused(reason) => self.note(guest, format!("refused: {reason}")),
        }
    }

    fn control(&mut self, guest: u8, bytes: &[u8]) {
        self.with(guest, |desk, now, id| desk.handle_control(now, id, bytes));
    }

    fn with(&mut self, guest: u8, act: impl FnOnce(&mut Desk, Instant, u64)) {
        if let Some(&id) = self.ids.get(&guest) {
            act(&mut self.desk, self.now, id);
        }
    }

    /// Does what the desk decides, as a server does.
    fn settle(&mut self) {
        loop {
            while let Some(id) = self.desk.next_ready() {
                while let Some(action) = self.desk.poll_action(id) {
                    self.act(id, &action);
                }
            }
            match self.desk.next_turn() {
                Some(id) => {
                    let guest = self.guest(id);
                    self.desk.seat(self.now, id, setup(guest));
                }
                None => return,
            }
        }
    }

    fn act(&mut self, id: u64, action: &ServerAction) {
        let guest = self.guest(id);
        self.note(guest, format!("{action:?}"));
        let answer = match action {
            ServerAction::Accepted(_) => Some(ServerInput::Prepared),
            ServerAction::StopData => {
                let results = Results {
                    // How many ran beside a test is the one thing about others that it is told, on purpose.
                    linerate: !self.apart,
                    ..results()
                };
                Some(ServerInput::Results(Box::new(results)))
            }
            ServerAction::StartData => {
                self.running.insert(id);
                self.ran += 1;
                None
            }
            ServerAction::Close(_) => {
                assert!(self.desk.poll_action(id).is_none(), "nothing follows the end");
                self.running.remove(&id);
                self.ids.remove(&guest);
                self.desk.depart(self.now, id);
                None
            }
            _ => None,
        };
        if let Some(input) = answer {
            self.desk.handle_local(self.now, id, input);
        }
    }

    fn check(&mut self) {
        assert!(self.running.len() <= self.places, "no more tests than places");
        let positions: BTreeSet<u32> = self.running.iter().map(|id| self.desk.first_position(*id)).collect();
        assert_eq!(
            positions.len(),
            self.running.len(),
            "every running test has numbers of its own"
        );
        assert!(self.ids.values().all(|id| self.desk.stage(*id).is_some()));
    }

    /// Everybody leaves; nobody is forgotten.
    fn empty(&mut self) {
        for guest in 0..GUESTS {
            self.with(guest, |desk, now, id| desk.handle_control_eof(now, id));
            self.settle();
        }
        // Answers to failed logins and waits in the queue are over by then.
        self.now += Duration::from_secs(3600);
        self.desk.handle_timeout(self.now);
        self.settle();
        assert!(self.ids.is_empty(), "left behind: {:?}", self.ids);
        assert_eq!(self.desk.next_timeout(), None);
    }

    fn note(&mut self, guest: u8, what: String) {
        self.log.entry(guest).or_default().push(what);
    }

    fn guest(&self, id: u64) -> u8 {
        let guest = self.ids.iter().find(|(_, own)| **own == id);
        *guest.expect("only guests with a session have actions").0
    }

    /// Three guests share an address, unless they are to be apart.
    fn address(&self, guest: u8) -> SocketAddr {
        let host = if self.apart { guest } else { guest / 3 };
        ([192, 0, 2, host], 40_000 + u16::from(guest)).into()
    }
}

fn sharing(rules: u8) -> Sharing {
    let admission = match rules % 4 {
        0 => Admission::default(),
        1 => Admission::Parallel { tests_max: 2 },
        2 => Admission::Queue {
            tests_max: 1 + u32::from(rules >> 6),
            patience: Duration::from_secs(25),
        },
        _ => Admission::Exclusive,
    };
    let mut sharing = Sharing {
        admission,
        allow_split_address: rules & 0x10 != 0,
        ..Sharing::default()
    };
    if rules & 0x20 != 0 {
        sharing.limits.address = Limits {
            tests: Some(2),
            streams: Some(3),
            duration: Some(Duration::from_secs(60)),
            ..Limits::default()
        };
    }
    sharing
}

fn setup(guest: u8) -> ServerSetup {
    ServerSetup {
        cookie: cookie(guest),
        policy: Policy {
            handshake_timeout: Duration::from_secs(5),
            ..Policy::default()
        },
        unix_s: 1_800_000_000,
    }
}

fn cookie(guest: u8) -> Cookie {
    Cookie::from_random([guest; 36])
}

fn parameters(kind: u8) -> Vec<u8> {
    let mut params = Params::default();
    if kind & 1 != 0 {
        (params.transport, params.len_bytes) = (Transport::Udp, 1000);
    }
    params.bidirectional = kind & 2 != 0;
    params.parallel = 1 + u32::from(kind >> 2) % 4;
    if kind & 0x80 != 0 {
        params.time_s = 0;
    }
    frame(&params.to_json())
}

fn results() -> Results {
    Results {
        cpu: CpuUsage::default(),
        sender_has_retransmits: -1,
        congestion_used: None,
        server_output: None,
        streams: Vec::new(),
        linerate: true,
        ran_beside: None,
        overflows: None,
        facts: None,
    }
}

/// Instants have no origin of their own; one for the whole process makes scripts repeatable.
fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}
