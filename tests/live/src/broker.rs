//! A nats-server of a test: a free port of loopback, and a file store in a folder that ends with
//! it.

use std::env;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for a broker that starts.
const START: Duration = Duration::from_secs(20);
/// Environment in which its runtime returns memory soon, as docs/fleet.md advises for thousands of
/// agents.
const MEMORY: [(&str, &str); 2] = [("GOMEMLIMIT", "90MiB"), ("GOGC", "10")];
/// Password of all users.
const PASSWORD: &str = "password";

/// A broker. Dropping it ends it.
pub struct Broker {
    program: PathBuf,
    folder: tempfile::TempDir,
    port: u16,
    process: Child,
}

/// Files of a broker, in the form of PEM.
#[derive(Debug)]
pub struct BrokerTls {
    /// Its certificate.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
    /// The authority that signs the certificates of clients.
    pub authority: PathBuf,
}

impl Broker {
    /// Starts a broker without users; `None`, with a note, where no nats-server is named by
    /// `NATS_SERVER_BIN` or in the path.
    pub fn start() -> Option<Self> {
        Self::with_users("")
    }

    /// Starts a broker that knows a coordinator and these agents of a site, with the permissions
    /// that docs/fleet.md has.
    pub fn with_permissions(site: &str, agents: &[&str]) -> Option<Self> {
        Self::with_users(&authorization(site, agents, |name| {
            format!("user: {name}, password: {PASSWORD}")
        }))
    }

    /// [`Self::with_permissions`] over TLS: clients are known by the common names of their
    /// certificates.
    pub fn with_certificates(site: &str, agents: &[&str], tls: &BrokerTls) -> Option<Self> {
        let BrokerTls {
            certificate,
            key,
            authority,
        } = tls;
        let tls = format!(
            "tls \
             {{\n  cert_file: {certificate:?}\n  key_file: {key:?}\n  ca_file: {authority:?}\n  verify_and_map: true\n}}\n"
        );
        Self::with_users(
            &(tls + &authorization(site, agents, |name| format!("user: \"CN={name}\""))),
        )
    }

    fn with_users(users: &str) -> Option<Self> {
        let program =
            PathBuf::from(env::var_os("NATS_SERVER_BIN").unwrap_or_else(|| "nats-server".into()));
        if Command::new(&program).arg("--version").output().is_err() {
            return skip();
        }

        let folder = tempfile::tempdir().expect("a folder");
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|free| free.local_addr())
            .expect("a port")
            .port();
        let store = folder.path().join("store");
        let config =
            format!("listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: {store:?} }}\n{users}");
        fs::write(folder.path().join("nats.conf"), config).expect("written");

        let process = spawn(&program, &folder);
        let broker = Self {
            program,
            folder,
            port,
            process,
        };
        broker.wait();

        Some(broker)
    }

    /// Address for clients without a name.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Address for clients that want TLS.
    pub fn tls_url(&self) -> String {
        format!("tls://127.0.0.1:{}", self.port)
    }

    /// Port of loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Address for a user.
    pub fn url_of(&self, user: &str) -> String {
        format!("nats://{user}:{PASSWORD}@127.0.0.1:{}", self.port)
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Ends the broker with SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill().expect("a broker");
        self.process.wait().expect("its end");
    }

    /// Starts the broker again, with its port and its store.
    pub fn restart(&mut self) {
        self.process = spawn(&self.program, &self.folder);
        self.wait();
    }

    fn wait(&self) {
        let until = Instant::now() + START;
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let log = || fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < until, "no broker: {}", log());
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // Fails only when it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The users of a site. `login` is how a broker knows the user of a name.
fn authorization(site: &str, agents: &[&str], login: impl Fn(&str) -> String) -> String {
    let coordinator = format!(
        "{{ {}, permissions: {{\n  publish: [\"lr.{site}.cmd.>\", \"$JS.API.>\", \"$KV.LR_{site}.>\", \"$KV.LR_{site}_LEASE.>\"]\n  subscribe: [\"lr.{site}.out.>\", \"_INBOX.>\"]\n}} }}\n",
        login("coordinator")
    );
    let agent = |host: &&str| {
        format!(
            "{{ {}, permissions: {{\n  publish: [\"lr.{site}.out.{host}.>\"]\n  subscribe: [\"lr.{site}.cmd.all\", \"lr.{site}.cmd.{host}\", \"_INBOX_{host}.>\"]\n}} }}\n",
            login(host)
        )
    };
    let users: String = std::iter::once(coordinator)
        .chain(agents.iter().map(agent))
        .collect();

    format!("authorization {{ users = [\n{users}] }}\n")
}

/// Nothing can be tested here.
/// The tests of the fleet include this file, so it has a report of its own.
#[allow(
    clippy::print_stderr,
    reason = "the reader of the test log must see what was not tested"
)]
fn skip() -> Option<Broker> {
    const REASON: &str =
        "no nats-server; .ci/nats-server prints the path of one for NATS_SERVER_BIN";
    assert!(
        env::var_os("LINERATE_NO_SKIPS").is_none(),
        "not tested: {REASON}"
    );
    eprintln!("skipped: {REASON}");
    None
}

fn spawn(program: &PathBuf, folder: &tempfile::TempDir) -> Child {
    let log = fs::File::options()
        .create(true)
        .append(true)
        .open(folder.path().join("log"))
        .expect("a log");
    let mut command = Command::new(program);
    command
        .arg("-c")
        .arg(folder.path().join("nats.conf"))
        .envs(MEMORY);

    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("a broker")
}
