//! Tokens against the openssl program, which real peers are built on. Keys are made for each run.

use std::io::Write as _;
use std::process::{Command, Stdio};

use linerate_model::spec::AcceptedPadding;

use super::*;

const NOW: i64 = 1_800_000_000;
/// The pair and hash of iperf3's own manual.
const USERS: &str = "# \
                     comment\n\nother,0000\nmario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b,x\r\n";

struct Keys {
    private_pkcs8: String,
    private_pkcs1: String,
    public_spki: String,
    public_pkcs1: String,
}

/// Runs openssl with `input` on standard input; `None` when the program is not there.
fn openssl(args: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let child = Command::new("openssl")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child = child.ok()?;
    child.stdin.take()?.write_all(input).ok()?;

    let output = child.wait_with_output().ok()?;
    assert!(output.status.success(), "openssl {args:?}");
    Some(output.stdout)
}

fn keys() -> Option<Keys> {
    let text = |args: &[&str], input: &str| {
        let out = openssl(args, input.as_bytes())?;
        Some(String::from_utf8(out).expect("PEM is ASCII"))
    };
    let made = text(&["genrsa", "2048"], "");
    if made.is_none() {
        std::io::stderr()
            .write_all(b"skipped: the openssl program is not installed\n")
            .ok();
    }

    let made = made?;
    Some(Keys {
        private_pkcs8: text(&["pkcs8", "-topk8", "-nocrypt"], &made)?,
        private_pkcs1: text(&["rsa", "-traditional"], &made)?,
        public_spki: text(&["rsa", "-pubout"], &made)?,
        public_pkcs1: text(&["rsa", "-RSAPublicKey_out"], &made)?,
    })
}

fn credentials(public_key_pem: &str, password: &str, pkcs1_padding: bool) -> Credentials {
    let mut credentials = Credentials::new("mario", password, public_key_pem);
    credentials.pkcs1_padding = pkcs1_padding;
    credentials
}

/// Accepts one padding and nothing else.
fn authenticator(pem: &str, pkcs1_padding: bool) -> Authenticator {
    let padding = if pkcs1_padding {
        AcceptedPadding::Pkcs1
    } else {
        AcceptedPadding::Oaep
    };
    accepting(pem, padding)
}

fn accepting(pem: &str, padding: AcceptedPadding) -> Authenticator {
    Authenticator::new(pem, padding, Duration::from_secs(10)).expect("a good key")
}

/// The file openssl reads a key from.
struct KeyFile(std::path::PathBuf);

