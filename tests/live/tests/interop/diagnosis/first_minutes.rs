//! First steps of a new user: the trial, logins made by hand, ports that are taken.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::net::{TcpListener, UdpSocket};
use std::process::Command;

use linerate_interop::{Finished, Keys, Pairing, Process, each_case, free_port, linerate, ours};

/// `linerate generate user` with this standard input.
fn generate_user(name: &str, input: &[u8]) -> Finished {
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(input)
        .and_then(|()| file.rewind())
        .expect("the file is writable");
    let mut command = Command::new(ours().path());
    command.args(["generate", "user", name]);
    Process::start_reading(command, file).finish()
}

#[test]
fn trial_ends_with_one_line_of_four_rates_and_the_next_command() {
    let trial = linerate("try").finish();
    trial.expect_clean();
    let line = trial.stdout.lines().last().expect("a report");
    assert!(line.starts_with("Passed: TCP "), "{line}");
    assert_eq!(line.matches("bit/s").count(), 4, "{line}");
    assert!(
        line.contains("`linerate serve`") && line.contains("`linerate iperf3 -c HOST`"),
        "{line}"
    );
}

#[test]
fn generated_users_are_let_in_by_both_servers() {
    let keys = Keys::make();
    let made = generate_user("mario", b"rossi\n");
    made.expect_clean();
    assert_eq!(made.stdout, Keys::USERS);

    let other = generate_user("luigi", b"verdi");
    fs::write(keys.path("users"), other.stdout + &made.stdout).expect("the folder is writable");
    each_case(&Pairing::ALL, |pairing| {
        // The original of the tests knows the old padding only.
        let padding = (*pairing != Pairing::OursToOurs).then_some("--use-pkcs1-padding");
        let knows = |is_original: bool| padding.filter(|_| !is_original);
        let server = keys.server(pairing.server(), knows(pairing.server().is_original()));
        let options = knows(pairing.client().is_original());
        keys.client(server.port, pairing.client(), "rossi", options.as_slice())
            .expect_clean();
    });
}

#[test]
fn names_and_passwords_that_no_server_takes_are_refused() {
    for name in ["", "two words", "a,b", "#mario"] {
        let refused = generate_user(name, b"rossi\n");
        refused.expect_code(2).expect_stderr("user name");
        assert_eq!(refused.stdout, "", "{name:?}");
    }

    for password in [&b""[..], b"two words\n", &[b'x'; 5000]] {
        let refused = generate_user("mario", password);
        refused.expect_code(1).expect_stderr("linerate: ");
        assert_eq!(refused.stdout, "");
    }
}

/// A pseudo-terminal needs system calls that this crate must not contain, hence the script.
#[test]
fn a_password_prompt_hides_what_is_typed_and_a_signal_leaves_the_terminal_as_it_was() {
    let script = r#"
import os, pty, signal, sys, termios, fcntl
def at_terminal(typed):
    parent, terminal = pty.openpty()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        # A shell ignores it for what it starts in the background.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
        for stream in (0, 1, 2):
            os.dup2(terminal, stream)
        os.execv(sys.argv[1], ["linerate", "generate", "user", "mario"])
    seen = b""
    for answer in typed:
        while not seen.rstrip().endswith(b":"):
            seen += os.read(parent, 4096)
        os.write(parent, answer)
        seen += b"|"
    _, status = os.waitpid(pid, 0)
    os.set_blocking(parent, False)
    seen += os.read(parent, 4096)
    shows = bool(termios.tcgetattr(terminal)[3] & termios.ECHO)
    print(os.waitstatus_to_exitcode(status), shows, seen.replace(b"\r\n", b" ").decode())
at_terminal([b"rossi\n", b"rossi\n"])
at_terminal([b"rossi\n", b"bianchi\n"])
at_terminal([b"ros\x03"])
"#;
    let mut command = Command::new("python3");
    command.args(["-c", script]).arg(ours().path());

    let run = Process::start(command).finish();
    run.expect_clean();
    let lines: Vec<&str> = run.stdout.lines().map(str::trim_end).collect();
    let line = Keys::USERS.trim();
    assert_eq!(
        lines[0],
        format!("0 True Password: | The same again: | {line}")
    );
    assert_eq!(
        lines[1],
        "1 True Password: | The same again: | linerate: the passwords differ"
    );

    // Ended by SIGINT, with the echo that was there before.
    assert!(
        lines[2].starts_with("-2 True Password: |") && !lines[2].contains("ros"),
        "{run:?}"
    );
}

