//! The kernel's list of the sockets of a running test.

use std::process::Command;

/// The established TCP sockets that came from or go to a port, with their options, one per line, as
/// `ss` prints them. Both ends of a test on loopback are listed.
pub fn established(port: u16) -> Vec<String> {
    let filter = format!("( sport = :{port} or dport = :{port} )");
    let output = Command::new("ss")
        .args(["-tinHOmo", "--tos", "state", "established", &filter])
        .output()
        .expect("ss is installed");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(str::to_owned)
        .collect()
}