impl KeyFile {
    fn new(name: &str, pem: &str) -> Self {
        let path = std::env::temp_dir().join(format!("linerate-{}-{name}.pem", std::process::id()));
        std::fs::write(&path, pem).expect("a writable temporary directory");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a plain path")
    }
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

#[test]
fn every_form_of_the_keys_works_with_every_padding() {
    let Some(keys) = keys() else { return };
    for private in [&keys.private_pkcs8, &keys.private_pkcs1] {
        for public in [&keys.public_spki, &keys.public_pkcs1] {
            for padding in [false, true] {
                let token =
                    make_token(&credentials(public, "rossi", padding), NOW).expect("a token");
                let user = authenticator(private, padding).check(Some(&token), USERS, NOW + 9);
                assert_eq!(user.as_deref(), Ok("mario"));
            }
        }
    }
}

#[test]
fn openssl_reads_our_tokens() {
    use base64::Engine as _;

    let Some(keys) = keys() else { return };
    let file = KeyFile::new("reads", &keys.private_pkcs8);

    for (padding, mode) in [
        (false, "rsa_padding_mode:oaep"),
        (true, "rsa_padding_mode:pkcs1"),
    ] {
        let token =
            make_token(&credentials(&keys.public_spki, "rossi", padding), NOW).expect("a token");
        let cipher = base64::prelude::BASE64_STANDARD
            .decode(token)
            .expect("Base64");

        let plain = openssl(
            &[
                "pkeyutl",
                "-decrypt",
                "-inkey",
                file.path(),
                "-pkeyopt",
                mode,
            ],
            &cipher,
        );
        assert_eq!(
            plain
                .map(|p| String::from_utf8_lossy(&p).into_owned())
                .as_deref(),
            Some("user: mario\npwd:  rossi\nts:   1800000000")
        );
    }
}

#[test]
fn every_login_refusal_has_its_reason() {
    let Some(keys) = keys() else { return };
    let server = authenticator(&keys.private_pkcs8, false);
    let token = |password, padding| {
        make_token(&credentials(&keys.public_spki, password, padding), NOW).expect("a token")
    };
    let good = token("rossi", false);

    assert_eq!(server.check(None, USERS, NOW), Err(Refusal::NoToken));
    assert_eq!(
        server.check(Some("not base64!"), USERS, NOW),
        Err(Refusal::Malformed)
    );
    assert_eq!(
        server.check(Some(&"A".repeat(1 << 20)), USERS, NOW),
        Err(Refusal::Malformed)
    );
    assert_eq!(server.check(Some(""), USERS, NOW), Err(Refusal::Malformed));

    let mismatch = server.check(Some(&token("rossi", true)), USERS, NOW);
    assert_eq!(mismatch, Err(Refusal::Padding { accepted: "OAEP" }));
    assert_eq!(
        server.check(Some(&good), USERS, NOW + 11),
        Err(Refusal::Skew { seconds: -11 })
    );
    assert_eq!(
        server.check(Some(&good), USERS, NOW - 11),
        Err(Refusal::Skew { seconds: 11 })
    );
    assert_eq!(
        server.check(Some(&good), USERS, i64::MIN),
        Err(Refusal::Skew { seconds: i64::MAX })
    );
    assert_eq!(
        server.check(Some(&good), "luigi,00\n", NOW),
        Err(Refusal::UnknownUser)
    );
    assert_eq!(
        server.check(Some(&good), "# none\n", NOW),
        Err(Refusal::NoUsers)
    );
    assert_eq!(
        server.check(Some(&token("bianchi", false)), USERS, NOW),
        Err(Refusal::WrongPassword)
    );

    let unknown_after_wrong = format!("mario,00\n{USERS}luigi,00\n");
    assert_eq!(
        server
            .check(Some(&good), &unknown_after_wrong, NOW)
            .as_deref(),
        Ok("mario")
    );
}

#[test]
fn a_token_is_good_for_one_login() {
    let Some(keys) = keys() else { return };
    let server = authenticator(&keys.private_pkcs8, false);
    let token =
        || make_token(&credentials(&keys.public_spki, "rossi", false), NOW).expect("a valid key");
    let (first, second) = (token(), token());
    let check = |token: &String, now| server.check(Some(token), USERS, now);
    assert_eq!(check(&first, NOW).as_deref(), Ok("mario"));
    assert_eq!(check(&first, NOW + 9), Err(Refusal::Replayed));
    assert_eq!(
        check(&second, NOW).as_deref(),
        Ok("mario"),
        "another login in the same second"
    );
    assert_eq!(check(&first, NOW + 11), Err(Refusal::Skew { seconds: -11 }));
}

#[test]
fn a_server_accepts_one_padding_or_both() {
    let Some(keys) = keys() else { return };
    let rows = [
        (AcceptedPadding::Oaep, [true, false]),
        (AcceptedPadding::Pkcs1, [false, true]),
        (AcceptedPadding::Both, [true, true]),
    ];
    for (accepted, expected) in rows {
        let server = accepting(&keys.private_pkcs8, accepted);
        let let_in = [false, true].map(|pkcs1| {
            let token =
                make_token(&credentials(&keys.public_spki, "rossi", pkcs1), NOW).expect("a token");
            server.check(Some(&token), USERS, NOW).is_ok()
        });
        assert_eq!(let_in, expected, "{accepted:?}");
    }
}

#[test]
fn no_refusal_contains_what_the_client_sent() {
    let Some(keys) = keys() else { return };
    let server = authenticator(&keys.private_pkcs8, false);
    let token =
        make_token(&credentials(&keys.public_spki, "bianchi", false), NOW).expect("a token");

    for (users, now) in [(USERS, NOW), ("luigi,00\n", NOW), (USERS, NOW + 99)] {
        let refusal = server
            .check(Some(&token), users, now)
            .expect_err("a wrong password");
        assert!(!format!("{refusal} {refusal:?}").contains("bianchi"));
    }
}

#[test]
fn credentials_no_server_accepts_are_refused_at_once() {
    let Some(keys) = keys() else { return };
    let with = |password: &str| make_token(&credentials(&keys.public_spki, password, false), NOW);
    assert_eq!(with("has blank"), Err(AuthError::Blank));
    assert_eq!(with(""), Err(AuthError::Blank));
    assert_eq!(with(&"x".repeat(300)), Err(AuthError::TooLong));
}

#[test]
fn invalid_key_is_refused_with_a_reason() {
    let Some(keys) = keys() else { return };
    let skew = Duration::from_secs(10);

    for pem in [
        "",
        "garbage",
        &keys.public_spki,
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    ] {
        assert!(
            Authenticator::new(pem, AcceptedPadding::Oaep, skew).is_err(),
            "{pem}"
        );
    }

    for pem in [
        "",
        &keys.private_pkcs8,
        "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
    ] {
        assert!(
            make_token(&credentials(pem, "rossi", false), NOW).is_err(),
            "{pem}"
        );
    }
}

#[test]
fn key_with_a_passphrase_is_named_as_such() {
    let encrypted = |form: &[&str]| {
        let args = [
            &["genrsa", "-aes256", "-passout", "pass:secret"],
            form,
            &["2048"],
        ]
        .concat();
        openssl(&args, b"").map(|pem| String::from_utf8_lossy(&pem).into_owned())
    };
    let Some(pkcs8) = encrypted(&[]) else { return };

    // Releases before 3.0 have the older form alone, and no option for it.
    for pem in [Some(pkcs8), encrypted(&["-traditional"])]
        .into_iter()
        .flatten()
    {
        let refused =
            Authenticator::new(&pem, AcceptedPadding::Oaep, Duration::from_secs(10)).map(|_| ());
        assert_eq!(refused, Err(AuthError::Encrypted), "{pem}");
    }
}

#[test]
fn a_line_of_the_user_file_lets_its_user_in() {
    // The hash is what sha256sum(1) makes of {mario}rossi.
    assert_eq!(
        users_file_line("mario", "rossi").as_deref(),
        Ok("mario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b")
    );
    let Some(keys) = keys() else { return };
    let server = authenticator(&keys.private_pkcs8, false);
    let users = users_file_line("mario", "bianchi-\u{e9}{}").expect("a line");

    let token = make_token(
        &credentials(&keys.public_spki, "bianchi-\u{e9}{}", false),
        NOW,
    )
    .expect("a token");
    assert_eq!(
        server.check(Some(&token), &users, NOW).as_deref(),
        Ok("mario")
    );
}

#[test]
fn names_that_would_break_a_user_file_are_refused() {
    for name in ["a,b", "#a", "a\u{7}", &"x".repeat(257)] {
        assert_eq!(
            users_file_line(name, "rossi"),
            Err(AuthError::UserName),
            "{name}"
        );
    }

    for (name, password) in [
        ("", "rossi"),
        ("a b", "rossi"),
        ("a\nb", "rossi"),
        ("mario", ""),
        ("mario", "a\tb"),
    ] {
        assert_eq!(
            users_file_line(name, password),
            Err(AuthError::Blank),
            "{name}"
        );
    }
}
