//! User, password and RSA keys, with the padding the original of the day uses: 3.12 knows PKCS#1 only.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use linerate_interop::{Finished, PATIENCE, Pairing, Process, Program, Report, Server, listens, run_cases, wait_for};
use tempfile::TempDir;

/// User and SHA-256 of `{mario}rossi`.
const USERS: &str = "mario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b\n";

struct Keys {
    folder: TempDir,
}

impl Keys {
    fn make() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let keys = Self { folder };
        openssl(&["genrsa", "-out", &keys.path("private"), "2048"]);
        openssl(&[
            "rsa",
            "-in",
            &keys.path("private"),
            "-pubout",
            "-out",
            &keys.path("public"),
        ]);
        fs::write(keys.folder.path().join("users"), USERS).expect("the folder is writable");
        keys
    }

    fn path(&self, name: &str) -> String {
        let path: PathBuf = self.folder.path().join(name);
        path.to_str().expect("temporary folders have plain names").to_owned()
    }

    fn server(&self, program: &Program, padding: Option<&str>) -> Server {
        let (key, users) = (self.path("private"), self.path("users"));
        let mut options = vec!["--rsa-private-key-path", &key, "--authorized-users-path", &users];
        options.extend(padding);
        Server::start(program, &options)
    }

    fn client(&self, server: &Server, program: &Program, password: &str, more: &[&str]) -> Finished {
        let (port, key) = (server.port.to_string(), self.path("public"));
        let base = [
            "-c",
            "127.0.0.1",
            "-p",
            &port,
            "-n",
            "64K",
            "--username",
            "mario",
            "--rsa-public-key-path",
            &key,
        ];
        let mut command = program.command(base.iter().chain(more));
        command.env("IPERF3_PASSWORD", password);
        // The original closes its listener after a refusal and opens another one.
        wait_for(PATIENCE, || listens(server.port).then_some(())).expect("the server listens again");
        Process::start(command).finish()
    }
}

fn openssl(arguments: &[&str]) {
    let output = Command::new("openssl")
        .args(arguments)
        .output()
        .expect("openssl is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Two of ours speak OAEP. Beside the original, ours is asked for the old padding.
fn padding(pairing: Pairing, program: &Program) -> Option<&'static str> {
    (pairing != Pairing::OursToOurs && !program.is_original()).then_some("--use-pkcs1-padding")
}

#[test]
fn the_right_password_is_let_in_and_a_wrong_one_is_not() {
    let keys = Keys::make();
    run_cases(&Pairing::ALL, ToString::to_string, |pairing| {
        let server = keys.server(pairing.server(), padding(*pairing, pairing.server()));
        let options = padding(*pairing, pairing.client());
        let run = |password| keys.client(&server, pairing.client(), password, options.as_slice());
        run("rossi").expect_clean();
        run("bianchi").expect_code(1).expect_stderr("test authorization failed");
        // A refusal must not stick to the server.
        run("rossi").expect_clean();
    });
}

#[test]
fn a_client_without_credentials_is_refused() {
    let keys = Keys::make();
    run_cases(&Pairing::ALL, ToString::to_string, |pairing| {
        let server = keys.server(pairing.server(), padding(*pairing, pairing.server()));
        server
            .run(pairing.client(), &["-n", "64K"])
            .expect_code(1)
            .expect_stderr("test authorization failed");
    });
}

#[test]
fn an_unknown_user_is_refused() {
    let keys = Keys::make();
    fs::write(Path::new(&keys.path("users")), "luigi,00\n# a comment\n").expect("the folder is writable");
    run_cases(&Pairing::ALL, ToString::to_string, |pairing| {
        let server = keys.server(pairing.server(), padding(*pairing, pairing.server()));
        let options = padding(*pairing, pairing.client());
        keys.client(&server, pairing.client(), "rossi", options.as_slice())
            .expect_code(1);
    });
}

#[test]
fn a_refusal_is_an_error_in_the_json_report() {
    let keys = Keys::make();
    let pairing = Pairing::OursToOurs;
    let server = keys.server(pairing.server(), None);
    let refused = keys.client(&server, pairing.client(), "bianchi", &["-J"]);
    assert!(
        Report::parse(&refused.stdout)
            .text("/error")
            .contains("test authorization failed")
    );
    assert_eq!(refused.stderr, "");
}

#[test]
fn a_server_that_asks_for_nothing_lets_credentials_pass() {
    let keys = Keys::make();
    run_cases(&Pairing::ALL, ToString::to_string, |pairing| {
        let server = Server::start(pairing.server(), &[]);
        keys.client(&server, pairing.client(), "rossi", &[]).expect_clean();
    });
}
