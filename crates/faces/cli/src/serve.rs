//! `linerate serve`: the options of the native server.

pub(crate) mod config;

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use linerate_document::service::{Format, Level, LogOptions};
use linerate_iperf3::wire::auth::Authenticator;
use linerate_model::http::units;
#[cfg(feature = "full")]
use linerate_model::policy::NativePolicy;
use linerate_model::policy::{
    AccessRules, AccessSource, Admission, BrowserPolicy, CertificateFiles, FactsAccess,
    Iperf2Listener, LIST_BYTES_MAX, Liveness, ServerLimits, ServerPolicy,
};
use linerate_model::spec::{AcceptedPadding, BindSpec, LocalOptions, ServerAuth, ServerSpec};
use linerate_sys::error::io_text;
use linerate_sys::file_access::{Protected, exposure};
use linerate_sys::file_system;
use linerate_sys::privileges::{self, User};

use crate::output::outcome_of;
#[cfg(feature = "full")]
use crate::record::RecordArgs;
use config::Settings;
use linerate::command_line::values::{self, LimitArg};
use linerate::server::service::{ReadSettings, Service, serve};
use linerate::server::web::{self, WebSpec};
use linerate::{Error, Outcome};

/// Options of the native server.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct ServeArgs {
    /// Take options from this file, too: TOML, whose keys are the long names of options
    ///
    /// `port = 5201`, `allow = ["192.0.2.0/24"]`, `no-native = true`. An option of the command line
    /// takes the place of the one in the file. Unknown keys are errors.
    // Read before this command line is parsed, so that its options are among the others.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Port for clients that speak iperf3's protocol, control and data
    #[arg(short, long, value_name = "PORT", default_value_t = IPERF3_PORT)]
    port: u16,
    /// Local address to listen on [default: all]
    #[arg(short, long, value_name = "ADDRESS")]
    bind: Option<IpAddr>,
    /// Serve clients that speak iperf 2's protocol, too, on port 5001, TCP and UDP; these clients
    /// cannot log in
    #[arg(long, conflicts_with = "private_key")]
    iperf2: bool,
    /// The same on another port
    #[arg(long, value_name = "PORT", conflicts_with = "private_key")]
    iperf2_port: Option<u16>,
    /// Send data over UDP to clients of iperf 2 that ask for it (-R, -d, -r, --full-duplex)
    ///
    /// The protocol does not verify the address of such a client, so the data goes to whatever
    /// address it claims. Only with --allow.
    #[arg(long, requires = "allow")]
    iperf2_udp_reverse: bool,
    /// Listen here only, for clients of iperf3 and of iperf 2 (TCP); the first bytes of a
    /// connection tell them apart
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["port", "bind", "iperf2", "iperf2_port", "private_key"])]
    one_port: Option<SocketAddr>,
    /// What happens to a client that comes while tests run: `parallel[:N]`, `queue[:N[/SECONDS]]`
    /// or `exclusive`
    #[arg(long, value_name = "HOW", default_value = "parallel:1000", value_parser = values::admission)]
    admit: Admission,
    /// End a test whose client shows no sign of life for this long [default: 10 while another
    /// client waits for its place, else 120]
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    liveness: Option<Duration>,
    /// Serve these addresses only; @FILE for a file with one range per line; may be repeated
    #[arg(long, value_name = "CIDR|@FILE", value_parser = values::access)]
    allow: Vec<AccessSource>,
    /// Do not serve these addresses, even if allowed; may be repeated
    #[arg(long, value_name = "CIDR|@FILE", value_parser = values::access)]
    deny: Vec<AccessSource>,
    /// Limit a scope: server, address or user; keys tests, streams, duration, bytes, rate; may be
    /// repeated
    ///
    /// `tests` counts tests at once; `streams`, `duration` (seconds) and `bytes` are those of one
    /// test; `rate` (bit/s) is that of all tests of the scope together. An address is a single IPv4
    /// address or a /64 of IPv6. Unless named, an address has a tenth of the places (at least 8),
    /// and a test of a client that has not logged in lasts an hour.
    #[arg(long, value_name = "SCOPE:KEY=N[,...]", value_parser = values::limit)]
    limit: Vec<LimitArg>,
    /// Let UDP streams come from another address than their control connection
    ///
    /// This holds for tests in which only the client sends; the server sends data to no address
    /// without a control connection. It costs turns: of all clients only one at a time opens its
    /// UDP streams, and while another one waits it has 2 s for all of them.
    #[arg(long)]
    allow_split_address: bool,
    /// Clients with --lr-doctor that get facts about this host: `trusted`, `all` or `none`
    ///
    /// Trusted are those that have logged in, and all clients if --allow is given. The facts are
    /// names, settings and counters of the interface a client came through, and settings of the
    /// kernel.
    #[arg(long, value_name = "WHO", default_value = "trusted", value_parser = values::facts)]
    facts: FactsAccess,
    #[cfg(feature = "full")]
    #[command(flatten)]
    native: NativeArgs,
    /// Serve neither browsers nor ndt7 clients, which find a test page at the port of iperf3
    ///
    /// They log in over TLS alone: with --private-key they are served with --tls-cert, and with
    /// --tokens where --tokens-for names the native dialect.
    #[arg(long)]
    no_browser: bool,
    /// Serve browsers over TLS, too, at the same port, with the certificates of this PEM file
    #[cfg(feature = "full")]
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, a PEM file that its owner alone may read
    #[cfg(feature = "full")]
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Let web pages of other origins test, too
    #[arg(long, conflicts_with = "no_browser")]
    any_origin: bool,
    /// How long results of the test page are kept; without --results at most until the server ends
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = kept)]
    keep: Duration,
    /// Keep results of the test page in this directory, for later servers
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Answer test packets of STAMP (RFC 8762) and TWAMP Light, as routers send them
    ///
    /// UDP sources can be forged, so this needs --allow. An answer is never longer than the packet.
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = STAMP_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    stamp: Option<u16>,
    /// Offer metrics for Prometheus at http://ADDRESS:PORT/metrics
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    /// Serve as this user, without any privilege, as soon as the ports are bound; only root can
    ///
    /// The files of --users, --allow @FILE and --deny @FILE are read again later, so this user must
    /// be able to read them; the private key is read before. The port must be one that every user
    /// may bind (1024 and above), because UDP streams and SCTP bind to it while tests run.
    #[arg(long, value_name = "NAME", value_parser = user)]
    user: Option<User>,
    /// Form of the log
    #[arg(long, value_name = "FORM", default_value = "text")]
    log_format: FormatArg,
    /// Least important messages that are logged
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: LevelArg,
    /// Time between two log lines about running tests
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = values::seconds)]
    interval: Duration,
    /// Ask clients to log in; RSA private key in PEM form
    #[arg(long, value_name = "FILE", requires = "users")]
    private_key: Option<PathBuf>,
    /// Users that may log in, one line user,hash each; read at every login
    #[arg(long, value_name = "FILE", requires = "private_key")]
    users: Option<PathBuf>,
    /// Largest difference between the clocks of client and server during a login
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = values::seconds)]
    max_skew: Duration,
    /// Accept logins of clients before 3.17 as well, whose padding is less safe
    #[arg(long, requires = "private_key")]
    accept_both_paddings: bool,
    /// Show the running tests on the terminal of the standard error; the log is printed at the end
    /// unless it goes to a file
    #[cfg(feature = "full")]
    #[arg(long)]
    tui: bool,
    /// Offer the operator a page of the running tests and of the results of the test page, at /status
    ///
    /// A link with a random token is printed once, or the token is that of --token-file. Outliers
    /// among labels and clients are marked.
    #[arg(long)]
    web: bool,
    /// File with the token of --web: 22 to 256 letters, digits and -._~
    #[arg(long, value_name = "FILE", requires = "web")]
    token_file: Option<PathBuf>,
    #[cfg(feature = "full")]
    #[command(flatten)]
    record: RecordArgs,
}

