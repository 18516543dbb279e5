//! Going to the background. The test starts itself as a program without threads, which becomes a
//! daemon and reports over loopback what became of it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use linerate_sys::process::daemonize;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1..) {
        Some([role, port]) if role == "become-a-daemon" => report(port),
        // Test runners ask for the names of all tests, and then for those of ignored ones.
        Some(arguments) if arguments.iter().any(|argument| argument == "--list") => {
            if !arguments.iter().any(|argument| argument == "--ignored") {
                std::io::stdout()
                    .write_all(b"daemon: test\n")
                    .expect("standard output");
            }
        }
        _ => check(),
    }
}

fn report(port: &str) {
    daemonize().expect("daemonize");
    let link = |name: &str| {
        std::fs::read_link(format!("/proc/self/{name}"))
            .expect("link")
            .display()
            .to_string()
    };

    let stat = std::fs::read_to_string("/proc/self/stat").expect("stat");
    // Behind the program's name in parentheses: state, parent, group, session, terminal.
    let fields: Vec<&str> = stat[stat.rfind(')').expect("name") + 1..]
        .split_whitespace()
        .collect();
    let leader = fields[3] == std::process::id().to_string();

    let facts = [
        link("cwd"),
        link("fd/0"),
        link("fd/1"),
        link("fd/2"),
        fields[4].to_owned(),
        leader.to_string(),
    ];
    let mut parent = TcpStream::connect(format!("127.0.0.1:{port}")).expect("connect");
    parent
        .write_all(facts.join(" ").as_bytes())
        .expect("report");
}

fn check() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = listener.local_addr().expect("address").port().to_string();
    let mut child = Command::new(std::env::current_exe().expect("own path"))
        .args(["become-a-daemon", &port])
        .current_dir("/proc")
        .spawn()
        .expect("start");
    assert!(
        child.wait().expect("wait").success(),
        "the caller's process ends well, while the daemon lives"
    );

    let facts = read_report(&listener);
    // No terminal, and not a session's leader, which could acquire one.
    assert_eq!(facts, "/proc /dev/null /dev/null /dev/null 0 false");
}

/// Accepts with a deadline, so that a daemon that died does not hang the test.
fn read_report(listener: &TcpListener) -> String {
    let deadline = Instant::now() + Duration::from_secs(20);
    let left = deadline.saturating_duration_since(Instant::now());
    let ready =
        linerate_sys::poll::wait_fd(listener, linerate_sys::poll::Interest::READ, Some(left));
    assert!(ready.expect("poll"), "no daemon reported");

    let mut facts = String::new();
    listener
        .accept()
        .expect("accept")
        .0
        .read_to_string(&mut facts)
        .expect("read");
    facts
}
