//! Address of a broker, and requirements on the connection to it.

use std::fmt::Display;
use std::net::IpAddr;

use async_nats::{ConnectOptions, ServerAddr};
use linerate_sys::file_system;

use crate::spec::BusOptions;

use linerate_model::outcome::{Error, Outcome};

/// Longest file of credentials that is read.
const CREDENTIALS_MAX_BYTES: u64 = 64 << 10;

impl BusOptions {
    /// Host and port, without a password.
    pub(super) fn broker(&self) -> String {
        self.address().map_or_else(
            |_| "broker".to_owned(),
            |address| format!("{}:{}", address.host(), address.port()),
        )
    }

    /// The broker cannot be reached, or refused the connection.
    pub(super) fn unreachable(&self, reason: impl Display) -> Error {
        Error::new(Outcome::Unreachable, format!("{}: {reason}", self.broker()))
    }

    /// Address of the broker, where it is one and no name.
    pub(in crate::run) fn ip(&self) -> Option<IpAddr> {
        let address = self.address().ok()?;
        match address.host() {
            "localhost" => Some(IpAddr::from([127, 0, 0, 1])),
            host => host.trim_matches(['[', ']']).parse().ok(),
        }
    }

    fn address(&self) -> Result<ServerAddr, Error> {
        let wrong = |error: std::io::Error| Error::usage(format!("{}: {error}", self.url));
        self.url.parse().map_err(wrong)
    }

    fn is_local(&self) -> bool {
        self.ip().is_some_and(|ip| ip.is_loopback())
    }

    /// Checks what needs no file.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.address()?;
        if self.is_local() || self.certificate.is_some() || self.credentials.is_some() {
            return Ok(());
        }

        let broker = self.broker();
        Err(Error::usage(format!(
            "{broker}: beyond this host a bus needs a client certificate or credentials"
        )))
    }

    /// Options of the client. Beyond this host the way to a broker is TLS.
    pub(super) fn client(&self) -> Result<(ServerAddr, ConnectOptions), Error> {
        self.check()?;
        let address = self.address()?;
        let mut options =
            ConnectOptions::new().require_tls(!self.is_local() || address.tls_required());

        if let Some(user) = address.username()
            && let Some(password) = address.password()
        {
            options = options.user_and_password(user.to_owned(), password.to_owned());
        }

        if let Some(path) = &self.credentials {
            let unreadable =
                |error: std::io::Error| Error::usage(format!("{}: {error}", path.display()));
            let text = file_system::read_text(path, CREDENTIALS_MAX_BYTES).map_err(unreadable)?;
            options = options.credentials(&text).map_err(unreadable)?;
        }

        if let Some(path) = &self.authority {
            options = options.add_root_certificates(path.clone());
        }

        if let Some((certificate, key)) = &self.certificate {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }

        Ok((address, options))
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn options(
        url: &str,
        credentials: Option<&str>,
    ) -> Result<(ServerAddr, ConnectOptions), Error> {
        let options = BusOptions {
            url: url.to_owned(),
            credentials: credentials.map(PathBuf::from),
            ..BusOptions::default()
        };
        options.client()
    }

    #[test]
    fn brokers_of_other_hosts_need_credentials_and_tls() {
        assert!(options("nats://127.0.0.1:4222", None).is_ok());
        assert!(options("nats://localhost:4222", None).is_ok());
        assert!(options("nats://[::1]:4222", None).is_ok());

        for url in [
            "nats://10.0.0.1:4222",
            "nats://broker:4222",
            "tls://broker:4222",
        ] {
            let refused = options(url, None).map(drop);
            assert!(
                refused
                    .as_ref()
                    .is_err_and(|error| error.to_string().contains("certificate")),
                "{refused:?}"
            );
        }

        let missing = options("nats://broker:4222", Some("/nonexistent.creds")).map(drop);
        assert!(
            missing
                .as_ref()
                .is_err_and(|error| error.to_string().contains("/nonexistent.creds")),
            "{missing:?}"
        );
    }

    #[test]
    fn passwords_are_in_no_message() {
        let options = BusOptions {
            url: "nats://user:secret@127.0.0.1:4223".to_owned(),
            ..BusOptions::default()
        };
        assert_eq!(options.broker(), "127.0.0.1:4223");
    }
}
