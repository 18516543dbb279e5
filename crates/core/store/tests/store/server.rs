//! Tests of the store on a PostgreSQL server. The tests start one of their own, with its data in a
//! temporary directory.

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use linerate_store::{Filter, Place, Recorder, Store};
use postgres::{Client, NoTls};

use crate::records::run;

const PASSWORD: &str = "a b@c:d";

/// A server that ends with the test.
struct Cluster {
    directory: tempfile::TempDir,
    process: Child,
    port: u16,
}

impl Cluster {
    /// `None`, with a line for the reader of the log, where PostgreSQL is not installed.
    #[allow(
        clippy::print_stderr,
        reason = "the reader of the test log must see what was skipped"
    )]
    fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            eprintln!("skipped: PostgreSQL is not installed: apt-get install postgresql");
            return None;
        };
        let directory = tempfile::tempdir().expect("a directory");
        let user = user();
        if let Some((user, group)) = user {
            chown(directory.path(), Some(user), Some(group)).expect("root may");
        }

        let run = |program: &str| {
            let mut command = Command::new("setpriv");
            if let Some((user, group)) = user {
                command
                    .args([format!("--reuid={user}"), format!("--regid={group}")])
                    .arg("--clear-groups");
            }

            command
                .arg(programs.join(program))
                .current_dir(directory.path())
                .stdout(Stdio::null());
            command
        };
        certificate(directory.path(), user);
        fs::write(directory.path().join("password"), PASSWORD).expect("written");

        let mut initdb = run("initdb");
        initdb.args([
            "-D",
            "data",
            "-U",
            "me",
            "-A",
            "trust",
            "--auth-host=scram-sha-256",
            "--pwfile=password",
            "--no-sync",
        ]);
        assert!(initdb.status().expect("initdb runs").success());

        let port = free_port();
        let mut server = run("postgres");
        server
            .args(["-D", "data", "-p", &port.to_string(), "-k"])
            .arg(directory.path());

        for setting in [
            "listen_addresses=127.0.0.1",
            "log_connections=on",
            "fsync=off",
            "ssl=on",
            "ssl_cert_file=../cert",
            "ssl_key_file=../key",
        ] {
            server.args(["-c", setting]);
        }

        let process = server
            .stderr(fs::File::create(directory.path().join("log")).expect("a log"))
            .spawn();
        let cluster = Self {
            process: process.expect("started"),
            directory,
            port,
        };

        let deadline = Instant::now() + Duration::from_secs(30);
        while Client::connect(&cluster.url(), NoTls).is_err() {
            let log =
                || fs::read_to_string(cluster.directory.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "the server is not up: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }

        Some(cluster)
    }

    /// The socket, without a password.
    fn url(&self) -> String {
        let directory = self
            .directory
            .path()
            .display()
            .to_string()
            .replace('/', "%2F");
        format!(
            "postgresql:///postgres?host={directory}&port={}&user=me",
            self.port
        )
    }

    fn place(&self, url: &str) -> Place {
        Place::url(url, self.directory.path()).expect("a URL")
    }

    fn execute(&self, statement: &str) {
        Client::connect(&self.url(), NoTls)
            .and_then(|mut client| client.batch_execute(statement))
            .expect(statement);
    }

    /// Runs tests of this program on the server.
    fn runs(&self, arguments: &[&str], kills: &str) {
        let mut tests = Command::new(env::current_exe().expect("this program"));
        tests
            .args(arguments)
            .arg("--test-threads=2")
            .env("TEST_SERVER", self.url())
            .env("TEST_KILLS", kills);
        let output = tests.output().expect("runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && !text.contains("running 0 tests"),
            "{text}"
        );
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Unlike after SIGKILL, nothing of the server stays behind.
        let _ = Command::new("kill")
            .args(["-INT", &self.process.id().to_string()])
            .status();
        let _ = self.process.wait();
    }
}

/// The directory of initdb and postgres, which Debian does not have in `PATH`.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    versions
        .chain(env::split_paths(&path))
        .find(|directory| directory.join("initdb").exists())
}

/// The server refuses to run as root.
fn user() -> Option<(u32, u32)> {
    let is_root =
        fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let line = users
        .lines()
        .find(|line| line.starts_with("postgres:"))
        .filter(|_| is_root)?;
    let mut ids = line.split(':').skip(2).map_while(|id| id.parse().ok());

    Some((ids.next()?, ids.next()?))
}

/// A certificate of `db.test`, which signs itself.
fn certificate(directory: &Path, user: Option<(u32, u32)>) {
    let mut openssl = Command::new("openssl");
    openssl.args(
        "req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -days 2 -subj /CN=db.test"
            .split(' '),
    );
    openssl
        .args([
            "-addext",
            "subjectAltName=DNS:db.test",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ])
        .current_dir(directory)
        .stderr(Stdio::null());
    assert!(openssl.status().expect("openssl runs").success());

    if let Some((user, group)) = user {
        chown(directory.join("key"), Some(user), Some(group)).expect("root may");
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|socket| socket.local_addr())
        .expect("a port")
        .port()
}

#[test]
fn a_server_keeps_runs_as_a_file_does() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    cluster.runs(&["runs::", "--skip", "files_are_readable"], "0");
    cluster.runs(&["damage::prune_removes"], "0");
    cluster.runs(&["processes::"], "5");
}

