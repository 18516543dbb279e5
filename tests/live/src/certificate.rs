//! Certificates of servers that are no linerate, or that are given one.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::process::Process;

/// A certificate for 127.0.0.1 and the server of a namespace that is its own authority, and its key.
#[derive(Debug)]
pub struct Certificate {
    folder: TempDir,
}

impl Certificate {
    /// Has openssl make one.
    pub fn make() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let made = openssl(
            folder.path(),
            "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test \
             -addext subjectAltName=IP:127.0.0.1,IP:10.99.0.2 -keyout key.pem -out cert.pem",
        );
        made.expect_code(0);

        Self { folder }
    }

    /// A file of it: `cert.pem` or `key.pem`.
    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// SHA-256 of it, as openssl writes it.
    pub fn fingerprint(&self) -> String {
        let shown = openssl(
            self.folder.path(),
            "openssl x509 -in cert.pem -noout -fingerprint -sha256",
        );
        let (_, digits) = shown.stdout.trim().split_once('=').expect("a fingerprint");
        digits.to_owned()
    }
}

fn openssl(folder: &Path, line: &str) -> crate::Finished {
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(folder);
    Process::start(command).finish()
}