#[test]
fn a_server_names_the_port_that_is_taken_and_what_to_do() {
    let tcp = TcpListener::bind("[::]:0").or_else(|_| TcpListener::bind("0.0.0.0:0"));
    let tcp = tcp.expect("a port");
    let udp = UdpSocket::bind("[::]:0").or_else(|_| UdpSocket::bind("0.0.0.0:0"));
    let udp = udp.expect("a port");
    let taken = tcp.local_addr().expect("a bound socket").port().to_string();
    let taken_udp = udp.local_addr().expect("a bound socket").port().to_string();
    let on_loopback = format!("127.0.0.1:{taken}");

    // One for each row: rows run side by side.
    let [free, free_2, free_3] = [(); 3].map(|()| free_port().to_string());
    let free_http = format!("127.0.0.1:{}", free_port());

    let rows = [
        (format!("serve -p {taken}"), &taken, "--port"),
        (
            format!("serve -p {free} --iperf2-port {taken}"),
            &taken,
            "--iperf2-port",
        ),
        (
            format!("serve -p {free_2} --iperf2-port {taken_udp}"),
            &taken_udp,
            "--iperf2-port",
        ),
        (
            format!("serve --one-port {on_loopback}"),
            &taken,
            "--one-port",
        ),
        (
            format!("serve -p {free_3} --metrics {on_loopback}"),
            &taken,
            "metrics",
        ),
        (format!("http serve -b {on_loopback}"), &taken, "--bind"),
        (
            format!("http serve -b {free_http} --tcp {taken}"),
            &taken,
            "--tcp",
        ),
        (
            format!("http agent --control {on_loopback}"),
            &taken,
            "--control",
        ),
    ];
    each_case(&rows, |(words, port, option)| {
        let failed = linerate(words).finish();
        failed
            .expect_code(1)
            .expect_stderr("Address already in use\n")
            .expect_stderr(&format!(
                "hint: another program uses port {port} (`ss -tulnp 'sport = :{port}'`"
            ))
            .expect_stderr(option);
        assert!(!failed.stderr.contains("os error"), "{failed:?}");
    });
}

#[test]
fn the_commands_of_the_page_about_logins_work() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/logins.md");
    let page = fs::read_to_string(page).expect("the page is in the repository");
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("password.txt"), "verdi\n").expect("the folder is writable");
    std::os::unix::fs::symlink(ours().path(), folder.path().join("linerate"))
        .expect("the folder is writable");

    let path = format!(
        "{}:{}",
        folder.path().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let run = |line: &str| {
        let mut command = Command::new("sh");
        command
            .args(["-c", line])
            .current_dir(folder.path())
            .env("PATH", &path);
        Process::start(command).finish()
    };

    let code: Vec<&str> = page
        .split("```\n")
        .skip(1)
        .step_by(2)
        .flat_map(str::lines)
        .collect();
    let runs = |line: &&&str| {
        ["openssl ", "chmod ", "printf "]
            .iter()
            .any(|start| line.starts_with(start))
    };
    for line in code.iter().filter(runs) {
        run(line).expect_code(0);
    }

    let script = code
        .iter()
        .find(|line| line.contains("< password.txt"))
        .expect("the line for scripts");
    run(script).expect_clean();
    let hash = run(code
        .iter()
        .find(|line| line.starts_with("printf"))
        .expect("a hash by hand"));
    assert_eq!(
        hash.stdout.split(' ').next(),
        Keys::USERS.trim().split(',').nth(1)
    );

    let users = fs::read_to_string(folder.path().join("users.csv")).expect("the script wrote it");
    assert!(
        users.starts_with("luigi,") && users.lines().count() == 1,
        "{users}"
    );

    for key in ["private.pem", "public.pem"] {
        assert!(File::open(folder.path().join(key)).is_ok(), "{key}");
    }
}