#[test]
fn remote_servers_are_reached_over_tls_with_the_password() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let (port, directory) = (cluster.port, cluster.directory.path());

    let child = |url: String, variables: &[(&str, &str)]| {
        let mut child = Command::new(env::current_exe().expect("this program"));
        child
            .args([
                "server::opens_its_place",
                "--exact",
                "--ignored",
                "--nocapture",
            ])
            .env_remove("PGPASSWORD");
        child
            .env("TEST_STORE", url)
            .env("TEST_STATE", directory)
            .envs(variables.iter().copied());

        let output = child.output().expect("runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let certificate = directory.join("cert").display().to_string();
    let (trusted, password) = (("SSL_CERT_FILE", &*certificate), ("PGPASSWORD", PASSWORD));
    let remote =
        |user: &str| format!("postgresql://{user}db.test:{port}/postgres?hostaddr=127.0.0.1");
    let opened = child(remote("me@"), &[trusted, password]);
    assert!(opened.contains("opened with TLS"), "{opened}");

    let opened = child(remote("me:a%20b%40c%3Ad@"), &[trusted]);
    assert!(opened.contains("opened with TLS"), "{opened}");
    let refused = child(remote("me@"), &[password]);
    assert!(
        refused.contains("refused") && refused.contains("certificate"),
        "{refused}"
    );

    let refused = child(remote("me:secret-word@"), &[trusted]);
    assert!(
        refused.contains("refused") && refused.contains("password authentication failed"),
        "{refused}"
    );
    assert!(!refused.contains("secret-word"), "{refused}");

    let opened = child(
        format!("postgresql://me@127.0.0.1:{port}/postgres"),
        &[password],
    );
    assert!(opened.contains("opened without TLS"), "{opened}");
}

#[allow(
    clippy::print_stdout,
    reason = "the process that started this one reads it"
)]
#[test]
#[ignore = "a process of another test"]
fn opens_its_place() {
    match Store::open(&crate::places::given()) {
        Ok(_) => {
            let directory = PathBuf::from(env::var_os("TEST_STATE").expect("set"));
            let log = fs::read_to_string(directory.join("log")).expect("the log of the server");
            let is_tls = log
                .lines()
                .rfind(|line| line.contains("connection authorized"))
                .expect("logged")
                .contains("SSL enabled");
            println!("opened {} TLS", if is_tls { "with" } else { "without" });
        }
        Err(error) => println!("refused: {error}"),
    }
}

#[test]
fn a_record_waits_in_the_spool_while_the_server_is_away_or_locked() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let nowhere = cluster.place("postgresql://me:secret-word@127.0.0.1:1/postgres");
    let recorder = Recorder::new(nowhere);
    recorder.finish(run(1, 1));

    let recorded = recorder.close();
    assert_eq!(
        (recorded.stored, recorded.spooled, recorded.lost),
        (0, 1, 0),
        "{recorded:?}"
    );
    let message = recorded.message().expect("a message");
    assert!(
        message.contains("postgresql://127.0.0.1:1/postgres") && !message.contains("secret-word"),
        "{message}"
    );

    let place = cluster.place(&cluster.url());
    drop(Store::open(&place).expect("a new store"));
    let mut other = Client::connect(&cluster.url(), NoTls).expect("a server");
    let lock = u32::from_be_bytes(*b"lrun");
    other
        .batch_execute(&format!("BEGIN; SELECT pg_advisory_xact_lock({lock})"))
        .expect("locked");

    let recorder = Recorder::new(place.clone());
    recorder.finish(run(5, 1));
    recorder.finish(run(6, 1));

    let recorded = recorder.close();
    assert_eq!(
        (recorded.stored, recorded.spooled, recorded.lost),
        (0, 2, 0),
        "{recorded:?}"
    );
    other.batch_execute("COMMIT").expect("unlocked");
    assert_eq!(
        Store::open(&place)
            .expect("open")
            .list(&Filter::default())
            .expect("a list")
            .len(),
        2
    );
}

#[test]
fn a_recorder_reaches_a_server_again_that_ended_its_connection() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let place = cluster.place(&cluster.url());
    let recorder = Recorder::new(place.clone());
    recorder.finish(run(1, 1));
    crate::processes::until(|| recorder.recorded().stored == 1);
    cluster.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = \
         'linerate'",
    );
    recorder.finish(run(2, 1));
    recorder.finish(run(3, 1));

    let recorded = recorder.close();
    assert_eq!(
        (recorded.stored, recorded.spooled, recorded.lost),
        (3, 0, 0),
        "{recorded:?}"
    );
    assert_eq!(
        Store::open(&place)
            .expect("open")
            .list(&Filter::default())
            .expect("a list")
            .len(),
        3
    );
}

#[test]
fn tables_of_another_program_or_version_are_refused_untouched() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let place = cluster.place(&cluster.url());
    assert!(
        Store::open_existing(&place)
            .expect_err("nothing yet")
            .to_string()
            .contains("no runs are recorded")
    );
    drop(Store::open(&place).expect("a new store"));

    for (change, reason) in [
        (
            "UPDATE linerate.meta SET value = '99' WHERE key = 'schema'",
            "schema 99",
        ),
        ("DELETE FROM linerate.meta", "another program"),
    ] {
        cluster.execute(change);
        for refused in [Store::open(&place), Store::open_existing(&place)] {
            let text = refused.expect_err(reason).to_string();
            assert!(text.contains(reason), "{text}");
        }
    }
}

#[test]
#[ignore = "takes minutes"]
fn timed_lists_of_a_hundred_thousand_runs_on_a_server() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    crate::scale::fill_and_list(
        &cluster.place(&cluster.url()),
        Duration::from_millis(300),
        || {},
    );
}
