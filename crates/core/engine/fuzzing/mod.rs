//! Checks of fuzz targets and property tests: functions over arbitrary bytes that panic when a
//! promise is broken. Not part of the interface.

mod bounds;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use linerate_iperf3::wire::framing::frame;
use linerate_iperf3::wire::server::{Policy, ServerAction, ServerInput, ServerSetup};
use linerate_iperf3::wire::{Cookie, ErrorCode, Params, Results, State};
use linerate_model::policy::{self, ServerPolicy};
use linerate_model::{CpuUsage, Transport};

use crate::dialect::iperf3::server::registry::{AdmissionDecision, SessionRegistry, Stage};
use crate::server::admission::Admission;

pub use crate::dialect::native::fuzzing::{tls_stream, transactions};
pub use bounds::{half_open_flows, quotas};

/// Any events on several sessions at once leave every session with exactly one end, and the
/// registry with no more sessions than the rules allow. Returns how many tests ran.
pub fn sessions(script: &[u8]) -> usize {
    let Some((&[rules, ..], script)) = script.split_first_chunk::<1>() else {
        return 0;
    };
    let mut harness = Harness::new(&policy(rules), rules & 0x80 != 0);
    play(script, |client, event| harness.play(client, event));
    harness.empty();
    harness.ran
}

/// What happens to one session alone is what happens to it among others, whatever those do and in
/// whatever order. The sessions of the script come from different addresses and the server has room
/// for all, so that no rule joins them.
pub fn independence(script: &[u8]) {
    let roomy = ServerPolicy::default();
    let mut together = Harness::new(&roomy, false);
    together.apart = true;
    play(script, |client, event| together.play(client, event));

    for client in 0..CLIENTS {
        let mut alone = Harness::new(&roomy, false);
        alone.apart = true;
        play(script, |other, event| {
            if other == client || matches!(event, Event::Time(_)) {
                alone.play(other, event);
            }
        });
        assert_eq!(
            alone.log.get(&client),
            together.log.get(&client),
            "client {client}"
        );
    }
}

/// Sessions of a script.
const CLIENTS: u8 = 6;

/// One event of a script, in most cases of a client.
#[derive(Debug, Clone, Copy)]
enum Event<'a> {
    /// The client takes its regular next step; the number chooses its parameters.
    Next(u8),
    /// A connection sends the cookie of the client: the client itself, or one of its streams.
    Connect,
    Bytes(&'a [u8]),
    State(State),
    Parameters(u8),
    Results,
    Eof,
    Error,
    /// Something fails on this end.
    Fail,
    /// A UDP datagram from the address of the client.
    Hello,
    /// Time passes for all clients.
    Time(u8),
}

