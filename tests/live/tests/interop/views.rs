//! Views of what runs: on a terminal, which tmux is here, and as a page.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use linerate_interop::namespaces::{DEVICE, Net, inside, run};
use linerate_interop::{
    HttpLab, Process, TIMEOUT, free_port, linerate, original, ours, skip, wait_for, wait_until,
};
use tempfile::TempDir;

/// A terminal of tmux with a shell, on a server of its own.
struct Terminal {
    socket: PathBuf,
    directory: TempDir,
}

impl Terminal {
    /// `None` where tmux is not installed.
    fn open(columns: u16, rows: u16) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        let terminal = Self {
            socket: directory.path().join("tmux"),
            directory,
        };
        let size = [columns.to_string(), rows.to_string()];

        Command::new("tmux").arg("-V").output().ok()?;
        let words = [
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &size[0],
            "-y",
            &size[1],
            "env",
            "-i",
            "PATH=/usr/bin:/bin",
        ];
        let words = [
            &words[..],
            &["TERM=screen", "LC_ALL=C.UTF-8", "LINERATE_STORE=off", "sh"],
        ]
        .concat();
        let output = terminal.tmux(&words);
        assert!(output.status.success(), "{output:?}");

        Some(terminal)
    }

    fn tmux(&self, words: &[&str]) -> Output {
        Command::new("tmux")
            .arg("-S")
            .arg(&self.socket)
            .args(words)
            .output()
            .expect("tmux runs")
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.tmux(&["capture-pane", "-p", "-J"]).stdout).into_owned()
    }

    fn wait_for(&self, what: &str, is_shown: impl Fn(&str) -> bool) {
        assert!(
            wait_until(TIMEOUT, || is_shown(&self.shown())),
            "{what}: {}",
            self.shown()
        );
    }

    fn keys(&self, keys: &str) {
        self.tmux(&["send-keys", "-l", keys]);
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs a command with its process id and the modes of the terminal before in files.
    fn run(&self, command: &str) {
        let [before, pid] = ["before", "pid"].map(|name| self.file(name).display().to_string());
        self.type_command(&format!(
            "stty -a > {before}; sh -c 'echo $$ > {pid}; exec {command}'"
        ));
    }

    /// Types a command, which puts its exit code and the modes of the terminal after it into files.
    fn type_command(&self, command: &str) {
        let [after, code] = ["after", "code"].map(|name| self.file(name).display().to_string());
        self.keys(&format!(
            "{command}; echo $? > {code}; stty -a > {after}.new; mv {after}.new {after}\n"
        ));
    }

    fn signal(&self, signal: &str) {
        let pid = fs::read_to_string(self.file("pid")).expect("it runs");
        let output = Command::new("kill")
            .args([signal, pid.trim()])
            .output()
            .expect("kill runs");
        assert!(output.status.success(), "{output:?}");
    }

    /// Waits for the end; the terminal is as before, and the exit code is this one.
    fn expect_end(&self, code: &str) {
        let read = |name: &str| fs::read_to_string(self.file(name)).ok();
        let after = wait_for(TIMEOUT, || read("after"));
        assert!(after.is_some(), "no end: {}", self.shown());
        assert_eq!(after, read("before"));
        assert_eq!(
            read("code").as_deref().map(str::trim),
            Some(code),
            "{}",
            self.shown()
        );
    }

    /// The modes of the terminal now.
    fn modes(&self) -> String {
        let tty = self.tmux(&["display-message", "-p", "#{pane_tty}"]).stdout;
        let tty = String::from_utf8_lossy(&tty).trim().to_owned();
        let output = Command::new("stty")
            .args(["-a", "-F", &tty])
            .output()
            .expect("stty runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

fn program() -> String {
    ours().path().display().to_string()
}

fn stock_client(port: u16, seconds: &str) -> Process {
    Process::start(original().command([
        "-c",
        "127.0.0.1",
        "-p",
        &port.to_string(),
        "-t",
        seconds,
        "-b",
        "10M",
    ]))
}

#[test]
fn a_server_shows_its_tests_and_leaves_the_terminal_as_it_was() {
    for ending in ["q", "-TERM", "-INT"] {
        let Some(terminal) = Terminal::open(80, 24) else {
            return skip("tmux is not installed");
        };
        let port = free_port();
        terminal.run(&format!("{} serve --tui -b 127.0.0.1 -p {port}", program()));
        terminal.wait_for("an idle server", |text| text.contains("no test is running"));

        if ending == "q" {
            let client = stock_client(port, "60");
            terminal.wait_for("a row", |text| {
                text.contains("127.0.0.1:") && text.contains("TCP") && text.contains("/60")
            });
            terminal.keys("?");
            terminal.wait_for("help", |text| text.contains("Ctrl-Z"));
            terminal.keys("?p");
            terminal.wait_for("a paused picture", |text| {
                text.contains("PAUSED") && text.contains("TCP")
            });
            terminal.keys("p");
            terminal.tmux(&["resize-window", "-x", "40", "-y", "10"]);

            let is_small = |text: &str| {
                text.contains("linerate serve")
                    && !text.contains("PROTO")
                    && text.contains("CLIENT")
            };
            terminal.wait_for("a small picture", is_small);
            terminal.tmux(&["resize-window", "-x", "80", "-y", "24"]);
            terminal.wait_for("a large picture", |text| text.contains("PROTO"));
            terminal.keys("q");
            client.finish().expect_code(1);
        } else {
            terminal.signal(ending);
        }

        terminal.expect_end("0");
        // The log, which was held back.
        terminal.wait_for("the log", |text| text.contains("stopping: "));
    }
}

#[test]
fn a_stopped_view_gives_the_terminal_back_and_takes_it_again() {
    let Some(terminal) = Terminal::open(80, 24) else {
        return skip("tmux is not installed");
    };
    let before = terminal.modes();
    terminal.run(&format!(
        "{} serve --tui -b 127.0.0.1 -p {}",
        program(),
        free_port()
    ));
    terminal.wait_for("an idle server", |text| text.contains("no test is running"));

    let during = terminal.modes();
    assert!(
        during.contains("-icanon") && during.contains("-echo "),
        "{during}"
    );
    terminal.tmux(&["send-keys", "C-z"]);

    // The shell continues, with the code of a process that was stopped.
    terminal.expect_end("147");
    assert_eq!(terminal.modes(), before);
    terminal.keys("clear\n");
    terminal.wait_for("an empty terminal", |text| !text.contains("stty"));
    fs::remove_file(terminal.file("after")).expect("it was there");
    terminal.type_command("fg");
    terminal.wait_for("the view again", |text| text.contains("no test is running"));
    assert!(
        wait_until(TIMEOUT, || terminal.modes() == during),
        "{}",
        terminal.modes()
    );
    terminal.keys("q");
    terminal.expect_end("0");
}

#[test]
fn a_view_leaves_the_report_of_a_client_as_it_is() {
    let Some(terminal) = Terminal::open(80, 24) else {
        return skip("tmux is not installed");
    };
    let server = linerate_interop::Service::start(&[]);
    let file = terminal.file("report");
    let program = ours().path().display();
    terminal.run(&format!(
        "{program} iperf3 -c 127.0.0.1 -p {} -t 6 -i 0.5 -b 10M -J --lr-tui > {}",
        server.port,
        file.display()
    ));

    // From the first interval to the end: what a view shows goes with it.
    terminal.wait_for("the test", |text| {
        text.contains("to server ") && text.contains("running")
    });
    terminal.expect_end("0");
    let report: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&file).expect("a report")).expect("one document");
    assert_eq!(
        report["intervals"].as_array().map(Vec::len),
        Some(12),
        "{report}"
    );
    assert!(report["end"].get("linerate").is_none(), "{report}");
}

#[test]
fn without_a_terminal_there_are_lines_and_one_remark() {
    let server = linerate_interop::Service::start(&[]);
    let line = format!("iperf3 -c 127.0.0.1 -p {} -n 64K", server.port);
    let plain = linerate(&line).finish();
    let viewed = linerate(&format!("{line} --lr-tui")).finish();

    plain.expect_clean();
    viewed.expect_code(0);
    assert_eq!(viewed.stderr.lines().count(), 1, "{viewed:?}");
    viewed.expect_stderr("no terminal view: standard error is no terminal");
    assert_eq!(
        plain.stdout.lines().count(),
        viewed.stdout.lines().count(),
        "{viewed:?}"
    );
}

#[test]
fn a_terminal_that_is_too_small_or_dumb_gets_lines() {
    let server = linerate_interop::Service::start(&[]);
    for (size, set, reason) in [
        ((39, 10), "", "39x10"),
        ((80, 24), "env TERM=dumb ", "(TERM)"),
    ] {
        let Some(terminal) = Terminal::open(size.0, size.1) else {
            return skip("tmux is not installed");
        };
        let report = terminal.file("report");
        let (program, port) = (program(), server.port);
        terminal.run(&format!(
            "{set}{program} iperf3 -c 127.0.0.1 -p {port} -n 64K --lr-tui > {}",
            report.display()
        ));
        terminal.expect_end("0");
        terminal.wait_for("the remark", |text| {
            text.contains("no terminal view") && text.contains(reason)
        });
        assert!(
            fs::read_to_string(&report)
                .expect("a report")
                .contains("sender")
        );
    }
}

#[test]
fn a_sweep_shows_its_settings() {
    let Some(terminal) = Terminal::open(80, 24) else {
        return skip("tmux is not installed");
    };
    let server = linerate_interop::Service::start(&[]);
    let report = terminal.file("report");

    terminal.run(&format!(
        "{} sweep 127.0.0.1 -p {} --over streams=1,2 -t 1 -O 0 --repetitions 1 --tui > {}",
        program(),
        server.port,
        report.display()
    ));
    terminal.wait_for("a run", |text| {
        text.contains("linerate sweep") && text.contains("SETTING")
    });
    terminal.keys("q");
    terminal.expect_end("130");
    assert!(Path::new(&report).exists());
}

#[test]
fn a_load_and_an_experiment_show_their_seconds_and_cells() {
    let Some(terminal) = Terminal::open(120, 24) else {
        return skip("tmux is not installed");
    };
    let lab = HttpLab::start(&[]);
    let control = lab.control.expect("a control channel").address;
    let access = format!(
        "--control {control} --token-file {} --tui",
        lab.path("token")
    );
    let (program, report) = (program(), terminal.file("report"));
    let load = format!(
        "http load {}/b/1k -c 4 --rate 100 -d 60s --warmup 0 {access}",
        lab.url
    );
    terminal.run(&format!("{program} {load} > {}", report.display()));

    let is_shown = |text: &str| {
        [
            "linerate http",
            "of 60",
            "responses/s",
            "4 open",
            "client: CPU",
            "server: CPU",
        ]
        .iter()
        .all(|word| text.contains(word))
    };
    terminal.wait_for("seconds of both hosts", is_shown);
    terminal.keys("q");
    terminal.expect_end("130");

    let text = fs::read_to_string(&report).expect("a report");
    assert!(
        text.contains("responses/s") && !text.contains('\u{1b}'),
        "{text}"
    );

    let terminal = Terminal::open(120, 24).expect("a second terminal");
    let plan = lab.plan(
        "plan.toml",
        "[phase2]\npayloads = [\"1k\", \"10k\"]\nconnections = [2, 4, 8]\nrefine_knee = false\n",
    );
    let (out, report) = (lab.path("runs"), terminal.file("report"));
    let matrix = format!(
        "http lab --phases 2 {} {plan} --out {out} --json {access}",
        lab.url
    );
    terminal.run(&format!("{program} {matrix} > {}", report.display()));
    terminal.wait_for("a finished cell", |text| {
        let is_cell = |line: &str| line.starts_with("matrix 1") && line.contains("/s  ");
        text.contains("CELL") && text.contains("run ") && text.lines().any(is_cell)
    });
    terminal.keys("q");
    terminal.expect_end("130");

    let study: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&report).expect("a report"))
            .expect("one document");
    assert_eq!(study["is_complete"], false, "{study}");
}

