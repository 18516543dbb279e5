//! User, password and RSA keys, with the padding that the original uses: before 3.17 it knows
//! PKCS#1 only.

use std::fs;
use std::path::Path;

use linerate_interop::{Keys, Pairing, Program, Report, Server, each_case, original};

/// Two of ours speak OAEP. Beside an old original, ours is asked for the old padding.
fn padding(pairing: Pairing, program: &Program) -> Option<&'static str> {
    let is_old = original().release() < 17;
    (is_old && pairing != Pairing::OursToOurs && !program.is_original())
        .then_some("--use-pkcs1-padding")
}

/// Message of a client about a refused login. A server of 3.21 and later closes the connection
/// without a message.
fn refusal(pairing: Pairing) -> &'static str {
    if pairing.server().is_original() && pairing.server().release() >= 21 {
        "control socket has closed unexpectedly"
    } else {
        "test authorization failed"
    }
}

#[test]
fn right_password_is_accepted_and_wrong_one_refused() {
    let keys = Keys::make();
    each_case(&Pairing::ALL, |pairing| {
        let server = keys.server(pairing.server(), padding(*pairing, pairing.server()));
        let options = padding(*pairing, pairing.client());
        let run =
            |password| keys.client(server.port, pairing.client(), password, options.as_slice());
        run("rossi").expect_clean();
        run("bianchi")
            .expect_code(1)
            .expect_stderr(refusal(*pairing));

        // A refusal must not stick to the server.
        run("rossi").expect_clean();
    });
}

#[test]
fn a_client_without_credentials_is_refused() {
    let keys = Keys::make();
    each_case(&Pairing::ALL, |pairing| {
        let server = keys.server(pairing.server(), padding(*pairing, pairing.server()));
        server
            .run(pairing.client(), &["-n", "64K"])
            .expect_code(1)
            .expect_stderr(refusal(*pairing));
    });
}

#[test]
fn an_unknown_user_is_refused() {
    let keys = Keys::make();
    fs::write(Path::new(&keys.path("users")), "luigi,00\n# a comment\n")
        .expect("the folder is writable");
    each_case(&Pairing::ALL, |pairing| {
        let server = keys.server(pairing.server(), padding(*pairing, pairing.server()));
        let options = padding(*pairing, pairing.client());
        keys.client(server.port, pairing.client(), "rossi", options.as_slice())
            .expect_code(1);
    });
}

#[test]
fn a_refusal_is_an_error_in_the_json_report() {
    let keys = Keys::make();
    let pairing = Pairing::OursToOurs;
    let server = keys.server(pairing.server(), None);
    let refused = keys.client(server.port, pairing.client(), "bianchi", &["-J"]);
    assert!(
        Report::parse(&refused.stdout)
            .text("/error")
            .contains("test authorization failed")
    );
    assert_eq!(refused.stderr, "");
}

#[test]
fn server_without_login_ignores_credentials() {
    let keys = Keys::make();
    each_case(&Pairing::ALL, |pairing| {
        let server = Server::start(pairing.server(), &[]);
        keys.client(server.port, pairing.client(), "rossi", &[])
            .expect_clean();
    });
}
