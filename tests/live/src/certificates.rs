//! Certificates of one authority, made by openssl(1).

use std::fs;
use std::path::{Path, PathBuf};

use crate::keys::openssl;

/// Certificates and keys in the form of PEM. They go when this goes.
pub struct Certificates {
    folder: tempfile::TempDir,
}

/// Sections of openssl-req(1). The certificates are for both ends of connections at this address of
/// loopback.
const CONFIG: &str = "[req]\ndistinguished_name = names\n[names]\n\
                      [authority]\nbasicConstraints = critical, CA:TRUE\n\
                      [member]\nbasicConstraints = critical, CA:FALSE\nsubjectAltName = \
                      IP:127.0.0.1\n";

impl Certificates {
    /// Makes an authority, and a certificate for each of these common names.
    pub fn make(names: &[&str]) -> Self {
        let certificates = Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
        };
        fs::write(certificates.path("config"), CONFIG).expect("the folder is writable");
        certificates.request("authority", "authority", &[]);

        let (authority, key) = (
            certificates.certificate("authority"),
            certificates.key("authority"),
        );
        let signed = ["-CA", text(&authority), "-CAkey", text(&key)];

        for name in names {
            certificates.request(name, "member", &signed);
        }

        certificates
    }

    fn request(&self, name: &str, section: &str, signer: &[&str]) {
        let (config, certificate, key) =
            (self.path("config"), self.certificate(name), self.key(name));
        let subject = format!("/CN={name}");

        let new_key = [
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-keyout",
            text(&key),
        ];
        let kind = [
            "req",
            "-x509",
            "-config",
            text(&config),
            "-extensions",
            section,
            "-subj",
            &subject,
        ];
        openssl(
            &[&kind[..], &new_key, signer, &["-out", text(&certificate)]].concat(),
            b"",
        );
    }

    /// File of the certificate of a common name; that of the authority has the name `authority`.
    pub fn certificate(&self, name: &str) -> PathBuf {
        self.path(&format!("{name}.pem"))
    }

    /// File of the private key of a common name.
    pub fn key(&self, name: &str) -> PathBuf {
        self.path(&format!("{name}.key"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}
