//! Goal: every command of a tutorial works as it stands there. Method: the lines of its code blocks
//! run one after the other, in shells on both ends of a veth pair or at the coordinator of a fleet;
//! only addresses, names of devices and paths are replaced. `make live SUITE=tutorials` runs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use linerate_interop::namespaces::{DEVICE, Net, SERVER, inside, run};
use linerate_interop::{FleetLab, HostLink, Process, Signal, ours, wait_until};

/// A sweep has two minutes.
const COMMAND_MAX: Duration = Duration::from_secs(240);

/// The lines of the code blocks of a tutorial that have no language.
fn commands(tutorial: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorials");
    let text = fs::read_to_string(page.join(tutorial)).expect("a tutorial");
    let blocks = text.split("```").skip(1).step_by(2);
    let plain = blocks.filter_map(|block| block.strip_prefix('\n'));
    let lines: Vec<String> = plain
        .flat_map(str::lines)
        .map(|line| line.trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect();

    assert!(lines.len() >= 4, "{lines:?}");
    lines
}

/// Two hosts, and the folder in which both have their files.
struct Lab {
    net: Net,
    folder: tempfile::TempDir,
    server: Option<Process>,
}

impl Lab {
    fn new() -> Option<Self> {
        Some(Self {
            net: Net::new()?,
            folder: tempfile::tempdir().expect("a folder"),
            server: None,
        })
    }

    fn shell(&self, host: &str, line: &str) -> Command {
        in_folder(
            inside(host, Path::new("sh"), &["-ec", line]),
            self.folder.path(),
        )
    }

    /// The command as it is in this lab.
    fn replaced(&self, line: &str) -> String {
        let config = self.folder.path().join("serve.toml").display().to_string();
        line.replace("192.0.2.7", SERVER)
            .replace("192.0.2.0/24", "10.99.0.0/24")
            .replace("eth0", DEVICE)
            // `--prove` asks before it changes a setting, and needs a terminal for that.
            .replace("--prove", "--yes --prove")
            .replace("/etc/linerate/serve.toml", &config)
            .replace(
                "systemctl enable --now linerate",
                &format!("linerate serve --config {config}"),
            )
    }

    /// Runs all commands of a tutorial. `at_server` names those of the far host that start no
    /// server.
    fn follow(&mut self, tutorial: &str, at_server: &[&str]) {
        for line in commands(tutorial) {
            let line = self.replaced(&line);
            let is_far = at_server.iter().any(|start| line.starts_with(start));
            let host = if is_far { &self.net.b } else { &self.net.a };

            if line.starts_with("linerate serve") {
                self.serve(&line);
            } else if let Some(url) = line.strip_prefix("http://") {
                finish(
                    self.shell(host, &format!("curl -sSf 'http://{url}'")),
                    &line,
                );
            } else if line.starts_with("linerate watch") {
                let watch = Process::start(self.shell(host, &format!("exec {line}")));
                let has_run =
                    || watch.stdout().contains("bit/s") || watch.stderr().contains("bit/s");
                assert!(wait_until(COMMAND_MAX, has_run), "{watch:?}");
                watch.signal(Signal::Interrupt);
                watch.finish();
            } else {
                finish(self.shell(host, &line), &line);
            }
        }
    }

    /// Starts the server of a tutorial in the place of the one before.
    fn serve(&mut self, line: &str) {
        if let Some(former) = self.server.take() {
            former.signal(Signal::Terminate);
            former.finish();
        }

        // A view needs a terminal.
        let line = match line.contains("--tui") {
            true => format!("exec script -qec '{line}' /dev/null"),
            false => format!("exec {line}"),
        };
        let mut server = Process::start(self.shell(&self.net.b, &line));
        let listens = "ss -Hltn 'sport = 5201' | grep -q 5201";
        let b = self.net.b.clone();
        server.wait_until_up(|| {
            let check = inside(&b, Path::new("sh"), &["-c", listens]).status();
            check.is_ok_and(|status| status.success())
        });
        self.server = Some(server);
    }
}

/// A command that finds the program, and has its history in the folder.
fn in_folder(mut command: Command, folder: &Path) -> Command {
    let program = ours().path();
    let programs = program.parent().expect("a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    command
        .env("PATH", format!("{programs}:{path}"))
        .env("HOME", folder)
        .env("XDG_STATE_HOME", folder)
        .env("TERM", "xterm")
        // Cargo turns the history off for tests.
        .env_remove("LINERATE_STORE")
        .current_dir(folder);
    command
}

#[track_caller]
fn finish(command: Command, line: &str) {
    let finished = Process::start(command).finish_within(COMMAND_MAX);
    let is_fine = match finished.code() {
        Some(0) => true,
        // Two series of one path may differ, or allow no verdict.
        Some(10 | 11) => line.starts_with("linerate compare"),
        // No run was interrupted here.
        Some(2) => {
            line.starts_with("linerate fleet resume") && finished.stderr.contains("has a result")
        }
        _ => false,
    };
    assert!(is_fine, "{line}: {finished:?}");
}

#[test]
#[ignore = "minutes of traffic: make live SUITE=tutorials"]
fn first_test() {
    let Some(mut lab) = Lab::new() else { return };
    lab.follow("first-test.md", &[]);
    assert!(lab.folder.path().join("first.html").exists());
}

#[test]
#[ignore = "minutes of traffic: make live SUITE=tutorials"]
fn slow_link() {
    let Some(mut lab) = Lab::new() else { return };
    run(&format!(
        "tc -n {} qdisc add dev {DEVICE} root tbf rate 100mbit burst 32k latency 20ms",
        lab.net.a
    ));
    lab.serve(&format!("linerate serve --allow {SERVER}/24"));
    let pasted = lab.shell(
        &lab.net.b,
        "ip -s -d link > pasted.txt; nstat -az >> pasted.txt",
    );
    finish(pasted, "pasted.txt");

    lab.follow("slow-link.md", &[]);
}

#[test]
#[ignore = "minutes of traffic: make live SUITE=tutorials"]
fn team_server() {
    let Some(mut lab) = Lab::new() else { return };
    lab.follow("team-server.md", &["printf", "curl", "(umask"]);
}

#[test]
#[ignore = "minutes of traffic: make live SUITE=tutorials"]
fn classroom() {
    let Some(mut lab) = Lab::new() else { return };
    lab.follow("classroom.md", &["linerate history"]);
}

#[test]
#[ignore = "minutes of traffic: make live SUITE=tutorials"]
fn ten_hosts() {
    let Some(lab) = FleetLab::new(&[HostLink::Gigabit; 3]) else {
        return;
    };
    let (inventory, config): (PathBuf, PathBuf) = (lab.inventory(), lab.ssh_config());
    let hosts = format!("{} --ssh-config {}", inventory.display(), config.display());
    let folder = inventory.parent().expect("a folder").to_owned();

    for line in commands("ten-hosts.md") {
        let line = line.replace("lab.toml", &hosts).replace("pc01", "h1");
        let command = inside(&lab.coordinator(), Path::new("sh"), &["-ec", &line]);
        finish(in_folder(command, &folder), &line);
    }
    assert!(folder.join("mesh.html").exists());
}
