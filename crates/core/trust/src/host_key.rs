//! The key of a server.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::Ed25519KeyPair;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::crypto::aws_lc_rs::sign::any_eddsa_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;

use crate::files::{self, FileError};
use crate::fingerprint::Fingerprint;

/// Upper bound of a file with a key, with room for comments around it.
const FILE_BYTES_MAX: u64 = 16 * 1024;

/// Label of a key with a passphrase (RFC 7468, section 11).
const ENCRYPTED: &[u8] = b"-----BEGIN ENCRYPTED PRIVATE KEY-----";

/// Ed25519 key pair of a server (RFC 8032). Its [`Fingerprint`] is the server's identity.
#[derive(Clone)]
pub struct HostKey {
    certified: Arc<CertifiedKey>,
    fingerprint: Fingerprint,
}

/// Why there is no host key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be used.
    #[error("host key {0}")]
    File(#[from] FileError),
    /// The file contains no Ed25519 key.
    #[error("host key {}: no Ed25519 private key (PKCS#8, PEM); `openssl genpkey -algorithm \
             ed25519` makes one", .0.display())]
    NoKey(PathBuf),
    /// The key in the file is encrypted.
    #[error(
        "host key {path}: it is encrypted with a passphrase, which a server has no terminal to ask \
         for; `openssl pkey -in {path} -out NEW_KEY` writes it without one",
        path = .0.display()
    )]
    Encrypted(PathBuf),
    /// The cryptographic library made no key.
    #[error("a host key cannot be generated")]
    Generation,
}

impl HostKey {
    /// Generates a key that is kept in memory alone.
    ///
    /// # Errors
    /// [`KeyError::Generation`].
    pub fn ephemeral() -> Result<Self, KeyError> {
        Self::from_pkcs8(&generate()?).ok_or(KeyError::Generation)
    }

    /// Reads the key in a file (PKCS#8 in PEM form, RFC 5958 and RFC 7468), or creates the file
    /// with a new key and mode
    /// 0600. The file appears complete or not at all; of two processes that create it at once both
    ///       use the same key.
    ///
    /// # Errors
    /// A file that cannot be read or created, to which others have access, or that contains no
    /// Ed25519 key.
    pub fn load_or_create(path: &Path) -> Result<Self, KeyError> {
        match files::read_private(path, FILE_BYTES_MAX) {
            // Only a file that does not exist is created: no other error may replace a key.
            Err(error) if error.is_not_found() => {}
            read => return Self::of_file(&read?, path),
        }

        files::create(path, pem(&generate()?).as_bytes())?;
        // Another process may have created the file first: its key is the one to use.
        let read = files::read_private(path, FILE_BYTES_MAX)?;
        Self::of_file(&read, path)
    }

    /// SHA-256 over the public key.
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    pub(crate) fn certified(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.certified)
    }

    fn of_file(text: &[u8], path: &Path) -> Result<Self, KeyError> {
        let is_encrypted = || {
            text.windows(ENCRYPTED.len())
                .any(|label| label == ENCRYPTED)
        };
        Self::from_pem(text).ok_or_else(|| match is_encrypted() {
            true => KeyError::Encrypted(path.to_owned()),
            false => KeyError::NoKey(path.to_owned()),
        })
    }

    fn from_pem(text: &[u8]) -> Option<Self> {
        Self::from_pkcs8(
            PrivatePkcs8KeyDer::from_pem_slice(text)
                .ok()?
                .secret_pkcs8_der(),
        )
    }

    fn from_pkcs8(der: &[u8]) -> Option<Self> {
        let key = any_eddsa_type(&PrivatePkcs8KeyDer::from(der)).ok()?;
        let public = key.public_key()?.to_vec();
        let fingerprint = Fingerprint::of(&public);

        // With raw public keys the certificate is the key itself (RFC 7250, 3).
        let certified = Arc::new(CertifiedKey::new(vec![CertificateDer::from(public)], key));
        Some(Self {
            certified,
            fingerprint,
        })
    }
}

impl fmt::Debug for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostKey({})", self.fingerprint)
    }
}

/// Version 1 of PKCS#8, the one without the public key, which all versions of openssl read.
fn generate() -> Result<Vec<u8>, KeyError> {
    let document =
        Ed25519KeyPair::generate_pkcs8v1(&SystemRandom::new()).map_err(|_| KeyError::Generation)?;
    Ok(document.as_ref().to_vec())
}

/// PEM form; the base64 of an Ed25519 key is one line of 64 characters (RFC 8410, 10.3).
fn pem(pkcs8: &[u8]) -> String {
    format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
        STANDARD.encode(pkcs8)
    )
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::process::{Command, Stdio};

    use super::*;

    /// The key of RFC 8410, 10.3, whose public key is in 10.1.
    const RFC_8410: &str = "-----BEGIN PRIVATE KEY-----\n\
                            MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
    const RFC_8410_PUBLIC: &str = "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=";

    #[test]
    fn fingerprint_is_that_of_the_public_key() {
        let key = HostKey::from_pem(RFC_8410.as_bytes()).expect("a key");
        let public = STANDARD.decode(RFC_8410_PUBLIC).expect("base64");
        assert_eq!(key.fingerprint(), Fingerprint::of(&public));
    }

    #[test]
    fn key_with_a_passphrase_is_named_as_such() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("key");
        let text =
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIGb\n-----END ENCRYPTED PRIVATE KEY-----\n";
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");

        let error = HostKey::load_or_create(&path).expect_err("it cannot be read");
        assert!(matches!(error, KeyError::Encrypted(_)), "{error}");
        assert!(error.to_string().contains("passphrase"), "{error}");
    }

    #[test]
    fn file_is_created_privately_and_keeps_the_key() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("key");
        let first = HostKey::load_or_create(&path).expect("created");
        let again = HostKey::load_or_create(&path).expect("read");
        assert_eq!(first.fingerprint(), again.fingerprint());
        assert_ne!(
            first.fingerprint(),
            HostKey::ephemeral().expect("another key").fingerprint()
        );
        assert_eq!(
            fs::metadata(&path).expect("a file").permissions().mode() & 0o7777,
            0o600
        );

        let text = fs::read_to_string(&path).expect("text");
        assert!(
            text.lines().all(|line| line.len() <= 64),
            "RFC 7468, 3: {text}"
        );
        assert!(!format!("{first:?}").contains(text.lines().nth(1).expect("base64")));
    }

    #[test]
    fn unusable_files_are_refused_and_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("key");
        let rsa_like = RFC_8410.replace("PRIVATE KEY", "RSA PRIVATE KEY");
        let p256 = "-----BEGIN PRIVATE \
                    KEY-----\nMC4CAQAwBQYDK2VuBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
                    -----END PRIVATE KEY-----\n";

        let rows = [
            ("", 0o600, "no Ed25519 private key"),
            (
                "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
                0o600,
                "no Ed25519 private key",
            ),
            (&rsa_like, 0o600, "no Ed25519 private key"),
            (p256, 0o600, "no Ed25519 private key"),
            (RFC_8410, 0o640, "chmod 600"),
            (RFC_8410, 0o604, "chmod 600"),
            (&"x".repeat(20_000), 0o600, "longer than"),
        ];
        for (text, mode, part) in rows {
            fs::write(&path, text).expect("our file");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("our file");
            let error = HostKey::load_or_create(&path).expect_err(part).to_string();
            assert!(
                error.starts_with("host key ") && error.contains(part),
                "{error}"
            );
            assert_eq!(fs::read_to_string(&path).expect("kept"), *text);
        }

        let error =
            HostKey::load_or_create(&directory.path().join("no/key")).expect_err("no directory");
        assert!(error.to_string().contains("no/key"), "{error}");
    }

    #[expect(clippy::print_stderr, reason = "a skipped test states its reason")]
    fn skip() {
        eprintln!("skipped: openssl is not installed");
    }

    /// Fingerprint of the key in a file by openssl(1); `None` where it is not installed.
    fn fingerprint_by_openssl(path: &Path) -> Option<String> {
        let mut openssl = Command::new("openssl");
        openssl
            .args(["pkey", "-pubout", "-outform", "DER", "-in"])
            .arg(path)
            .stderr(Stdio::inherit());
        let public = match openssl.output() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            output => output.expect("openssl runs"),
        };
        assert!(public.status.success(), "openssl reads the key");

        let der = path.with_extension("der");
        fs::write(&der, &public.stdout).expect("our file");
        let sum = Command::new("sha256sum")
            .arg(&der)
            .output()
            .expect("coreutils");

        Some(String::from_utf8(sum.stdout).expect("hexadecimal")[..64].to_owned())
    }

    #[test]
    fn openssl_computes_the_same_fingerprint() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("key");
        let key = HostKey::load_or_create(&path).expect("created");
        let Some(expected) = fingerprint_by_openssl(&path) else {
            skip();
            return;
        };

        let hex: String = key
            .fingerprint()
            .as_bytes()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(hex, expected);
    }

    #[test]
    fn key_of_openssl_is_accepted() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("key");
        let made = Command::new("openssl")
            .args(["genpkey", "-algorithm", "ed25519", "-out"])
            .arg(&path)
            .status();
        if !made.is_ok_and(|status| status.success()) {
            skip();
            return;
        }

        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("our file");
        let key = HostKey::load_or_create(&path).expect("accepted");
        let hex: String = key
            .fingerprint()
            .as_bytes()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(Some(hex), fingerprint_by_openssl(&path));
    }
}
