//! Reaching a server: its URL, TLS, and the password.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs};

use ::postgres::config::{Host, SslMode};
use ::postgres::{Client, Config, NoTls};
use linerate_sys::file_access::{Protected, exposure};
use linerate_sys::file_system;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::StoreError;
use crate::place::Server;

/// Deadline of a connection to the server.
const CONNECT: Duration = Duration::from_secs(5);
/// Where Debian's server has its socket.
const SOCKET_DIRECTORY: &str = "/var/run/postgresql";

/// Connects: with TLS and a verified certificate, unless the server is on this host or
/// `sslmode=disable` is set.
pub(super) fn connect(server: &Server) -> Result<Client, StoreError> {
    let failed = |why: String| StoreError::Server {
        place: server.to_string(),
        why,
        is_locked: false,
    };
    let mut config: Config = server
        .url()
        .parse()
        .map_err(|error| StoreError::Usage(format!("{server}: {}", reason(&error))))?;
    // libpq connects to the Unix socket where no host is named.
    if config.get_hosts().is_empty() {
        config.host(SOCKET_DIRECTORY);
    }

    config
        .connect_timeout(CONNECT)
        // A server that vanished is noticed before the last retransmission (tcp(7)).
        .tcp_user_timeout(CONNECT * 2)
        .application_name("linerate");
    if config.get_password().is_none() {
        password(&config)
            .into_iter()
            .for_each(|password| _ = config.password(password));
    }

    let is_plain =
        config.get_hosts().iter().all(is_local) || config.get_ssl_mode() == SslMode::Disable;
    let connected = if is_plain {
        config.ssl_mode(SslMode::Disable).connect(NoTls)
    } else {
        let no_roots =
            |_| failed("no root certificates of this system; set SSL_CERT_FILE".to_owned());
        let (tls, _) = MakeRustlsConnect::with_native_certs().map_err(no_roots)?;
        // The default of libpq, `prefer`, would send the password without TLS where there is none.
        config.ssl_mode(SslMode::Require).connect(tls)
    };
    connected.map_err(|error| failed(reason(&error)))
}

/// Message of the server or the system, which may be the cause of a general error.
pub(super) fn reason(error: &::postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return error.message().to_owned();
    }

    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        let next_text = next.to_string();
        // Some errors repeat the text of their cause.
        if !text.contains(&next_text) {
            text = format!("{text}: {next_text}");
        }
        cause = next.source();
    }

    text
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost"
                || name
                    .parse::<IpAddr>()
                    .is_ok_and(|address| address.is_loopback())
        }
    }
}

/// Longest password file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// `PGPASSWORD`, or the password file.
fn password(config: &Config) -> Option<String> {
    let set = |name| env::var(name).ok().filter(|value| !value.is_empty());
    set("PGPASSWORD").or_else(|| {
        let of_home = || Some(PathBuf::from(env::var_os("HOME")?).join(".pgpass"));
        let path = set("PGPASSFILE").map(PathBuf::from).or_else(of_home)?;
        // As libpq does: a file that others may read is passed over.
        let is_exposed = exposure(&path, &fs::metadata(&path).ok()?, Protected::Secret).is_some();
        let text = file_system::read_text(&path, FILE_BYTES_MAX)
            .ok()
            .filter(|_| !is_exposed)?;
        let host = match config.get_hosts().first()? {
            Host::Tcp(name) => name.clone(),
            // In the password file `localhost` is a Unix socket as well, as for libpq.
            Host::Unix(_) => "localhost".to_owned(),
        };
        let port = config.get_ports().first().unwrap_or(&5432).to_string();
        let user = config
            .get_user()
            .map_or_else(|| set("USER").unwrap_or_default(), str::to_owned);
        // The default of libpq is the database with the name of the user.
        let database = config.get_dbname().unwrap_or(&user).to_owned();

        of_file(&text, &[&host, &port, &database, &user])
    })
}

/// The first line that fits: `host:port:database:user:password`, `*` for any, `\` before a colon or
/// a backslash.
fn of_file(text: &str, wanted: &[&str; 4]) -> Option<String> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .find_map(|line| {
            let mut fields = fields(line);
            let password = fields.pop().filter(|_| fields.len() == 4)?;
            let fits = fields
                .iter()
                .zip(wanted)
                .all(|(field, wanted)| field == "*" || field == wanted);
            fits.then_some(password)
        })
}

/// Five at most: what follows is the password.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            // The fifth field is the rest of the line, colons included.
            ':' if fields.len() < 5 => fields.push(String::new()),
            '\\' => fields
                .last_mut()
                .expect("not empty")
                .extend(characters.next()),
            other => fields.last_mut().expect("not empty").push(other),
        }
    }

    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_password_file_that_fits_has_the_password() {
        let text = "# \
                    host:port:db:user:x\ndb:5432:runs:me:one\n*:*:runs:me:t\\:w\\\\o\nshort:line\n*:*:*:*:three:3\n";
        let password = |wanted| of_file(text, &wanted);
        assert_eq!(
            password(["db", "5432", "runs", "me"]).as_deref(),
            Some("one")
        );
        assert_eq!(
            password(["other", "5432", "runs", "me"]).as_deref(),
            Some("t:w\\o")
        );
        assert_eq!(
            password(["other", "1", "x", "you"]).as_deref(),
            Some("three:3")
        );
        assert_eq!(
            of_file("db:5432:runs:me:one", &["db", "5433", "runs", "me"]),
            None
        );
    }

    #[test]
    fn only_this_host_is_reached_without_tls() {
        let local = |url: &str| {
            url.parse::<Config>()
                .expect(url)
                .get_hosts()
                .iter()
                .all(is_local)
        };
        for url in [
            "postgresql://localhost/x",
            "postgresql://127.0.0.2/x",
            "postgresql://[::1]/x",
            "postgresql:///x?host=/run",
        ] {
            assert!(local(url), "{url}");
        }

        for url in [
            "postgresql://db/x",
            "postgresql://192.0.2.1/x",
            "postgresql://localhost,db/x",
        ] {
            assert!(!local(url), "{url}");
        }
    }
}