fn play(script: &[u8], mut step: impl FnMut(u8, Event<'_>)) {
    let mut rest = script;
    while let Some(([kind, argument], tail)) = rest.split_first_chunk() {
        rest = tail;
        let event = match kind % 16 {
            0..=4 => Event::Next(*argument),
            5 => Event::Connect,
            6 if *argument > 64 => Event::Next(*argument),
            6 => {
                let (bytes, tail) = rest.split_at(usize::from(*argument).min(rest.len()));
                rest = tail;
                Event::Bytes(bytes)
            }
            7 if *argument > 160 => {
                Event::State(State::ALL[usize::from(*argument) % State::ALL.len()])
            }
            8 if *argument > 160 => Event::Parameters(*argument),
            9 if *argument > 200 => Event::Results,
            10 if *argument > 200 => Event::Eof,
            11 if *argument > 230 => Event::Error,
            12 if *argument > 230 => Event::Fail,
            7..=12 => Event::Next(*argument),
            13 | 14 => Event::Hello,
            // Mostly short times, so that few deadlines pass.
            _ => Event::Time(if *argument > 230 {
                *argument
            } else {
                *argument % 8
            }),
        };
        step((kind >> 4) % CLIENTS, event);
    }
}

/// A registry with everything around it that needs sockets, simulated.
struct Harness {
    registry: SessionRegistry,
    admission: Admission,
    now: Instant,
    next_id: u64,
    /// Connection numbers of the clients that have a session.
    ids: BTreeMap<u8, u64>,
    /// Sessions whose test data flows.
    running: BTreeSet<u64>,
    /// Steps of running clients.
    inputs: BTreeMap<u64, u32>,
    /// What was done for each client, in order.
    log: BTreeMap<u8, Vec<String>>,
    places: usize,
    ran: usize,
    /// Every client has an address of its own.
    apart: bool,
}

impl Harness {
    fn new(policy: &ServerPolicy, one_off: bool) -> Self {
        let places = match (one_off, policy.admission) {
            (
                false,
                policy::Admission::Parallel { tests_max }
                | policy::Admission::Queue { tests_max, .. },
            ) => tests_max as usize,
            _ => 1,
        };
        Self {
            registry: SessionRegistry::new(policy.allow_split_address),
            admission: Admission::new(policy, one_off),
            now: start(),
            next_id: 1,
            ids: BTreeMap::new(),
            running: BTreeSet::new(),
            inputs: BTreeMap::new(),
            log: BTreeMap::new(),
            places,
            ran: 0,
            apart: false,
        }
    }

    fn play(&mut self, client: u8, event: Event<'_>) {
        match event {
            Event::Next(choice) => self.next(client, choice),
            Event::Connect => self.connect(client),
            Event::Bytes(bytes) => self.control(client, bytes),
            Event::State(state) => self.control(client, &[state.byte()]),
            Event::Parameters(kind) => self.control(client, &parameters(kind)),
            Event::Results => self.control(client, &frame(&results().to_json())),
            Event::Eof => self.with(client, |registry, now, id| {
                registry.handle_control_eof(now, id);
            }),
            Event::Error => {
                self.with(client, |registry, now, id| {
                    registry.handle_control_error(now, id, "Connection reset by peer");
                });
            }
            Event::Fail => {
                let input = ServerInput::Failed {
                    code: ErrorCode::NoMsg,
                    errno: 0,
                    cause: None,
                };
                self.with(client, |registry, now, id| {
                    registry.handle_local(now, id, input);
                });
            }
            Event::Hello => {
                if let Some(owner) = self.registry.udp_stream_owner(self.address(client).ip()) {
                    self.registry
                        .handle_local(self.now, owner, ServerInput::StreamOpened);
                }
            }
            Event::Time(seconds) => {
                self.now += Duration::from_millis(u64::from(seconds) * 100);
                self.registry.handle_timeout(self.now);
            }
        }

        self.take_actions();
        self.check();
    }

    fn next(&mut self, client: u8, choice: u8) {
        let id = self.ids.get(&client).copied();
        match id.and_then(|id| self.registry.stage(id)) {
            None | Some(Stage::Opening) => self.connect(client),
            Some(Stage::Negotiating) => self.control(client, &parameters(choice)),
            Some(Stage::Queued | Stage::Accepted) => {}
            Some(Stage::Running) => {
                let inputs = self.inputs.entry(id.unwrap_or_default()).or_insert(0);
                *inputs += 1;

                let word = match *inputs {
                    1..=2 => return,
                    3 => vec![State::TestEnd.byte()],
                    4 => frame(&results().to_json()),
                    _ => vec![State::IperfDone.byte()],
                };
                self.control(client, &word);
            }
        }

        // The streams of a UDP test come without a connection.
        if let Some(owner) = self
            .registry
            .udp_stream_owner(self.address(client).ip())
            .filter(|owner| Some(*owner) == id)
        {
            self.registry
                .handle_local(self.now, owner, ServerInput::StreamOpened);
        }
    }

    fn connect(&mut self, client: u8) {
        let id = self.next_id;
        self.next_id += 1;
        let peer = self.address(client);

        match self.registry.admit_connection(
            self.now,
            id,
            peer,
            cookie(client),
            &mut self.admission,
        ) {
            AdmissionDecision::Stream(owner) => {
                assert_eq!(
                    self.ids.get(&client),
                    Some(&owner),
                    "a stream belongs to who named it"
                );
                self.registry
                    .handle_local(self.now, owner, ServerInput::StreamOpened);
            }
            AdmissionDecision::Admitted => {
                self.ids.insert(client, id);
                self.registry.begin(self.now, id, setup(client));
            }
            AdmissionDecision::Queued => {
                self.ids.insert(client, id);
            }
            AdmissionDecision::Refused(reason) => self.note(client, format!("refused: {reason}")),
        }
    }

    fn control(&mut self, client: u8, bytes: &[u8]) {
        self.with(client, |registry, now, id| {
            registry.handle_control(now, id, bytes);
        });
    }

    fn with(&mut self, client: u8, act: impl FnOnce(&mut SessionRegistry, Instant, u64)) {
        if let Some(&id) = self.ids.get(&client) {
            act(&mut self.registry, self.now, id);
        }
    }

    /// Does what the registry decides, as a server does.
    fn take_actions(&mut self) {
        loop {
            while let Some(id) = self.registry.next_ready() {
                while let Some(action) = self.registry.poll_action(id) {
                    self.act(id, &action);
                }
            }

            match self.registry.next_turn(&mut self.admission) {
                Some(id) => {
                    let client = self.client(id);
                    self.registry.begin(self.now, id, setup(client));
                }
                None => return,
            }
        }
    }

    fn act(&mut self, id: u64, action: &ServerAction) {
        let client = self.client(id);
        self.note(client, format!("{action:?}"));

        let answer = match action {
            ServerAction::Accepted(test) => self
                .registry
                .agree(self.now, id, test, &mut self.admission)
                .then_some(ServerInput::Prepared),
            ServerAction::StopData => {
                // The number of concurrent tests is reported to a client on purpose.
                let results = Results {
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
                assert!(
                    self.registry.poll_action(id).is_none(),
                    "nothing follows the end"
                );
                self.running.remove(&id);
                self.ids.remove(&client);
                self.registry.remove(self.now, id, &mut self.admission);
                None
            }
            _ => None,
        };
        if let Some(input) = answer {
            self.registry.handle_local(self.now, id, input);
        }
    }

    fn check(&mut self) {
        assert!(
            self.running.len() <= self.places,
            "no more tests than places"
        );
        let positions: BTreeSet<u32> = self
            .running
            .iter()
            .map(|id| self.registry.first_position(*id))
            .collect();
        assert_eq!(
            positions.len(),
            self.running.len(),
            "every running test has numbers of its own"
        );
        assert!(
            self.ids
                .values()
                .all(|id| self.registry.stage(*id).is_some())
        );
    }

    /// All clients leave; no state is left.
    fn empty(&mut self) {
        for client in 0..CLIENTS {
            self.with(client, |registry, now, id| {
                registry.handle_control_eof(now, id);
            });
            self.take_actions();
        }

        // Answers to failed logins and waits in the queue have ended by then.
        self.now += Duration::from_secs(3600);
        self.registry.handle_timeout(self.now);
        self.take_actions();
        assert!(self.ids.is_empty(), "left behind: {:?}", self.ids);
        assert_eq!(self.registry.next_timeout(), None);
    }

    fn note(&mut self, client: u8, what: String) {
        self.log.entry(client).or_default().push(what);
    }

    fn client(&self, id: u64) -> u8 {
        let client = self.ids.iter().find(|(_, own)| **own == id);
        *client.expect("only clients with a session have actions").0
    }

    /// Three clients share an address, unless they are to be apart.
    fn address(&self, client: u8) -> SocketAddr {
        let host = if self.apart { client } else { client / 3 };
        ([192, 0, 2, host], 40_000 + u16::from(client)).into()
    }
}

fn policy(rules: u8) -> ServerPolicy {
    let admission = match rules % 4 {
        0 => policy::Admission::default(),
        1 => policy::Admission::Parallel { tests_max: 2 },
        2 => policy::Admission::Queue {
            tests_max: 1 + u32::from(rules >> 6),
            wait_max: Duration::from_secs(25),
        },
        _ => policy::Admission::Exclusive,
    };
    let mut policy = ServerPolicy {
        admission,
        allow_split_address: rules & 0x10 != 0,
        ..ServerPolicy::default()
    };

    if rules & 0x20 != 0 {
        let limits = &mut policy.limits.address;
        (limits.tests, limits.streams) = (Some(2), Some(3));
        limits.duration = Some(Duration::from_secs(60));
    }

    policy
}

fn setup(client: u8) -> ServerSetup {
    ServerSetup {
        cookie: cookie(client),
        policy: Policy {
            handshake_timeout: Duration::from_secs(5),
            ..Policy::default()
        },
        unix_s: 1_800_000_000,
    }
}

fn cookie(client: u8) -> Cookie {
    Cookie::from_random([client; 36])
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
