//! A server refuses tokens and keys that others may read, change or own. It warns at its start
//! about a private key that others may read, and about a file of users that they may change.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use linerate_interop::{
    Keys, NativeHost, Process, Service, TIMEOUT, free_port, linerate, ours_only,
};

fn set_mode(path: &str, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the file is ours");
}

/// Warnings of a service with these modes of its private key and of its file of users.
fn warnings(key: u32, users: u32) -> Vec<String> {
    let keys = Keys::make();
    set_mode(&keys.path("private"), key);
    set_mode(&keys.path("users"), users);

    let service: Service = keys.service(&[]);
    let _ = service.wait_for_events("listening", 1, TIMEOUT);
    let text = |event: &serde_json::Value| event["message"].as_str().unwrap_or_default().to_owned();
    service.events("warning").iter().map(text).collect()
}

#[test]
fn a_service_warns_about_a_readable_key_and_a_writable_file_of_users() {
    ours_only!("the original has no such service");
    assert_eq!(warnings(0o600, 0o600), [""; 0]);
    let [key] = &warnings(0o640, 0o644)[..] else {
        panic!("one warning")
    };
    assert!(
        key.starts_with("private key") && key.contains("chmod 600"),
        "{key}"
    );

    let [users] = &warnings(0o600, 0o664)[..] else {
        panic!("one warning")
    };
    assert!(
        users.starts_with("user file") && users.contains("lets others change it"),
        "{users}"
    );
}

#[test]
fn a_control_channel_refuses_a_token_that_others_can_read() {
    ours_only!("the original has no such service");
    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token").display().to_string();
    let start = || {
        linerate(&format!(
            "http agent --control 127.0.0.1:0 --token-file {token}"
        ))
    };
    let agent = start();
    agent.wait_for_stdout("control", 1);
    assert_eq!(
        agent.stderr(),
        "",
        "the file is made readable for its owner alone"
    );
    set_mode(&token, 0o644);
    start()
        .finish()
        .expect_code(2)
        .expect_stderr("token file")
        .expect_stderr("0644");
}

/// A user other than root and that of the tests.
const STRANGER: u32 = 65_534;

#[test]
fn tokens_that_others_may_read_or_own_are_refused_with_the_remedy() {
    ours_only!("the original has no such service");
    let host = NativeHost::here();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tokens");
    fs::write(&path, "0123456789abcdef0123456789abcdef\n").expect("our folder");

    let file = path.to_str().expect("UTF-8");
    let refused = |remedy: &str| {
        let port = free_port().to_string();
        for words in [
            &["--no-iperf3", "--tokens", file][..],
            &["--web", "--token-file", file],
        ] {
            let server =
                Process::start(host.command(&[&["serve", "--port", &port], words].concat()))
                    .finish();
            assert_ne!(server.code(), Some(0), "{server:?}");
            server
                .expect_stderr("token file")
                .expect_stderr(&format!("{remedy} {file}"));
        }
    };

    for mode in [0o644, 0o620] {
        set_mode(file, mode);
        refused("chmod 600");
    }

    set_mode(file, 0o600);
    // Only root gives files away.
    let own = folder.path().metadata().expect("our folder").uid();
    if own == 0 {
        chown(&path, Some(STRANGER), None).expect("root");
        refused("chown 0");
    }
}

#[test]
fn state_directory_in_which_others_replace_files_has_no_key() {
    ours_only!("the original has no such service");
    let host = NativeHost::here();
    let state = host.state_file("");
    fs::create_dir_all(&state).expect("our folder");
    set_mode(state.to_str().expect("UTF-8"), 0o777);

    let service = host.serve(&[]);
    let warning = &service.wait_for_events("warning", 1, TIMEOUT)[0];
    let message = warning["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("will not recognise this server") && message.contains("chmod 700"),
        "{warning}"
    );

    let key = &service.wait_for_events("host_key", 1, TIMEOUT)[0];
    assert!(
        key["host_key"]
            .as_str()
            .is_some_and(|key| key.contains("as long as this server")),
        "{key}"
    );
    assert!(
        !host.state_file("host_key.pem").exists(),
        "no key is made there"
    );
}
