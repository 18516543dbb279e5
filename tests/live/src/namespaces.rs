//! Two hosts on one machine: network namespaces joined by a veth pair.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::{Process, ours, skip, words};

/// Two namespaces joined by a veth pair; they go when this goes.
pub struct Net {
    /// The client's.
    pub a: String,
    /// The server's.
    pub b: String,
    /// That of a bridge or a router between both, where there is one.
    pub middle: Option<String>,
}

/// Name of the pair's interface in both.
pub const DEVICE: &str = "lr0";
/// Port of the bridge to [`Net::a`].
pub const CLIENT_PORT: &str = "port-a";
/// Port of the bridge to [`Net::b`].
pub const SERVER_PORT: &str = "port-b";
/// Address of [`Net::a`].
pub const CLIENT: &str = "10.99.0.1";
/// Address of [`Net::b`].
pub const SERVER: &str = "10.99.0.2";
/// Address of the router between both, on both of its interfaces.
pub const ROUTER: &str = "10.99.0.254";

impl Net {
    /// The pair; `None`, with the reason said, where namespaces cannot be made.
    pub fn new() -> Option<Self> {
        let net = Self::empty(false)?;
        let (a, b) = (&net.a, &net.b);
        run(&format!(
            "ip -n {a} link add {DEVICE} type veth peer name {DEVICE} netns {b}"
        ));
        net.configure();
        Some(net)
    }

    /// Two hosts with a bridge between them, whose ports are [`CLIENT_PORT`] and [`SERVER_PORT`].
    pub fn bridged() -> Option<Self> {
        let net = Self::empty(true)?;
        let middle = net.middle.as_deref().unwrap_or_default();
        run(&format!("ip -n {middle} link add br0 type bridge"));
        run(&format!("ip -n {middle} link set br0 up"));

        for (host, port) in [(&net.a, CLIENT_PORT), (&net.b, SERVER_PORT)] {
            run(&format!(
                "ip -n {host} link add {DEVICE} type veth peer name {port} netns {middle}"
            ));
            run(&format!("ip -n {middle} link set {port} up master br0"));
        }

        net.configure();
        Some(net)
    }

    /// Two hosts with a router between them, whose interfaces are [`CLIENT_PORT`] and
    /// [`SERVER_PORT`]. No end and no hop combines segments, so that a shaper and a rule see every
    /// packet.
    pub fn routed() -> Option<Self> {
        let net = Self::empty(true)?;
        let middle = net.middle.as_deref().unwrap_or_default();

        for (host, port, address) in [(&net.a, CLIENT_PORT, CLIENT), (&net.b, SERVER_PORT, SERVER)]
        {
            run(&format!(
                "ip -n {host} link add {DEVICE} type veth peer name {port} netns {middle}"
            ));
            for (namespace, device, own, other) in [
                (host.as_str(), DEVICE, address, ROUTER),
                (middle, port, ROUTER, address),
            ] {
                run(&format!("ip -n {namespace} addr add {own}/32 dev {device}"));
                run(&format!("ip -n {namespace} link set {device} up"));
                run(&format!("ip -n {namespace} route add {other} dev {device}"));
                run(&format!(
                    "ip netns exec {namespace} ethtool -K {device} gro off tso off gso off"
                ));
            }

            run(&format!(
                "ip -n {host} route add default via {ROUTER} dev {DEVICE}"
            ));
            run(&format!("ip -n {host} link set lo up"));
        }

        run(&format!(
            "ip netns exec {middle} sysctl -qw net.ipv4.ip_forward=1"
        ));
        Some(net)
    }

    /// Runs a command in the namespace between both.
    #[track_caller]
    pub fn in_middle(&self, line: &str) {
        let middle = self.middle.as_deref().expect("there is one");
        let status = inside(middle, Path::new("sh"), &["-ec", line]).status();
        assert!(status.is_ok_and(|status| status.success()), "{line}");
    }

    /// Namespaces without a link, with one in the middle or without.
    pub(crate) fn empty(is_bridged: bool) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);

        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = |side: &str| format!("lrdoc-{}-{number}-{side}", std::process::id());
        let net = Self {
            a: name("a"),
            b: name("b"),
            middle: is_bridged.then(|| name("m")),
        };
        for namespace in net.namespaces() {
            if !try_run(&format!("ip netns add {namespace}")) {
                skip("network namespaces need root");
                return None;
            }
        }

        Some(net)
    }

    fn namespaces(&self) -> impl Iterator<Item = &String> {
        [&self.a, &self.b].into_iter().chain(&self.middle)
    }

    /// Gives [`DEVICE`] of both an address, and takes it up.
    pub(crate) fn configure(&self) {
        for (namespace, address) in [(&self.a, CLIENT), (&self.b, SERVER)] {
            run(&format!(
                "ip -n {namespace} addr add {address}/24 dev {DEVICE}"
            ));
            run(&format!("ip -n {namespace} link set {DEVICE} up"));
            run(&format!("ip -n {namespace} link set lo up"));
        }
    }

    /// Takes the server's interface down: no packet arrives in either direction, and no error is
    /// reported.
    pub fn cut(&self) {
        run(&format!("ip -n {} link set {DEVICE} down", self.b));
    }

    /// Ends what [`Self::cut`] began.
    pub fn restore(&self) {
        run(&format!("ip -n {} link set {DEVICE} up", self.b));
    }

    /// Output of `linerate doctor` in one of them.
    pub fn doctor(&self, namespace: &str, words: &[&str]) -> Value {
        let words = [&["doctor", "--json"], words].concat();
        Process::start(inside(namespace, ours().path(), &words))
            .finish()
            .json()
    }

    /// The snapshot that `linerate doctor` saves with these words in one of them.
    pub fn snapshot(&self, namespace: &str, words: &[&str]) -> Value {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("snapshot.json");
        self.doctor(
            namespace,
            &[words, &["--save", file.to_str().expect("a plain path")]].concat(),
        );
        serde_json::from_str(&fs::read_to_string(file).expect("saved")).expect("JSON")
    }

    /// A server of ours that gives facts about its host to every client, ready for clients.
    pub fn server(&self) -> Process {
        let server = Process::start(inside(
            &self.b,
            ours().path(),
            &["iperf3", "-s", "--forceflush", "--lr-facts", "all"],
        ));
        server.wait_for_stdout("Server listening", 1);
        server
    }

    /// A client of ours that tests the way to the server.
    pub fn client(&self, words: &[&str]) -> Process {
        Process::start(inside(
            &self.a,
            ours().path(),
            &[&["iperf3", "-c", SERVER, "--forceflush"], words].concat(),
        ))
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for namespace in self.namespaces() {
            // What cannot be removed was never made.
            let _ = try_run(&format!("ip netns del {namespace}"));
        }
    }
}

/// A program in a namespace.
pub fn inside(namespace: &str, program: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("ip");
    command
        .args(["netns", "exec", namespace])
        .arg(program)
        .args(words)
        .env("LC_ALL", "C")
        .env("TZ", "UTC");
    command
}

/// True if a command ends well.
pub fn try_run(line: &str) -> bool {
    let words = words(line);
    let output = Command::new(words[0]).args(&words[1..]).output();
    output.is_ok_and(|output| output.status.success())
}

/// Runs a command that has to end well.
pub fn run(line: &str) {
    assert!(try_run(line), "{line}");
}
