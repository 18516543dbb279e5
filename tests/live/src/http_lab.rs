//! `linerate http lab` and its relatives against a server of ours, and their result as data.

use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::http_control::HttpControl;
use crate::namespaces::{Net, SERVER};
use crate::net::{free_http_port, free_port};
use crate::nginx::Nginx;
use crate::process::{Finished, Process};
use crate::program::ours;

/// A server with its control channel, and a folder for the plans, runs and reports of one test.
pub struct HttpLab {
    /// The server.
    pub server: Process,
    /// Where it serves, without a path.
    pub url: String,
    /// Its control channel.
    pub control: Option<HttpControl>,
    /// Command that starts the client: nothing, or a program that starts others.
    client: Vec<String>,
    folder: TempDir,
    /// The server under test where it is not [`Self::server`], which watches it then.
    nginx: Option<Nginx>,
}

impl HttpLab {
    /// A server on loopback.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_by(&[], &[], "127.0.0.1", arguments)
    }

    /// A server in one namespace, for clients in the other.
    pub fn in_net(net: &Net, arguments: &[&str]) -> Self {
        let [client, server] = [&net.a, &net.b].map(|name| ["ip", "netns", "exec", name.as_str()]);
        Self::start_by(&client, &server, SERVER, arguments)
    }

    /// The pair of commands in the help of `linerate http lab`: a server with a token, and no
    /// server of TCP tests.
    pub fn of_the_help(net: &Net) -> Self {
        let [client, server] = [&net.a, &net.b].map(|name| ["ip", "netns", "exec", name.as_str()]);
        let address = format!("{SERVER}:{}", free_http_port());
        let words = ["serve", "--bind", &address];
        Self::launch(
            &client,
            &server,
            &words,
            format!("http://{address}"),
            Some(format!("{SERVER}:0")),
        )
    }

    /// The same with the words that client and server are started by.
    pub fn start_by(client: &[&str], server: &[&str], host: &str, arguments: &[&str]) -> Self {
        let address = format!("{host}:{}", free_http_port());
        let tcp = free_port().to_string();
        let words = [&["serve", "--bind", &address, "--tcp", &tcp], arguments].concat();
        let control = (!arguments.contains(&"--no-control")).then(|| format!("{host}:0"));
        Self::launch(client, server, &words, format!("http://{address}"), control)
    }

    /// nginx, which serves one path (1 KiB), and an agent beside it. `words` are those of its
    /// `listen` line, such as `ssl http2`; the client is started by `client`.
    pub fn beside_nginx(words: &str, client: &[&str]) -> Self {
        let nginx = Nginx::start(words, KEPT_OPEN);
        let lab = Self::beside(nginx.address, nginx.url("/1k"), client);
        Self {
            nginx: Some(nginx),
            ..lab
        }
    }

    /// An agent beside a server, on the next port, where clients look for a control channel.
    pub fn beside(server: SocketAddr, url: String, client: &[&str]) -> Self {
        let (host, port) = (server.ip(), server.port());
        let words = ["agent", "--listen-port", &port.to_string()];
        Self::launch(
            client,
            &[],
            &words,
            url,
            Some(format!("{host}:{}", port + 1)),
        )
    }

    /// Starts the server or agent, ready for clients; `control` is where its control channel
    /// listens.
    fn launch(
        client: &[&str],
        server: &[&str],
        words: &[&str],
        url: String,
        control: Option<String>,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = command(server, &folder);
        command.arg("http").args(words);

        if let Some(address) = &control {
            // The server makes the token.
            command
                .args(["--control", address, "--token-file"])
                .arg(folder.path().join("token"));
        }

        let server = Process::start(command);
        if words.contains(&"serve") {
            server.wait_for_stdout("Listening on", 1);
        }

        let control = control.map(|_| HttpControl::of(&server));
        let client = client.iter().map(|word| (*word).to_owned()).collect();
        Self {
            server,
            url,
            control,
            client,
            folder,
            nginx: None,
        }
    }

    /// SHA-256 of the server's certificate.
    pub fn pin(&self) -> String {
        self.nginx
            .as_ref()
            .expect("there is an nginx")
            .certificate()
            .fingerprint()
    }

    /// The path of a file or folder of this test.
    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Writes a plan with short cells: what `text` says comes behind the defaults, which it may
    /// begin with.
    pub fn plan(&self, name: &str, text: &str) -> String {
        self.plan_of_usual_length(name, &format!("{SHORT}{text}"))
    }

    /// Writes a plan file of a matrix with 1 KiB and these numbers of connections.
    pub fn plan_of_one_cell(&self, name: &str, connections: &str) -> String {
        self.plan(
            name,
            &format!(
                "[phase2]\npayloads = [\"1k\"]\nconnections = [{connections}]\nrefine_knee = \
                 false\n"
            ),
        )
    }

    /// Writes a plan file of this text, whose cells take as long as those of a user.
    pub fn plan_of_usual_length(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).expect("a file");
        path
    }

    /// The files of the runs in a directory of runs, with what they hold, in the order of their
    /// names.
    pub fn runs(&self, directory: &str) -> Vec<(String, Value)> {
        let entries = fs::read_dir(PathBuf::from(self.path(directory)).join("cells"));
        let paths = entries
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path());
        let mut runs: Vec<(String, Value)> = paths
            .filter(|path| path.extension().is_some_and(|kind| kind == "json"))
            .map(|path| {
                let text = fs::read_to_string(&path).expect("a file");
                let name = path
                    .file_stem()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                (name, serde_json::from_str(&text).expect("JSON"))
            })
            .collect();
        runs.sort_by(|a, b| a.0.cmp(&b.0));

        runs
    }

    /// Starts `linerate http` with these words, and what it needs for the control channel, if there
    /// is one.
    pub fn client(&self, words: &[&str]) -> Process {
        let Some(HttpControl { address }) = self.control else {
            return self.client_without(words);
        };
        let access = [
            "--control",
            &address.to_string(),
            "--token-file",
            &self.path("token"),
        ];
        self.client_without(&[words, &access].concat())
    }

    /// Starts `linerate http` with these words alone.
    pub fn client_without(&self, words: &[&str]) -> Process {
        let prefix: Vec<&str> = self.client.iter().map(String::as_str).collect();
        let mut command = command(&prefix, &self.folder);
        command.arg("http").args(words);
        Process::start(command)
    }

    /// Runs `linerate http` with these words to its end.
    #[track_caller]
    pub fn run(&self, words: &[&str]) -> Finished {
        self.client(words).finish_within(LAB_TIMEOUT)
    }

    /// Runs an experiment of this plan to its end, in a directory of its own, and reads what it
    /// found.
    #[track_caller]
    pub fn study(&self, words: &[&str], plan: &str) -> HttpStudy {
        self.study_of(words, &self.url, plan)
    }

    /// The same with another URL.
    #[track_caller]
    pub fn study_of(&self, words: &[&str], url: &str, plan: &str) -> HttpStudy {
        let directory = self.new_directory();
        HttpStudy::of(self.run(&[words, &[url, plan, "--out", &directory, "--json"]].concat()))
    }

    /// The path of a directory that does not exist yet: a study resumes the one that a directory
    /// holds.
    fn new_directory(&self) -> String {
        let paths = (0_u32..).map(|number| self.path(&format!("runs{number}")));
        let free = paths.into_iter().find(|path| fs::metadata(path).is_err());
        free.unwrap_or_default()
    }
}