/// Options of the native dialect, which the drop-in program does not speak.
#[cfg(feature = "full")]
#[derive(Debug, Args)]
struct NativeArgs {
    /// Do not serve `linerate test`
    #[arg(long, conflicts_with_all = ["host_key", "tokens"])]
    no_native: bool,
    /// Do not serve clients that speak iperf3's protocol
    #[arg(long, conflicts_with = "no_native")]
    no_iperf3: bool,
    /// Key by which clients of `linerate test` recognise this server, made at the first start
    /// [default: host_key.pem in the state directory]
    #[arg(long, value_name = "FILE")]
    host_key: Option<PathBuf>,
    /// Serve `linerate test` to clients alone that prove a token of this file, one a line, with a
    /// name before it or without
    ///
    /// A token guards the native dialect, that of `linerate test`, and no other: clients of iperf3
    /// and iperf 2 have none. So it needs --no-iperf3, a login for clients of iperf3
    /// (--private-key), or --tokens-for native.
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// The dialect that needs a token; clients of iperf3 and iperf 2 are served without one
    #[arg(long, value_name = "DIALECT", requires = "tokens")]
    tokens_for: Option<TokensFor>,
}

const NOTES: &str = "\
Clients are iperf3 from version 3.12 on, or linerate. Any number of them may come at the same time.

