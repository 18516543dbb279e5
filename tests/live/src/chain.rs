//! Two hosts with several routers between them, for IPv4 and IPv6.

use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::namespaces::{inside, run, try_run};
use crate::skip;

/// Namespaces in a row: the client, the routers, the server. They go when this goes.
///
/// Link `n` is the one behind `n - 1` routers, seen from the client. Its addresses are `10.80.n.1`
/// and `fd80:n::1` at the client's side, `10.80.n.2` and `fd80:n::2` at the server's.
pub struct Chain {
    namespaces: Vec<String>,
}

/// Interface of a router or the server towards the client.
pub const TO_CLIENT: &str = "left";
/// Interface of a router or the client towards the server.
pub const TO_SERVER: &str = "right";

impl Chain {
    /// The chain; `None`, with the reason said, where namespaces cannot be made.
    pub fn new(routers: usize) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);

        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = |place| format!("lrchain-{}-{number}-{place}", std::process::id());
        let chain = Self {
            namespaces: (0..=routers + 1).map(name).collect(),
        };
        for namespace in &chain.namespaces {
            if !try_run(&format!("ip netns add {namespace}")) {
                skip("network namespaces need root");
                return None;
            }
            run(&format!("ip -n {namespace} link set lo up"));
            run(&format!(
                "ip netns exec {namespace} sysctl -qw net.ipv4.ip_forward=1 \
                 net.ipv6.conf.all.forwarding=1"
            ));
        }

        for (link, pair) in (1..).zip(chain.namespaces.windows(2)) {
            let [left, right] = pair else { continue };
            chain.connect(link, left, right);
        }
        chain.route();
        Some(chain)
    }

    fn connect(&self, link: usize, left: &str, right: &str) {
        run(&format!(
            "ip -n {left} link add {TO_SERVER} type veth peer name {TO_CLIENT} netns {right}"
        ));
        for (namespace, device, host) in [(left, TO_SERVER, 1), (right, TO_CLIENT, 2)] {
            for address in [
                format!("10.80.{link}.{host}/24"),
                format!("fd80:{link}::{host}/64 nodad"),
            ] {
                run(&format!(
                    "ip -n {namespace} addr add {address} dev {device}"
                ));
            }
            run(&format!("ip -n {namespace} link set {device} up"));
            // No hop combines segments, so that a shaper and a rule see every packet.
            run(&format!(
                "ip netns exec {namespace} ethtool -K {device} gro off tso off gso off"
            ));
        }
    }

    /// Each host and router forwards to links on either side of its own.
    fn route(&self) {
        let links = self.namespaces.len() - 1;
        for (place, namespace) in self.namespaces.iter().enumerate() {
            for link in 1..=links {
                let (via, host) = match link {
                    _ if link > place + 1 => (place + 1, 2),
                    _ if link < place => (place, 1),
                    _ => continue,
                };
                run(&format!(
                    "ip -n {namespace} route add 10.80.{link}.0/24 via 10.80.{via}.{host}"
                ));
                run(&format!(
                    "ip -n {namespace} route add fd80:{link}::/64 via fd80:{via}::{host}"
                ));
            }
        }
    }

    /// Namespace of the client.
    pub fn client(&self) -> &str {
        self.at(0)
    }

    /// Namespace of the server.
    pub fn server(&self) -> &str {
        self.at(self.routers() + 1)
    }

    /// Number of routers.
    pub fn routers(&self) -> usize {
        self.namespaces.len() - 2
    }

    /// Address of the server.
    pub fn server_address(&self, is_ipv6: bool) -> String {
        let link = self.routers() + 1;
        match is_ipv6 {
            true => format!("fd80:{link}::2"),
            false => format!("10.80.{link}.2"),
        }
    }

    /// Runs a command at a router, which are numbered from 1, from the client; 0 is the client.
    #[track_caller]
    pub fn at_hop(&self, router: usize, line: &str) -> Output {
        let output = inside(self.at(router), Path::new("sh"), &["-ec", line]).output();
        let output = output.expect("a shell");
        assert!(output.status.success(), "{line}: {output:?}");
        output
    }

    /// Shapes the exit of a router, with a queue of 20 to 25 ms.
    #[track_caller]
    pub fn shape(&self, router: usize, device: &str, mbit_per_s: usize) {
        let limit = mbit_per_s * 125 * 25;
        self.at_hop(
            router,
            &format!(
                "tc qdisc add dev {device} root tbf rate {mbit_per_s}mbit burst 16kB limit {limit}"
            ),
        );
    }

    /// Namespace of a router, which are numbered from 1; 0 is the client.
    pub fn namespace(&self, router: usize) -> &str {
        self.at(router)
    }

    fn at(&self, place: usize) -> &str {
        self.namespaces.get(place).expect("one of the chain")
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        for namespace in &self.namespaces {
            // What cannot be removed was never made.
            let _ = try_run(&format!("ip netns del {namespace}"));
        }
    }
}
