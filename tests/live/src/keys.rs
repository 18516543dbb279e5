//! A key pair, a user, and logins with them.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

use crate::deadline::{TIMEOUT, wait_until};
use crate::net::listens;
use crate::process::{Finished, Process};
use crate::program::Program;
use crate::service::Service;
use crate::session::Server;

/// A pair of RSA keys and a file with the only user, mario, whose password is rossi. They go when
/// this goes.
pub struct Keys {
    folder: TempDir,
}

impl Keys {
    /// The line of the file of users: name and SHA-256 of `{mario}rossi`.
    pub const USERS: &str =
        "mario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b\n";

    /// Makes them.
    pub fn make() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let keys = Self { folder };
        let (private, public) = (keys.path("private"), keys.path("public"));
        openssl(&["genrsa", "-out", &private, "2048"], b"");
        openssl(&["rsa", "-in", &private, "-pubout", "-out", &public], b"");
        fs::write(keys.path("users"), Self::USERS).expect("the folder is writable");
        keys
    }

    /// Path of the `private` or `public` key, or of the file of `users`.
    pub fn path(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        path.to_str()
            .expect("temporary folders have plain names")
            .to_owned()
    }

    /// A server in iperf3's dialect that lets mario in.
    pub fn server(&self, program: &Program, padding: Option<&str>) -> Server {
        let (key, users) = (self.path("private"), self.path("users"));
        let mut options = vec![
            "--rsa-private-key-path",
            &key,
            "--authorized-users-path",
            &users,
        ];
        options.extend(padding);

        Server::start(program, &options)
    }

    /// A service that lets mario in.
    pub fn service(&self, more: &[&str]) -> Service {
        let (key, users) = (self.path("private"), self.path("users"));
        Service::start(&[&["--private-key", &key, "--users", &users], more].concat())
    }

    /// Runs a short test as mario.
    pub fn client(&self, port: u16, program: &Program, password: &str, more: &[&str]) -> Finished {
        // The original closes its listener after a refusal and opens another one.
        assert!(wait_until(TIMEOUT, || listens(port)), "the server listens");
        let (port, key) = (port.to_string(), self.path("public"));
        let target = ["-c", "127.0.0.1", "-p", &port, "-n", "64K"];
        let login = ["--username", "mario", "--rsa-public-key-path", &key];
        let mut command = program.command([&target[..], &login, more].concat());
        command.env("IPERF3_PASSWORD", password);

        Process::start(command).finish()
    }

    /// The login of a user as clients make it, sent `clock_offset_s` from now, with openssl's name
    /// of the padding.
    pub fn token(&self, user: &str, password: &str, clock_offset_s: i64, padding: &str) -> String {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("after 1970")
            .as_secs() as i64;
        let text = format!(
            "user: {user}\npwd:  {password}\nts:   {}",
            now + clock_offset_s
        );
        let mode = format!("rsa_padding_mode:{padding}");
        let key = self.path("public");
        let cipher = openssl(
            &[
                "pkeyutl", "-encrypt", "-pubin", "-inkey", &key, "-pkeyopt", &mode,
            ],
            text.as_bytes(),
        );
        let base64 = openssl(&["base64", "-A"], &cipher);

        String::from_utf8(base64).expect("Base64 is ASCII")
    }
}

/// Output of openssl(1).
pub(crate) fn openssl(arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new("openssl")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl is installed");
    child
        .stdin
        .take()
        .expect("stdin is piped")
        .write_all(input)
        .expect("openssl reads");
    let output = child.wait_with_output().expect("openssl ends");
    assert!(output.status.success(), "openssl {arguments:?}");

    output.stdout
}
