//! A fleet on one machine: a network namespace for each host, with sshd(8) on a management network
//! and a link of its own to a switch.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::deadline::{TIMEOUT, wait_until};
use crate::host_link::HostLink;
use crate::namespaces::{inside, run, try_run};
use crate::process::{Process, Signal};
use crate::program::{original, ours};
use crate::skip;

/// Hosts with sshd in namespaces; they go when this goes.
pub struct FleetLab {
    prefix: String,
    hosts: usize,
    /// Hosts of a rack.
    rack_size: Option<usize>,
    has_two_paths: bool,
    folder: TempDir,
    /// Hosts that are servers without an agent in the inventory.
    servers: BTreeMap<usize, Process>,
    /// End before the namespaces.
    sshds: Vec<Process>,
}

/// Interface of a host in the tested network, and its port on the switch with the number of the
/// host.
const DATA: &str = "data";
/// Interface of a host in the management network.
const MANAGEMENT: &str = "mgmt";
const SSH_PORT: u16 = 2222;
/// Port of the servers without an agent.
const SERVER_PORT: u16 = 5201;
/// Name of the tested path in the inventory.
const PATH: &str = "lab";

impl FleetLab {
    /// A host for each link, named `h0`, `h1` …; `None`, with the reason printed, where this
    /// machine has no namespaces or no sshd.
    pub fn new(links: &[HostLink]) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);

        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("lrfleet-{}-{number}", std::process::id());
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (hosts, servers, sshds) = (links.len(), BTreeMap::new(), Vec::new());
        let mut lab = Self {
            prefix,
            hosts,
            rack_size: None,
            has_two_paths: false,
            folder,
            servers,
            sshds,
        };
        for name in lab.namespaces() {
            if !try_run(&format!("ip netns add {name}")) {
                skip("network namespaces need root");
                return None;
            }
        }

        if !Path::new(SSHD).exists() {
            skip("sshd is not installed (openssh-server)");
            return None;
        }

        lab.cable(links);
        lab.make_keys();
        // Its directory of privilege separation, which only the service makes.
        fs::create_dir_all("/run/sshd").expect("root");

        for host in 0..links.len() {
            let sshd = lab.start_sshd(host);
            lab.sshds.push(sshd);
        }

        lab.wait_for_sshds();
        Some(lab)
    }

    /// Namespace of a host.
    pub fn host(&self, number: usize) -> String {
        format!("{}-h{number}", self.prefix)
    }

    fn switch(&self) -> String {
        format!("{}-sw", self.prefix)
    }

    /// Namespace of the coordinator.
    pub fn coordinator(&self) -> String {
        format!("{}-ctl", self.prefix)
    }

    fn namespaces(&self) -> Vec<String> {
        let hosts = (0..self.hosts).map(|number| self.host(number));
        [self.switch(), self.coordinator()]
            .into_iter()
            .chain(hosts)
            .collect()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn cable(&self, links: &[HostLink]) {
        let switch = self.switch();
        for bridge in ["sw-mgmt", "sw-data"] {
            run(&format!("ip -n {switch} link add {bridge} type bridge"));
            run(&format!("ip -n {switch} link set {bridge} up"));
        }

        self.plug(
            &self.coordinator(),
            MANAGEMENT,
            "m-ctl",
            "sw-mgmt",
            "10.97.0.1",
        );
        for (number, link) in links.iter().enumerate() {
            let host = self.host(number);
            self.plug(
                &host,
                MANAGEMENT,
                &format!("m{number}"),
                "sw-mgmt",
                &management_address(number),
            );
            self.plug(
                &host,
                DATA,
                &format!("d{number}"),
                "sw-data",
                &data_address(number),
            );

            let [from, to] = link.shapers();
            run(&format!(
                "tc -n {host} qdisc add dev {DATA} root tbf {from}"
            ));
            run(&format!(
                "tc -n {switch} qdisc add dev d{number} root tbf {to}"
            ));

            if *link == HostLink::Narrow {
                run(&format!("ip -n {host} link set {DATA} mtu 1400"));
            }
        }
    }

    /// Replaces the cable of a host in the tested network.
    pub fn relink(&self, number: usize, link: HostLink) {
        let [from, to] = link.shapers();
        for (namespace, device, shaper) in [
            (self.host(number), DATA.to_owned(), from),
            (self.switch(), format!("d{number}"), to),
        ] {
            run(&format!(
                "tc -n {namespace} qdisc replace dev {device} root tbf {shaper}"
            ));
        }
    }

    /// Divides the hosts into two racks, the first with the first `size` hosts, joined by an uplink
    /// of 1 Gbit/s that carries one pair at a time.
    pub fn divide(&mut self, size: usize) {
        let switch = self.switch();
        run(&format!("ip -n {switch} link add sw-rack type bridge"));
        run(&format!("ip -n {switch} link set sw-rack up"));
        run(&format!(
            "ip -n {switch} link add uplink0 type veth peer name uplink1"
        ));

        for (port, bridge) in [("uplink0", "sw-data"), ("uplink1", "sw-rack")] {
            run(&format!(
                "ip -n {switch} link set {port} up master {bridge}"
            ));
            let [shaper, _] = HostLink::Gigabit.shapers();
            run(&format!(
                "tc -n {switch} qdisc add dev {port} root tbf {shaper}"
            ));
        }

        for number in size..self.hosts {
            run(&format!("ip -n {switch} link set d{number} master sw-rack"));
        }

        self.rack_size = Some(size);
    }

    /// The management network becomes a path of the inventory, `mgmt`.
    pub fn add_path(&mut self) {
        self.has_two_paths = true;
    }

    /// Starts the original iperf3 as the server of a host, which is a server without an agent in
    /// the inventory.
    pub fn serve_stock(&mut self, number: usize) {
        let (address, port) = (data_address(number), SERVER_PORT.to_string());
        let words = ["-s", "-B", &address, "-p", &port, "--forceflush"];
        let server = Process::start(inside(&self.host(number), original().path(), &words));
        assert!(
            wait_until(TIMEOUT, || server.stdout().contains("listening")),
            "{server:?}"
        );
        self.servers.insert(number, server);
    }

    /// Ends that server; the inventory still has it.
    pub fn end_stock(&mut self, number: usize) {
        let Some(server) = self.servers.get_mut(&number) else {
            return;
        };
        server.signal(Signal::Terminate);
        assert!(wait_until(TIMEOUT, || server.has_ended()), "{server:?}");
    }

    /// Drops what exceeds 100 Mbit/s of what one host receives from another.
    pub fn limit_pair(&self, from: usize, to: usize) {
        let inside = format!("ip netns exec {}", self.host(to));
        let source = data_address(from);
        run(&format!("{inside} nft add table inet filter"));
        run(&format!(
            "{inside} nft add chain inet filter input {{ type filter hook input priority 0; }}"
        ));
        run(&format!(
            "{inside} nft add rule inet filter input ip saddr {source} limit rate over 12 \
             mbytes/second drop"
        ));
    }

    /// Sends what a host has for the tested network through its interface in the management
    /// network.
    pub fn misroute(&self, number: usize) {
        let (host, address) = (self.host(number), data_address(number));
        run(&format!(
            "ip -n {host} route replace 10.96.0.0/24 dev {MANAGEMENT} src {address}"
        ));
    }

    /// A cable between a host and a bridge.
    fn plug(&self, host: &str, device: &str, port: &str, bridge: &str, address: &str) {
        let switch = self.switch();
        run(&format!(
            "ip -n {host} link add {device} type veth peer name {port} netns {switch}"
        ));
        run(&format!(
            "ip -n {switch} link set {port} up master {bridge}"
        ));
        run(&format!("ip -n {host} addr add {address}/24 dev {device}"));
        run(&format!("ip -n {host} link set {device} up"));
        run(&format!("ip -n {host} link set lo up"));
    }

    /// The user's key, a key for each host, and the configuration of ssh(1).
    fn make_keys(&self) {
        let user_key = self.file("user");
        make_key(&user_key);
        fs::copy(self.file("user.pub"), self.file("authorized_keys")).expect("a key");

        let mut known = String::new();
        for number in 0..self.hosts {
            let key = self.file(&format!("host{number}"));
            make_key(&key);
            let public = fs::read_to_string(key.with_extension("pub")).expect("a key");
            known += &format!("[{}]:{SSH_PORT} {public}", management_address(number));
        }

        fs::write(self.file("known_hosts"), known).expect("written");
        let mut config = String::new();

        for number in 0..self.hosts {
            let address = management_address(number);
            config += &format!("Host h{number}\n  HostName {address}\n");
        }

        let user = std::env::var("USER").unwrap_or_else(|_| "root".to_owned());
        config += &format!(
            "Host *\n  User {user}\n  Port {SSH_PORT}\n  IdentityFile {}\n  IdentitiesOnly yes\n  \
             UserKnownHostsFile {}\n  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking \
             yes\n",
            user_key.display(),
            self.file("known_hosts").display()
        );
        fs::write(self.file("ssh_config"), config).expect("written");
    }

    fn start_sshd(&self, number: usize) -> Process {
        let program = ours().path();
        let folder = program.parent().expect("a folder").display();
        let state = self.file(&format!("state{number}"));
        fs::create_dir(&state).expect("a folder");

        let config = format!(
            "Port {SSH_PORT}\nListenAddress {}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile \
             none\nUsePAM no\nStrictModes no\n\
             PermitRootLogin yes\nPrintMotd no\nSetEnv PATH={folder}:/usr/bin:/bin:/usr/sbin:/sbin \
             XDG_STATE_HOME={state} XDG_CACHE_HOME={state}\n",
            management_address(number),
            self.file(&format!("host{number}")).display(),
            self.file("authorized_keys").display(),
            state = state.display(),
        );
        fs::write(self.sshd_config(number), config).expect("written");
        self.start_configured_sshd(number)
    }

    fn start_configured_sshd(&self, number: usize) -> Process {
        let file = self.sshd_config(number);
        Process::start(inside(
            &self.host(number),
            Path::new(SSHD),
            &["-D", "-e", "-f", path(&file)],
        ))
    }

    fn sshd_config(&self, number: usize) -> PathBuf {
        self.file(&format!("sshd{number}"))
    }

    fn wait_for_sshds(&self) {
        for (number, sshd) in self.sshds.iter().enumerate() {
            let is_ready = || sshd.stderr().contains("Server listening");
            assert!(wait_until(TIMEOUT, is_ready), "sshd of h{number}: {sshd:?}");
        }
    }

    /// Ends the sshd of a host, which is not reachable then.
    pub fn end_sshd(&mut self, number: usize) {
        let Some(sshd) = self.sshds.get_mut(number) else {
            return;
        };
        sshd.signal(Signal::Terminate);
        assert!(
            wait_until(TIMEOUT, || sshd.has_ended()),
            "sshd of h{number}"
        );
    }

    /// Starts the sshd of a host again, with these lines before those of the others
    /// (sshd_config(5): the first one counts).
    pub fn configure_sshd(&mut self, number: usize, lines: &str) {
        self.end_sshd(number);
        prepend(&self.sshd_config(number), lines);
        self.sshds[number] = self.start_configured_sshd(number);
        self.wait_for_sshds();
    }

    /// Log of the sshd of a host.
    pub fn sshd_log(&self, number: usize) -> String {
        self.sshds[number].stderr()
    }

    /// These lines come before those of the coordinator's configuration of ssh(1): the first one
    /// counts.
    pub fn configure_ssh(&self, lines: &str) {
        prepend(&self.ssh_config(), lines);
    }

    /// Writes the inventory of all hosts and returns its file.
    pub fn inventory(&self) -> PathBuf {
        let mut text = "[fleet]\nname = \"lab\"\n".to_owned();
        if self.rack_size.is_some() {
            text += "[racks]\nr0 = { crossing = 1 }\nr1 = { crossing = 1 }\n";
        }

        for number in 0..self.hosts {
            let address = data_address(number);
            if self.servers.contains_key(&number) {
                text += &format!(
                    "[[host]]\nname = \"h{number}\"\nserver = \"{address}:{SERVER_PORT}\"\n"
                );
                continue;
            }

            let second = format!(", {MANAGEMENT} = \"{}\"", management_address(number));
            let second = if self.has_two_paths {
                second
            } else {
                String::new()
            };
            text += &format!(
                "[[host]]\nname = \"h{number}\"\npaths = {{ {PATH} = \"{address}\"{second} }}\n"
            );
            text += &self.rack_size.map_or_else(String::new, |size| {
                format!("rack = \"r{}\"\n", number / size)
            });
        }

        let file = self.file("fleet.toml");
        fs::write(&file, text).expect("written");
        file
    }

    /// A command of `linerate fleet` at the coordinator, with the inventory of all hosts behind it.
    pub fn command(&self, words: &[&str]) -> Command {
        let (inventory, config) = (self.inventory(), self.ssh_config());
        let hosts = ["-i", path(&inventory), "--ssh-config", path(&config)];
        self.linerate(&[&["fleet"], words, &hosts[..]].concat())
    }

    /// A command of `linerate` at the coordinator.
    pub fn linerate(&self, words: &[&str]) -> Command {
        let mut command = inside(&self.coordinator(), ours().path(), words);
        // Cargo turns the history off for tests.
        command
            .env("XDG_STATE_HOME", self.folder.path())
            .env_remove("LINERATE_STORE");
        command
    }

    /// Configuration of ssh(1) that knows the hosts.
    pub fn ssh_config(&self) -> PathBuf {
        self.file("ssh_config")
    }

    /// The record of a run of the coordinator's history.
    #[track_caller]
    pub fn record(&self, name: &str) -> Value {
        Process::start(self.linerate(&["history", "show", name, "--json"]))
            .finish()
            .record()
    }

    /// The report of a run as JSON. Whole runs take a minute or two.
    #[track_caller]
    pub fn report(&self, words: &[&str]) -> Value {
        let run = Process::start(self.command(&[&["run"], words, &["--json", "-q"]].concat()));
        let finished = run.finish_within(Duration::from_secs(240));
        finished.expect_code(0);
        finished.json()
    }

    /// Command lines of all processes of the hosts but sshd itself.
    pub fn processes(&self) -> Vec<String> {
        let of_host = |number| {
            self.processes_of(number)
                .into_iter()
                .map(move |(_, line)| format!("h{number}: {line}"))
        };
        (0..self.hosts).flat_map(of_host).collect()
    }

    /// Ids and command lines of all processes of a host but sshd and its own server, in the order
    /// of their ids.
    pub fn processes_of(&self, number: usize) -> Vec<(u32, String)> {
        let output = Command::new("ip")
            .args(["netns", "pids", &self.host(number)])
            .output()
            .expect("ip");
        let pids = String::from_utf8_lossy(&output.stdout).into_owned();

        let of_pid = |pid: &str| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            let pid: u32 = pid.parse().expect("a number");
            let is_server = self
                .servers
                .get(&number)
                .is_some_and(|server| server.id() == pid);
            let is_other = !line.contains("sshd") && !line.trim().is_empty() && !is_server;

            is_other.then_some((pid, line))
        };
        let mut found: Vec<(u32, String)> = pids.split_whitespace().filter_map(of_pid).collect();
        found.sort_unstable();

        found
    }

    /// Bytes that a host has sent on the tested network.
    pub fn sent_bytes(&self, number: usize) -> u64 {
        let file = format!("/sys/class/net/{DATA}/statistics/tx_bytes");
        let output = inside(&self.host(number), Path::new("cat"), &[&file])
            .output()
            .expect("cat");
        String::from_utf8_lossy(&output.stdout)
            .trim()
            .parse()
            .expect("a number")
    }

    /// Listening sockets of all hosts but those of sshd and of servers without an agent.
    pub fn listeners(&self) -> Vec<String> {
        let of_host = |number| {
            let output = inside(&self.host(number), Path::new("ss"), &["-Hltn"])
                .output()
                .expect("ss");
            let lines = String::from_utf8_lossy(&output.stdout).into_owned();
            let server = self.servers.get(&number).map(|_| SERVER_PORT);
            let is_known = |line: &&str| {
                std::iter::once(SSH_PORT)
                    .chain(server)
                    .any(|port| line.contains(&format!(":{port} ")))
            };
            let of_tests = lines.lines().filter(|line| !is_known(line));

            of_tests
                .map(|line| format!("h{number}: {line}"))
                .collect::<Vec<_>>()
        };
        (0..self.hosts).flat_map(of_host).collect()
    }

    /// No process and no listener of a run is left on any host, soon.
    #[track_caller]
    pub fn expect_nothing_left(&self, within: Duration) {
        let left = || [self.processes(), self.listeners()].concat();
        assert!(wait_until(within, || left().is_empty()), "{:?}", left());
    }

    /// Takes the cables of a host out of the switch, without a message to anyone: that of the
    /// management network, and that of the tested one as well if `are_both`.
    pub fn unplug(&self, number: usize, are_both: bool) {
        let ports = [format!("m{number}"), format!("d{number}")];
        for port in ports.iter().take(1 + usize::from(are_both)) {
            run(&format!("ip -n {} link set {port} nomaster", self.switch()));
        }
    }
}

impl Drop for FleetLab {
    fn drop(&mut self) {
        self.sshds.clear();
        self.servers.clear();

        for name in self.namespaces() {
            // What cannot be removed was never made.
            let _ = try_run(&format!("ip netns del {name}"));
        }
    }
}

const SSHD: &str = "/usr/sbin/sshd";

fn management_address(number: usize) -> String {
    format!("10.97.0.{}", number + 10)
}

fn data_address(number: usize) -> String {
    format!("10.96.0.{}", number + 10)
}

fn make_key(file: &Path) {
    let status = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(file)
        .status();
    assert!(status.is_ok_and(|status| status.success()), "ssh-keygen");
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).expect("a mode");
}

fn prepend(file: &Path, lines: &str) {
    let rest = fs::read_to_string(file).expect("a configuration");
    fs::write(file, lines.to_owned() + &rest).expect("written");
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}