/// A program that is started by these words, or by itself without any. Both ends of a test have one
/// state directory.
fn command(prefix: &[&str], state: &TempDir) -> Command {
    let mut command = match prefix {
        [] => Command::new(ours().path()),
        [program, words @ ..] => {
            let mut command = Command::new(program);
            command.args(words).arg(ours().path());
            command
        }
    };
    command
        .env("LC_ALL", "C")
        .env("TZ", "UTC")
        .env("XDG_STATE_HOME", state.path());
    command
}

/// Result of an experiment.
pub struct HttpStudy {
    /// End of the program.
    pub finished: Finished,
    /// The whole of it.
    pub json: Value,
}

impl HttpStudy {
    /// Reads the object that `--json` writes.
    #[track_caller]
    pub fn of(finished: Finished) -> Self {
        let json: Value = serde_json::from_str(&finished.stdout)
            .unwrap_or_else(|error| panic!("no result ({error}): {finished:?}"));
        assert_eq!(json["schema"], "linerate.http/1", "{finished:?}");
        Self { finished, json }
    }

    /// Entries of one of its lists.
    #[track_caller]
    pub fn list(&self, name: &str) -> &Vec<Value> {
        self.json[name]
            .as_array()
            .unwrap_or_else(|| panic!("no {name} in {self:?}"))
    }

