//! Goal: a client with a range of ports takes the first server that is free, and says which; where
//! all are busy, so does its error. Method: servers of both programs on neighbouring ports, of which
//! one has a test that lasts.

use std::path::Path;
use std::process::Command;

use linerate_interop::{
    Finished, Process, Program, Server, Service, each_case, free_port_run, listens, original, ours,
    words,
};

/// Servers at the second and the third of three ports; nothing listens at the first.
struct Neighbours {
    first: u16,
    busy: Server,
    free: Server,
    /// The test of the busy server.
    test: Process,
    state: tempfile::TempDir,
}

impl Neighbours {
    fn start(program: &Program, options: &[&str]) -> Self {
        let first = free_port_run(3);
        let busy = Server::start_at(program, first + 1, options);
        let free = Server::start_at(program, first + 2, options);
        let test = busy.client(original(), "127.0.0.1", &ENDLESS);
        test.wait_for_stdout("/sec", 1);
        let state = tempfile::tempdir().expect("a temporary folder");
        Self {
            first,
            busy,
            free,
            test,
            state,
        }
    }

    fn range(&self, count: u16) -> String {
        format!("{}-{}", self.first, self.first + count - 1)
    }

    /// A command of ours against the first `count` ports.
    fn run(&self, command: &str, count: u16, more: &str) -> Finished {
        let range = self.range(count);
        let line = words(command)
            .into_iter()
            .chain(["127.0.0.1", "-p", &range]);
        self.ours(line.chain(words(more)))
    }

    fn ours<'a>(&self, words: impl Iterator<Item = &'a str>) -> Finished {
        run_ours(self.state.path(), words)
    }

    fn remark(&self) -> String {
        let port = self.free.port;
        format!("port {port} of {} is the first free one", self.range(3))
    }
}

fn run_ours<'a>(state: &Path, words: impl Iterator<Item = &'a str>) -> Finished {
    let mut command = Command::new(ours().path());
    command.args(words);
    command.env("XDG_STATE_HOME", state);
    command.env("XDG_CONFIG_HOME", state);
    Process::start(command).finish()
}

const ENDLESS: [&str; 7] = ["-t", "0", "-i", "0.1", "-b", "1M", "--forceflush"];

/// Servers with one test at a time.
fn each_server(check: impl Fn(&Neighbours) + Sync) {
    let servers: [(&Program, &[&str]); 2] =
        [(original(), &[]), (ours(), &["--lr-admit", "exclusive"])];
    each_case(&servers, |(program, options)| {
        let neighbours = Neighbours::start(program, options);
        check(&neighbours);
        drop(neighbours.test);
        drop(neighbours.busy);
    });
}

#[test]
fn iperf3_client_takes_the_first_free_port_and_names_it() {
    each_server(|neighbours| {
        let found = neighbours.run("iperf3 -c", 3, "-n 1M -J");
        found.expect_code(0).expect_stderr(&neighbours.remark());
        let report = found.json();
        let connected = &report["start"]["connecting_to"]["port"];
        assert_eq!(*connected, neighbours.free.port, "{found:?}");

        let taken = neighbours.run("iperf3 -c", 2, "-n 1M");
        taken.expect_code(1).expect_stderr(&format!(
            "error - ports {}: the server is busy running a test. try again later",
            neighbours.range(2)
        ));
        // A port by itself is no range, and one that is free at once needs no remark.
        let alone = neighbours.free.run(ours(), &["-n", "1M"]);
        alone.expect_clean();
    });
}

#[test]
fn test_takes_the_first_free_port_and_names_it() {
    each_server(|neighbours| {
        let found = neighbours.run("test", 3, "--only down --time 1 --json");
        found.expect_code(0).expect_stderr(&neighbours.remark());
        assert_eq!(
            found.json()["target"]["port"],
            neighbours.free.port,
            "{found:?}"
        );

        let taken = neighbours.run("test", 2, "--only down");
        taken.expect_code(4).expect_stderr("busy");
        taken.expect_stderr(&format!("ports {}: ", neighbours.range(2)));
    });
}

#[test]
fn native_server_that_is_busy_is_passed_over() {
    let first = free_port_run(2);
    let servers = [first, first + 1].map(|port| {
        let program = Command::new(ours().path());
        let mut service = Service::spawn(program, port, &["--admit", "exclusive"]);
        service.process.wait_until_up(|| listens(port));
        service
    });
    let test = servers[0].client(original(), &ENDLESS);
    test.wait_for_stdout("/sec", 1);

    let state = tempfile::tempdir().expect("a temporary folder");
    let run = |ports: &str| {
        let line = format!("test 127.0.0.1 -p {ports} --only idle --json");
        run_ours(state.path(), words(&line).into_iter())
    };
    let range = format!("{first}-{}", first + 1);
    let found = run(&range);
    found.expect_code(0).expect_stderr("is the first free one");
    let report = found.json();
    assert_eq!(report["target"]["port"], first + 1, "{found:?}");
    assert_eq!(report["target"]["dialect"], "native", "{found:?}");

    // A port by itself is refused as before.
    let alone = run(&first.to_string());
    alone.expect_code(4).expect_stderr("busy");
    assert!(!alone.stderr.contains("ports"), "{alone:?}");
}

#[test]
fn sweep_keeps_the_first_free_port() {
    each_server(|neighbours| {
        let plan = "--over streams=1,2 -t 1 -O 0 --repetitions 1 --budget 15s --json";
        let found = neighbours.run("sweep", 3, plan);
        found.expect_code(0).expect_stderr(&neighbours.remark());
        let record = found.json();
        let port = &record["body"]["sweep"]["plan"]["port"];
        assert_eq!(*port, neighbours.free.port, "{found:?}");
    });
}

#[test]
fn servers_have_names_in_a_file() {
    let neighbours = Neighbours::start(original(), &[]);
    let directory = neighbours.state.path().join("linerate");
    std::fs::create_dir(&directory).expect("a folder");
    let write = |more: &str| {
        let range = neighbours.range(3);
        let text = format!("[lab]\naddress = '127.0.0.1'\nport = '{range}'\n{more}");
        std::fs::write(directory.join("servers.toml"), text).expect("a file");
        neighbours.ours(words("test lab --only down --time 1").into_iter())
    };

    write("").expect_code(0).expect_stderr(&neighbours.remark());
    write("protocol = 'native'")
        .expect_code(4)
        .expect_stderr("--native");
    write("adress = 'x'")
        .expect_code(2)
        .expect_stderr("servers.toml")
        .expect_stderr("adress");
}