Signals: SIGTERM and SIGINT end the server, with a message to every client. SIGHUP reads files again: those of --allow, --deny, --tokens, --tls-cert and --tls-key, and that of --config, of which access lists, limits, tokens and certificates take effect.

Examples:
  linerate serve                                               port 5201, all networks
  linerate serve --allow 192.0.2.0/24 --limit address:tests=2  one network, 2 tests per address
  linerate serve --private-key private.pem --users users.csv   users with a password
  linerate serve --no-iperf3 --tokens tokens                   linerate test alone, with a token
  linerate serve --log-format json --metrics 127.0.0.1:9200    JSON log, metrics
  linerate serve --tui                                         the running tests, live
  linerate serve --web                                         a page with the same, at /status
  linerate serve --config /etc/linerate/serve.toml             options of a file
  linerate serve --stamp --allow 192.0.2.0/24                  reflector for STAMP of routers
  linerate serve --user nobody                                 started by root, without privileges

Exit codes: 0 ended by a signal, 1 it cannot serve, 2 wrong command line.";

/// Dialects that a token can guard.
#[cfg(feature = "full")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TokensFor {
    /// That of `linerate test`
    Native,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FormatArg {
    /// Sentences
    Text,
    /// One JSON object per line
    Json,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LevelArg {
    /// Nothing but failures of the server itself
    Error,
    /// Refusals and tests that ended early
    Warn,
    /// Every test
    Info,
    /// Every test, and its rate while it runs
    Debug,
}

/// Serves until a signal comes.
pub(crate) fn main(args: ServeArgs, settings: Settings) -> Outcome {
    let read = move || settings.read();
    let read = args.config.is_some().then_some(&read as &ReadSettings);
    let served = args.resolve().map_err(Error::usage).and_then(|service| {
        serve(&service, read).map_err(|error| Error::new(error.outcome, format!("error - {error}")))
    });
    outcome_of("linerate", served.map(|()| Outcome::Done))
}

/// Longest test of a client that has not logged in. A limit on the duration that was named takes
/// its place.
const STRANGER_TIME_MAX: Duration = Duration::from_secs(3600);
const IPERF3_PORT: u16 = 5201;
const IPERF2_PORT: u16 = 5001;
/// RFC 8762 section 4.1.
const STAMP_PORT: &str = "862";
const DAY: Duration = Duration::from_secs(86_400);
/// Time between two samples of the running tests.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// Reads the name of a user other than root.
fn user(name: &str) -> Result<User, String> {
    match User::by_name(name) {
        // Root keeps every privilege after setuid(2), which would make the option a false promise.
        Ok(Some(user)) if user.is_root() => Err("this user keeps all privileges".to_owned()),
        Ok(Some(user)) => Ok(user),
        Ok(None) => Err("there is no such user".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads a time with its unit, which may be days.
fn kept(text: &str) -> Result<Duration, String> {
    let Some(days) = text.strip_suffix('d') else {
        return units::duration(text).map_err(|error| error.to_string());
    };
    let days: u32 = days
        .parse()
        .map_err(|_| "expected a number of days".to_owned())?;
    Ok(DAY.saturating_mul(days))
}

fn anonymous_time_max(limits: &ServerLimits) -> Option<Duration> {
    // A time that the operator names holds for clients without a login too.
    let is_named = limits.server.duration.is_some() || limits.address.duration.is_some();
    (!is_named).then_some(STRANGER_TIME_MAX)
}

/// Longest private key that is read; one of 16,384 bits has 13 KiB.
const KEY_BYTES_MAX: u64 = 64 << 10;

#[cfg(feature = "full")]
impl NativeArgs {
    /// The policy with warnings: without a place for a key the key lasts as long as the server.
    fn policy(&self) -> (Option<NativePolicy>, Vec<String>) {
        let mut warnings = Vec::new();
        if self.no_native {
            return (None, warnings);
        }

        let mut default = || match linerate::path::host_key_file() {
            Ok(file) => Some(file),
            Err(error) => {
                warnings.push(format!(
                    "clients will not recognise this server after a restart: {error}"
                ));
                None
            }
        };
        let policy = NativePolicy {
            host_key: self.host_key.clone().or_else(&mut default),
            tokens: self.tokens.clone(),
        };
        (Some(policy), warnings)
    }
}

/// Access to a file that others than its owner should not have; `what` names its content. A file
/// without metadata is reported by who opens it.
fn exposed(what: &str, path: &Path, protected: Protected) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    exposure(path, &metadata, protected).map(|exposure| format!("{what} {exposure}"))
}

impl ServeArgs {
    /// Decides what is to be served.
    ///
    /// # Errors
    /// When the key cannot be read, in words.
    fn resolve(self) -> Result<Service, String> {
        self.check_user()?;
        let auth = self.auth()?;
        let mut warnings = self.warnings();
        let (policy, remarks) = self.policy()?;
        warnings.extend(remarks);
        let web = self.web_spec()?;
        let host = self
            .one_port
            // One address for all dialects replaces --bind and --port.
            .map(|address| address.ip())
            .or(self.bind)
            .map(|address| address.to_string());
        let local = LocalOptions {
            port: self.one_port.map_or(self.port, |address| address.port()),
            bind: BindSpec {
                host,
                ..BindSpec::default()
            },
            interval: Some(SAMPLE_INTERVAL),
            ..LocalOptions::default()
        };

        let spec = ServerSpec {
            local,
            auth,
            policy,
            ..ServerSpec::default()
        };

        let log = LogOptions {
            level: match self.log_level {
                LevelArg::Error => Level::Error,
                LevelArg::Warn => Level::Warn,
                LevelArg::Info => Level::Info,
                LevelArg::Debug => Level::Debug,
            },
            format: match self.log_format {
                FormatArg::Text => Format::Text,
                FormatArg::Json => Format::Json,
            },
            progress_interval: self.interval,
        };
        let mut service = Service::new(spec, log);
        service.metrics = self.metrics;
        service.warnings = warnings;
        service.user = self.user;
        #[cfg(feature = "full")]
        {
            service.record = self.record.of_server()?;
            service.tui = self.tui;
        }
        service.web = web;

        Ok(service)
    }

    fn check_stamp(&self) -> Result<(), String> {
        match self.stamp {
            Some(_) if self.allow.is_empty() => Err(
                "--stamp: the source of a UDP packet can be forged, so the reflector answers named \
                 addresses only; add --allow 192.0.2.0/24 with the network of your senders"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }

    /// Who may test what, with warnings. Opens no file but that of the host key.
    fn policy(&self) -> Result<(ServerPolicy, Vec<String>), String> {
        self.check_stamp()?;
        #[cfg(feature = "full")]
        self.check_tokens()?;
        let mut limits = ServerLimits::default();
        self.limit.iter().for_each(|limit| limit.apply(&mut limits));

        let may_test = self.may_browsers_test();
        let browsers = (may_test || self.web).then_some(BrowserPolicy {
            may_test,
            any_origin: self.any_origin,
            keep: self.keep,
            certificate: self.certificate(),
            results: self.results.clone(),
        });
        #[cfg(feature = "full")]
        let (iperf3, (native, warnings)) = (!self.native.no_iperf3, self.native.policy());
        #[cfg(not(feature = "full"))]
        let (iperf3, (native, warnings)) = (true, (None, Vec::new()));
        let policy = ServerPolicy {
            admission: self.admit,
            liveness: self.liveness.map(Liveness::always).unwrap_or_default(),
            access: AccessRules::new(self.allow.clone(), self.deny.clone()),
            anonymous_time_max: anonymous_time_max(&limits),
            limits,
            allow_split_address: self.allow_split_address,
            iperf2: self.iperf2_listener(),
            iperf2_udp_reverse: self.iperf2_udp_reverse,
            facts: self.facts,
            iperf3,
            native,
            browsers,
            stamp: self.stamp,
        };
        Ok((policy, warnings))
    }

    /// No dialect is open to everybody while a token seems to guard the server.
    #[cfg(feature = "full")]
    fn check_tokens(&self) -> Result<(), String> {
        if self.native.tokens.is_none() || self.native.tokens_for == Some(TokensFor::Native) {
            return Ok(());
        }

        // Clients of iperf3 can log in, those of iperf 2 cannot.
        let iperf3 = (!self.native.no_iperf3 && self.private_key.is_none())
            .then_some(("iperf3", "--no-iperf3"));
        let iperf2 = match self.iperf2_listener() {
            Iperf2Listener::Refused => None,
            _ if self.one_port.is_some() => Some(("iperf 2", "--port instead of --one-port")),
            _ => Some(("iperf 2", "no --iperf2")),
        };
        let open: Vec<_> = [iperf3, iperf2].into_iter().flatten().collect();
        if open.is_empty() {
            return Ok(());
        }

        let names: Vec<&str> = open.iter().map(|(name, _)| *name).collect();
        let remedies: Vec<&str> = open.iter().map(|(_, remedy)| *remedy).collect();
        Err(format!(
            "--tokens: a token guards `linerate test` alone, and clients of {} would be served \
             without one; leave them out with {}, or serve them without a token with --tokens-for \
             native",
            names.join(" and "),
            remedies.join(" and "),
        ))
    }

    /// A user can be changed to, and nothing that is needed later is lost with the privileges.
    fn check_user(&self) -> Result<(), String> {
        if self.user.is_none() {
            return Ok(());
        }
        if !privileges::is_root() {
            return Err("--user: only root can serve as another user".to_owned());
        }

        // Ports below the first unprivileged one need CAP_NET_BIND_SERVICE (ip(7)).
        let first = privileges::first_port_for_all();
        let port = self.one_port.map_or(self.port, |address| address.port());
        let ports = match self.iperf2_listener() {
            Iperf2Listener::Port(other) => [Some(port), Some(other)],
            _ => [Some(port), None],
        };
        match ports
            .into_iter()
            .flatten()
            .find(|port| (1..first).contains(port))
        {
            Some(port) => Err(format!(
                "--user: only root can bind port {port}, and UDP streams bind it again while tests \
                 run; choose {first} or above"
            )),
            None => Ok(()),
        }
    }

    #[cfg(feature = "full")]
    fn certificate(&self) -> Option<CertificateFiles> {
        let files = self.tls_cert.clone().zip(self.tls_key.clone());
        files.map(|(chain, key)| CertificateFiles { chain, key })
    }

    #[cfg(not(feature = "full"))]
    fn certificate(&self) -> Option<CertificateFiles> {
        None
    }

    /// Where clients prove who they are, those without a proof are not served.
    fn may_browsers_test(&self) -> bool {
        #[cfg(feature = "full")]
        let needs_token = self.native.tokens.is_some() && self.native.tokens_for.is_none();
        #[cfg(not(feature = "full"))]
        let needs_token = false;
        let can_log_in = self.private_key.is_none() || self.certificate().is_some();
        !self.no_browser && !needs_token && can_log_in
    }

    fn iperf2_listener(&self) -> Iperf2Listener {
        let default = self.iperf2.then_some(IPERF2_PORT);
        match (self.one_port, self.iperf2_port.or(default)) {
            (Some(_), _) => Iperf2Listener::SamePort,
            (None, None | Some(0)) => Iperf2Listener::Refused,
            (None, Some(port)) => Iperf2Listener::Port(port),
        }
    }

    /// Token of the operator's page.
    fn web_spec(&self) -> Result<Option<WebSpec>, String> {
        if !self.web {
            return Ok(None);
        }
        let mut spec = WebSpec::default();
        let Some(path) = &self.token_file else {
            return Ok(Some(spec));
        };
        // A token that others can read protects nothing, so this is an error and no warning.
        if let Some(exposed) = exposed("token file", path, Protected::Secret) {
            return Err(exposed);
        }

        let text = file_system::read_text(path, web::TOKEN_FILE_BYTES_MAX);
        let text = text.map_err(|error| format!("{}: {}", path.display(), io_text(&error)))?;
        let token = web::token(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        spec.token = Some(token);

        Ok(Some(spec))
    }

    fn warnings(&self) -> Vec<String> {
        let key = self.private_key.as_deref();
        let users = self.users.as_deref();
        [
            key.and_then(|path| exposed("private key", path, Protected::Secret)),
            users.and_then(|path| exposed("user file", path, Protected::Trusted)),
            self.results
                .as_deref()
                .and_then(|path| exposed("directory of results", path, Protected::Directory)),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn auth(&self) -> Result<Option<ServerAuth>, String> {
        let (Some(key), Some(users_file)) = (&self.private_key, &self.users) else {
            return Ok(None);
        };
        let named = |path: &PathBuf, error: std::io::Error| {
            format!("{}: {}", path.display(), io_text(&error))
        };
        let private_key_pem =
            file_system::read_text(key, KEY_BYTES_MAX).map_err(|e| named(key, e))?;

        // It is read at every login, and one that cannot be read then refuses every user.
        file_system::read_text(users_file, LIST_BYTES_MAX).map_err(|e| named(users_file, e))?;
        let mut auth = ServerAuth::new(private_key_pem, users_file);
        auth.max_skew = self.max_skew;
        auth.padding = if self.accept_both_paddings {
            AcceptedPadding::Both
        } else {
            // Padding of PKCS#1 v1.5 is accepted only on request (RSAES-PKCS1-v1_5, RFC 8017,
            // section 7.2).
            AcceptedPadding::Oaep
        };

        // The server checks it once more, with the words of iperf3 alone.
        Authenticator::new(&auth.private_key_pem, auth.padding, auth.max_skew)
            .map_err(|error| format!("{}: {error}", key.display()))?;
        Ok(Some(auth))
    }
}
