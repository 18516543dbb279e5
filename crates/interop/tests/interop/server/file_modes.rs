//! A server warns at its start about files with secrets that others may read, and about those it trusts that others may
//! change.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use linerate_interop::{Keys, Service, TIMEOUT, linerate, ours_only};

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
    let [key] = &warnings(0o640, 0o644)[..] else { panic!("one warning") };
    assert!(key.starts_with("private key") && key.contains("chmod 600"), "{key}");
    let [users] = &warnings(0o600, 0o664)[..] else { panic!("one warning") };
    assert!(users.starts_with("user file") && users.contains("lets others change it"), "{users}");
}

#[test]
fn a_control_channel_refuses_a_token_that_others_can_read() {
    ours_only!("the original has no such service");
    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token").display().to_string();
    let start = || linerate(&format!("http agent --control 127.0.0.1:0 --token-file {token}"));
    let agent = start();
    agent.wait_for_stdout("control", 1);
    assert_eq!(agent.stderr(), "", "the file is made readable for its owner alone");
    set_mode(&token, 0o644);
    start().finish().expect_code(2).expect_stderr("token file").expect_stderr("0644");
}
