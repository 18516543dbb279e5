//! nginx, the HTTP server everybody knows.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::certificate::Certificate;
use crate::deadline::{TIMEOUT, wait_for};
use crate::net::{free_http_port, listens};
use crate::process::Process;

/// A running nginx of one process, on a port of its own of 127.0.0.1, with its files in a folder of
/// its own.
#[derive(Debug)]
pub struct Nginx {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its process.
    pub process: Process,
    folder: TempDir,
    certificate: Option<Certificate>,
}

impl Nginx {
    /// Starts it with files of 1, 10 and 100 KiB (`/1k`, `/10k`, `/100k`), words for its `listen`
    /// line, such as `ssl http2`, and what `server` adds to its `server` block; `ROOT` in that text
    /// becomes the folder of the files. `ssl` comes with a certificate of its own.
    pub fn start(words: &str, server: &str) -> Self {
        let certificate = words.contains("ssl").then(Certificate::make);
        let tls = certificate
            .as_ref()
            .map_or_else(String::new, |certificate| {
                let [cert, key] = ["cert.pem", "key.pem"].map(|name| certificate.path(name));
                format!("ssl_certificate {cert}; ssl_certificate_key {key}; ")
            });

        let folder = tempfile::tempdir().expect("a folder");
        let address = SocketAddr::from(([127, 0, 0, 1], free_http_port()));
        write_files(folder.path());

        let configuration = configuration(folder.path(), address, words, &(tls + server));
        let file = folder.path().join("nginx.conf");
        fs::write(&file, configuration).expect("a file");

        let mut command = Command::new("nginx");
        command
            .arg("-c")
            .arg(file)
            .arg("-e")
            .arg(folder.path().join("error.log"));
        let mut process = Process::start(command);
        let up = wait_for(TIMEOUT, || {
            (listens(address.port()) || process.has_ended()).then_some(())
        });
        assert!(
            up.is_some() && listens(address.port()),
            "no nginx: {process:?}"
        );

        Self {
            address,
            process,
            folder,
            certificate,
        }
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        let scheme = if self.certificate.is_some() {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://{}{path}", self.address)
    }

    /// Its certificate.
    pub fn certificate(&self) -> &Certificate {
        self.certificate.as_ref().expect("it was started with ssl")
    }

    /// Requests in its log. One is written there after its answer was sent.
    pub fn logged(&self) -> u64 {
        let log = fs::read_to_string(self.folder.path().join("access.log")).expect("a log");
        log.lines().count() as u64
    }

    /// Waits until the log has this number of requests, and fails when it has others.
    #[track_caller]
    pub fn expect_logged(&self, requests: u64) {
        let equal = wait_for(TIMEOUT, || {
            (self.logged() >= requests).then(|| self.logged())
        });
        assert_eq!(
            equal.unwrap_or_else(|| self.logged()),
            requests,
            "requests in the log of {self:?}"
        );
    }
}

fn write_files(folder: &Path) {
    let root = folder.join("www");
    fs::create_dir(&root).expect("a folder");
    for (name, len) in [("1k", 1 << 10), ("10k", 10 << 10), ("100k", 100 << 10)] {
        fs::write(root.join(name), vec![b'x'; len]).expect("a file");
    }
}

/// Without a master, so that ending the process ends all of it, and with nothing outside the
/// folder.
fn configuration(folder: &Path, address: SocketAddr, words: &str, server: &str) -> String {
    let folder = folder.display().to_string();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {folder}/{kind}; "))
        .concat();
    let server = server.replace("ROOT", &format!("{folder}/www"));

    format!(
        "daemon off; master_process off; pid {folder}/pid;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n{temporary}\n\
         log_format plain '$status'; access_log {folder}/access.log plain;\n\
         default_type application/octet-stream; ssl_protocols TLSv1.2 TLSv1.3;\n\
         server {{ listen {address} backlog=4096 {words}; root {folder}/www;\n{server}\n}}\n}}\n"
    )
}