/// The page of a server, by the link that it prints.
fn page(server: &Process) -> (String, String) {
    let link = wait_for(TIMEOUT, || {
        server
            .stderr()
            .split_whitespace()
            .find(|word| word.starts_with("http://"))
            .map(str::to_owned)
    });
    let link = link.unwrap_or_else(|| panic!("no link: {server:?}"));
    let output = Command::new("curl")
        .args(["-sS", "-L", "-c", "/dev/null", "-D", "/dev/stderr", &link])
        .output();
    let output = output.expect("curl runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();

    (text(&output.stderr), text(&output.stdout))
}

#[test]
fn the_live_page_has_a_row_for_every_client() {
    let server = linerate_interop::Service::start(&["--web"]);
    let clients: Vec<Process> = (0..8).map(|_| stock_client(server.port, "60")).collect();
    let _ = server.wait_for_events("test_started", 8, TIMEOUT);
    let rows = |page: &str| page.matches("data-label=\"client\">127.0.0.1:").count();
    let found = wait_until(TIMEOUT, || rows(&page(&server.process).1) == 8);
    assert!(found, "{:?}", page(&server.process));

    let (head, _) = page(&server.process);
    assert!(
        head.contains("HttpOnly; SameSite=Strict") && head.contains("frame-ancestors 'none'"),
        "{head}"
    );
    assert_eq!(server.process.stderr().matches("http://").count(), 1);
    assert!(
        !server.process.stdout().contains("token="),
        "the log has no secret"
    );
    server.process.signal(linerate_interop::Signal::Terminate);
    server.process.finish().expect_code(0);
    clients.into_iter().for_each(|client| drop(client.finish()));
}

/// Ten viewers, whose frames go to files.
fn viewers(net: &Net, server: &Process, folder: &Path) -> Vec<Process> {
    let link = wait_for(TIMEOUT, || {
        server
            .stderr()
            .split_whitespace()
            .find(|word| word.starts_with("http://"))
            .map(str::to_owned)
    });
    let link = link.unwrap_or_else(|| panic!("no link: {server:?}"));
    let (_, token) = link.split_once("token=").expect("a token");
    let viewer = |number: usize| {
        let file = folder.join(number.to_string());
        let poll = format!(
            "while curl -sf -H 'Authorization: Bearer {token}' http://127.0.0.1:5201/status/live >> {}; do sleep 1; done",
            file.display()
        );
        Process::start(inside(&net.b, Path::new("sh"), &["-c", &poll]))
    };

    (0..10).map(viewer).collect()
}

/// Bytes of frames of the viewer that got least.
fn least_seen(folder: &Path) -> u64 {
    (0..10)
        .map(|number| fs::metadata(folder.join(number.to_string())).map_or(0, |file| file.len()))
        .min()
        .unwrap_or(0)
}

#[allow(
    clippy::print_stderr,
    reason = "the reader of the test log must see the share"
)]
#[test]
#[ignore = "pairs of tests take twenty seconds: make live SUITE=reports"]
fn timed_viewers_of_the_page_leave_a_test_its_goodput() {
    let Some(net) = Net::new() else { return };
    run(&format!(
        "tc -n {} qdisc add dev {DEVICE} root tbf rate 1gbit burst 256k latency 10ms",
        net.a
    ));

    let server = Process::start(inside(&net.b, ours().path(), &["serve", "--web"]));
    server.wait_for_stdout("listening", 1);

    let goodput = || {
        let report = net.client(&["-J", "-t", "2", "-P", "4"]).finish().json();
        report["end"]["sum_received"]["bits_per_second"]
            .as_f64()
            .expect("a rate")
    };
    let _ = goodput();
    let (mut without, mut with) = (Vec::new(), Vec::new());

    // In the order A B B A, so that a drift is in both.
    for is_viewed in [false, true, true, false, false, true, true, false] {
        if !is_viewed {
            without.push(goodput());
            continue;
        }

        let folder = tempfile::tempdir().expect("a folder");
        let viewers = viewers(&net, &server, folder.path());
        assert!(
            wait_until(TIMEOUT, || least_seen(folder.path()) > 0),
            "no frame"
        );

        let before = least_seen(folder.path());
        with.push(goodput());
        assert!(least_seen(folder.path()) > before, "frames during the test");
        drop(viewers);
    }

    let sum = |rates: &[f64]| rates.iter().sum::<f64>();
    let share = sum(&with) / sum(&without);
    eprintln!("{share} of the goodput with ten viewers");
    assert!(
        share >= 0.99,
        "{share}: {with:?} with viewers, {without:?} without"
    );
}
