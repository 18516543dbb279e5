//! A client of a chosen address of this host that breaks the rules. The server may refuse whatever
//! it tries.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use linerate_sys::poll::{Interest, wait_fd};
use linerate_sys::socket::{self, Protocol};
use serde_json::{Value, json};

use crate::raw_native::{RawNative, hello, probe_head, token};

/// One attacker: its address, the server's, and whose addresses it may forge.
#[derive(Debug, Clone, Copy)]
pub struct Attacker<'a> {
    from: Ipv4Addr,
    server: SocketAddr,
    /// Address of the client that is to be served.
    pub victim: Ipv4Addr,
    is_over: &'a AtomicBool,
}

/// Longest wait for a connection and for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Answer to the head of a stream.
const ANSWER_BYTES: usize = 16;
/// Longest time of one write, so that the end of the attack is noticed.
const WRITE_WITHIN: Duration = Duration::from_millis(100);
/// Rate that is within the limit of each of these servers.
const ANNOUNCED_BPS: u64 = 50_000_000;
/// Longest part of an attack: a session whose client is silent ends after 20 s.
const PART_MAX: Duration = Duration::from_secs(15);
/// Pause after a refusal: what is refused at once would otherwise cost this host more than the
/// server.
const PAUSE: Duration = Duration::from_millis(20);

impl<'a> Attacker<'a> {
    /// An attacker of this address, until `is_over`.
    pub fn new(
        from: Ipv4Addr,
        victim: Ipv4Addr,
        server: SocketAddr,
        is_over: &'a AtomicBool,
    ) -> Self {
        Self {
            from,
            server,
            victim,
            is_over,
        }
    }

    /// Repeats an attack until its end.
    pub fn repeat(&self, attack: fn(&Attacker<'_>)) {
        while self.goes_on() {
            attack(self);
            thread::sleep(PAUSE);
        }
    }

    /// The attack is not over.
    pub fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    /// The attack is not over, and this part of it has not taken so long that the server has to end
    /// it.
    pub fn goes_on_since(&self, began: Instant) -> bool {
        self.goes_on() && began.elapsed() < PART_MAX
    }

    /// Waits, at most until the attack has ended.
    pub fn pause(&self, time: Duration) {
        let began = Instant::now();
        while self.goes_on() && began.elapsed() < time {
            thread::sleep(PAUSE.min(time));
        }
    }

    /// A new connection; `None` where the server takes none.
    pub fn connect(&self) -> Option<TcpStream> {
        let stream = connect_from(self.from, self.server).ok()?;
        stream.set_read_timeout(Some(ANSWER_WITHIN)).ok()?;
        stream.set_write_timeout(Some(WRITE_WITHIN)).ok()?;
        stream.set_nodelay(true).ok()?;
        Some(stream)
    }

    /// A native control connection whose first message the server awaits.
    pub fn control(&self) -> Option<RawNative> {
        RawNative::over(RawNative::recognise(self.connect()?)?)
    }

    /// A native session of an hour with this number of streams; at a rate where the server demands one.
    pub fn session(&self, streams_max: u32) -> Option<RawNative> {
        self.session_at(streams_max, None)
            .or_else(|| self.session_at(streams_max, Some(ANNOUNCED_BPS)))
    }

    fn session_at(&self, streams_max: u32, rate_bps: Option<u64>) -> Option<RawNative> {
        let mut client = self.control()?;
        let mut wanted = hello();
        wanted["streams_max"] = streams_max.into();

        if let Some(rate_bps) = rate_bps {
            wanted["rate_bps"] = rate_bps.into();
        }

        // As many as the server grants.
        wanted["connections_max"] = 10_000.into();
        wanted["duration_max_ns"] = 3_600_000_000_000_u64.into();
        wanted["wants"] = json!(["idle", "down", "up", "both", "rr", "crr", "cps"]);
        client.send(wanted);
        client.try_expect("welcome")?;

        Some(client)
    }

    /// A stream of this kind ([`probe_head`]) with a token of [`RawNative::try_start_phase`];
    /// `None` where the server does not answer its head.
    pub fn stream(&self, kind: u8, text: &Value) -> Option<TcpStream> {
        let mut stream = self.connect()?;
        stream.write_all(&probe_head(kind, token(text))).ok()?;
        stream.read_exact(&mut [0; ANSWER_BYTES]).ok()?;
        Some(stream)
    }

    /// A UDP socket of an address of this host, its own or a forged one.
    pub fn udp(&self, from: Ipv4Addr) -> Option<UdpSocket> {
        let socket = UdpSocket::bind((from, 0)).ok()?;
        socket.connect(self.server).ok()?;
        socket.set_read_timeout(Some(WRITE_WITHIN)).ok()?;
        Some(socket)
    }

    /// A UDP socket of its own address.
    pub fn own_udp(&self) -> Option<UdpSocket> {
        self.udp(self.from)
    }
}

impl RawNative {
    /// Opens and starts the phase with the largest of these numbers of streams that the server
    /// grants; returns that number and the tokens. `phase` is the number of the last phase.
    pub fn try_start_largest(
        &mut self,
        phase: &mut u32,
        streams: &[u32],
        spec: impl Fn(u32) -> Value,
    ) -> Option<(u32, Value)> {
        streams.iter().find_map(|streams| {
            *phase += 1;
            self.try_start_phase(*phase, &spec(*streams))
                .map(|ready| (*streams, ready))
        })
    }

    /// Opens a phase and starts it; returns its tokens. `None` where the server refuses it.
    pub fn try_start_phase(&mut self, phase: u32, spec: &Value) -> Option<Value> {
        self.send(json!({ "type": "open_phase", "phase": phase, "spec": spec }));
        let ready = self.try_expect("ready")?;
        self.send(json!({ "type": "start", "phase": phase }));
        self.try_expect("started")?;
        Some(ready)
    }
}

/// Connects from an address of this host.
///
/// # Errors
/// The operating system's; `TimedOut` when nothing answers.
fn connect_from(from: Ipv4Addr, server: SocketAddr) -> io::Result<TcpStream> {
    let fd = socket::open(&server, Protocol::Tcp).map_err(io::Error::other)?;
    socket::bind(&fd, &SocketAddr::from((from, 0))).map_err(io::Error::other)?;
    socket::connect(&fd, &server).map_err(io::Error::other)?;

    if !wait_fd(&fd, Interest::WRITE, Some(ANSWER_WITHIN))? {
        return Err(io::ErrorKind::TimedOut.into());
    }

    socket::take_error(&fd).map_err(io::Error::other)?;
    let stream = TcpStream::from(fd);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Gives this thread the lowest precedence (setpriority(2)): attackers have CPUs of their own, and
/// where many share those of the server and of the clients that are served, they would decide what
/// is measured.
pub fn give_way() {
    let thread = fs::read_link("/proc/thread-self").expect("procfs is mounted");
    let thread = thread.file_name().expect("PID/task/TID");
    let changed = Command::new("renice")
        .args(["-n", "19", "-p"])
        .arg(thread)
        .stdout(Stdio::null())
        .status();
    assert!(
        changed.is_ok_and(|status| status.success()),
        "renice of a thread of our own"
    );
}