    /// The cell of a phase with a payload and a number of connections.
    #[track_caller]
    pub fn cell(&self, phase: &str, payload_bytes: u64, connections: u64) -> &Value {
        let is_wanted = |cell: &&Value| {
            let key = &cell["key"];
            key["phase"] == phase
                && key["payload_bytes"] == payload_bytes
                && key["connections"] == connections
        };
        let cell = self.list("cells").iter().find(is_wanted);
        cell.unwrap_or_else(|| panic!("no {phase} {payload_bytes} c{connections} in {self:?}"))
    }

    /// The main verdict on a cell.
    pub fn verdict(cell: &Value) -> &str {
        cell["verdict"]["primary"]["class"]
            .as_str()
            .unwrap_or_default()
    }

    /// Evidence of the main verdict on a cell.
    pub fn evidence(cell: &Value) -> String {
        let texts = cell["verdict"]["primary"]["evidence"]
            .as_array()
            .into_iter()
            .flatten();
        texts
            .filter_map(|evidence| evidence["text"].as_str())
            .collect::<Vec<_>>()
            .join("; ")
    }
}

impl fmt::Debug for HttpStudy {
    /// Without what is measured second by second.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "exit code {:?}", self.finished.code())?;
        for cell in self.json["cells"].as_array().into_iter().flatten() {
            let (key, median) = (&cell["key"], &cell["median"]);
            writeln!(
                f,
                "{key}: {:?}, {}\n  {median}",
                Self::verdict(cell),
                Self::evidence(cell)
            )?;

            for run in cell["runs"].as_array().into_iter().flatten() {
                writeln!(
                    f,
                    "  {} {} {}",
                    run["state"], run["flags"], run["load"]["errors"]
                )?;
            }
        }

        writeln!(
            f,
            "notes {}\nidle {}",
            self.json["notes"], self.json["idle"]
        )?;
        write!(f, "{}", self.finished.stderr)
    }
}

/// nginx closes a connection after a thousand requests otherwise.
const KEPT_OPEN: &str = "keepalive_requests 10000000;";
/// Longer than any experiment of a test takes on a busy machine.
const LAB_TIMEOUT: Duration = Duration::from_secs(900);
/// Defaults of every plan: as little time as an answer needs.
const SHORT: &str = "version = 1\n[defaults]\nwarmup = \"200ms\"\nduration = \"1s\"\ncooldown = \
                     \"0s\"\nrepeats = 1\n\
                     ramp = \"max\"\n";

/// Starts a program that may have 256 descriptors and cannot have more, although it is root's.
pub const FEW_DESCRIPTORS: &str = "ulimit -n 256; setpriv --bounding-set=-sys_resource true \
                                   2>/dev/null && exec setpriv --bounding-set=-sys_resource \
                                   \"$@\"; exec \"$@\"";
