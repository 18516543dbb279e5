//! `linerate serve --user`: a server that root starts and that serves without privileges.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use linerate_interop::iperf2::Iperf2;
use linerate_interop::{
    Finished, Keys, Process, Service, Signal, TIMEOUT, each_case, free_port, original, ours, skip,
};
use tempfile::TempDir;

/// A user of every system, and the numbers that its processes have.
const USER: &str = "nobody";

/// Tests need root to have something to give up.
fn is_root() -> bool {
    let is_root = text_of(Command::new("id").arg("-u")) == "0";
    if !is_root {
        skip("only root has privileges to give up");
    }
    is_root
}

#[test]
fn every_thread_of_a_server_gives_up_all_privileges_and_clients_are_served() {
    if !is_root() {
        return;
    }

    let metrics = format!("127.0.0.1:{}", free_port());
    let list = readable_list();
    let allow = format!("@{}", list.path().join("allow").display());
    let options = ["--user", USER, "--metrics", &metrics, "--allow", &allow];
    let service = Service::start(&options);
    let client = service.client(original(), &["-t", "30", "-b", "2M", "-P", "2"]);
    let _ = service.wait_for_events("test_started", 1, TIMEOUT);
    let threads = expect_no_privileges(service.process.id());
    assert!(threads >= 3, "control, log and worker: {threads}");
    drop(client);

    let _ = service.wait_for_events("test_ended", 1, TIMEOUT);
    for options in [
        &["-n", "64K"][..],
        &["-n", "64K", "-R"],
        &["-u", "-n", "64K"],
        &["-u", "-R", "-n", "64K"],
    ] {
        service.client(original(), options).finish().expect_clean();
    }

    let _ = service.wait_for_events("test_ended", 5, TIMEOUT);
    service.process.signal(Signal::HangUp);
    let _ = service.wait_for_events("reloaded", 1, TIMEOUT);

    service.process.signal(Signal::Terminate);
    service.process.finish().expect_code(0);
}

#[test]
fn clients_of_iperf_2_are_served_without_privileges() {
    if !is_root() {
        return;
    }

    let (service, port) = Service::start_both(&["--user", USER]);
    for words in ["-n 64K", "-u -t 1"] {
        Iperf2::Original.client(port, words).finish().expect_code(0);
    }

    let _ = service.wait_for_events("test_ended", 2, TIMEOUT);
    expect_no_privileges(service.process.id());
}

/// The key is for root alone, the file of users for the server.
#[test]
fn logins_work_after_the_privileges_are_gone() {
    if !is_root() {
        return;
    }

    let (keys, public) = (Keys::make(), readable_list());
    let users = public.path().join("users");
    write_readable(&users, Keys::USERS);

    let (key, users) = (keys.path("private"), users.display().to_string());
    let service = Service::start(&["--user", USER, "--private-key", &key, "--users", &users]);
    keys.client(service.port, ours(), "rossi", &[])
        .expect_clean();
}

#[test]
fn a_user_that_cannot_serve_is_refused_with_a_reason() {
    if !is_root() {
        return;
    }

    let keys = Keys::make();
    let (key, users) = (keys.path("private"), keys.path("users"));
    fs::set_permissions(&users, fs::Permissions::from_mode(0o600)).expect("our file");

    let hidden = format!("cannot read {users}: Permission denied");
    let cases: [(&[&str], i32, &str); 5] = [
        (&["--user", "nosuchuser"], 2, "there is no such user"),
        (&["--user", ""], 2, "there is no such user"),
        (&["--user", "root"], 2, "keeps all privileges"),
        (&["--user", USER, "--iperf2-port", "500"], 2, "port 500"),
        (
            &["--user", USER, "--private-key", &key, "--users", &users],
            1,
            &hidden,
        ),
    ];
    each_case(&cases, |(options, code, reason)| {
        serve(Command::new(ours().path()), options)
            .expect_code(*code)
            .expect_stderr(reason);
    });
}

#[test]
fn only_root_serves_as_another_user() {
    if !is_root() {
        return;
    }

    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", USER, "--clear-groups"])
        .arg(ours().path());
    serve(command, &["--user", USER])
        .expect_code(2)
        .expect_stderr("only root can serve as another user");
}

fn serve(mut command: Command, options: &[&str]) -> Finished {
    command
        .args(["serve", "--port", &free_port().to_string()])
        .args(options);
    Process::start(command).finish()
}

/// Reads the status of all threads of a process (proc_pid_status(5)) and returns how many there are.
#[track_caller]
fn expect_no_privileges(process_id: u32) -> usize {
    let id = |option: &str| text_of(Command::new("id").args([option, USER]));
    let (uid, gid) = (id("-u"), id("-g"));
    let tasks = fs::read_dir(format!("/proc/{process_id}/task")).expect("the process runs");
    let statuses: Vec<String> = tasks
        // A thread may end between the two calls.
        .filter_map(|task| fs::read_to_string(task.expect("an entry").path().join("status")).ok())
        .collect();
    for status in &statuses {
        for (key, expected) in [
            ("Uid:", vec![uid.as_str(); 4]),
            ("Gid:", vec![gid.as_str(); 4]),
            ("Groups:", vec![]),
            ("CapInh:", vec![NO_CAPABILITIES]),
            ("CapPrm:", vec![NO_CAPABILITIES]),
            ("CapEff:", vec![NO_CAPABILITIES]),
            ("CapAmb:", vec![NO_CAPABILITIES]),
            ("CapBnd:", vec![NO_CAPABILITIES]),
            ("NoNewPrivs:", vec!["1"]),
        ] {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix(key))
                .expect(key);
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(words, expected, "{key} of\n{status}");
        }
    }

    statuses.len()
}

const NO_CAPABILITIES: &str = "0000000000000000";

/// A folder with a list of addresses that every user can read.
fn readable_list() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("our folder");
    write_readable(&folder.path().join("allow"), "127.0.0.0/8\n");
    folder
}

fn write_readable(path: &Path, text: &str) {
    fs::write(path, text).expect("our folder");
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).expect("our file");
}

fn text_of(command: &mut Command) -> String {
    let output = command.output().expect("coreutils");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
