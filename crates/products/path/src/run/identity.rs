//! Who the server is: pins, tokens, and the hosts of earlier tests.

use std::path::PathBuf;

use linerate_engine::dialect::native::client::{
    Established, IdentityDemand, NativeClient, Peer, Target,
};
use linerate_model::outcome::Error;
use linerate_model::path::{Dialect, Identity, PathTarget};
use linerate_trust::{HostKey, KnownHosts, Token};

use crate::spec::IdentityOptions;

/// Demands on the identity of a server, by the user and by earlier sessions with it.
///
/// # Errors
/// A pin or a token file that cannot be used.
pub fn demand(options: &IdentityOptions, target: &Target) -> Result<IdentityDemand, Error> {
    let pin = options
        .pin
        .as_deref()
        .map(str::parse)
        .transpose()
        .map_err(|error| Error::usage(format!("--pin: {error}")))?;
    let token = options
        .token_file
        .as_deref()
        .map(Token::from_file)
        .transpose()
        .map_err(Error::usage)?;

    let known = if options.insecure {
        None
    } else {
        known_hosts()
            .ok()
            .and_then(|hosts| hosts.get(&target.host, target.port))
    };
    Ok(IdentityDemand {
        pin,
        token,
        known,
        login: options.login.clone(),
        accept_new: options.accept_new,
        insecure: options.insecure,
        requires_native: options.requires_native,
    })
}

/// Keeps the key of a server that was met for the first time. Returns what the user should know
/// about it.
pub fn remember(target: &Target, peer: &Peer) -> Vec<String> {
    if peer.identity != Identity::New {
        return Vec::new();
    }

    let mut hosts = match known_hosts() {
        Ok(hosts) => hosts,
        Err(error) => return vec![format!("the key of {target} is not remembered: {error}")],
    };
    let mut remarks: Vec<String> = hosts.warnings().iter().map(ToString::to_string).collect();

    if let Err(error) = hosts.remember(&target.host, target.port, peer.fingerprint) {
        remarks.push(format!("the key of {target} is not remembered: {error}"));
    }

    remarks
}

/// Forgets the key of a server; false if none was known.
///
/// # Errors
/// When the file of known hosts cannot be read or written.
pub fn forget(host: &str, port: u16) -> Result<bool, Error> {
    known_hosts()?.forget(host, port).map_err(Error::failed)
}

/// Describes the server for reports.
pub(super) fn target(target: &Target, client: &NativeClient) -> PathTarget {
    let peer = client.peer();
    let host = target.host.as_str();
    let port = target.port;
    PathTarget {
        program: Some(client.welcome().program.clone()),
        identity: peer.identity,
        fingerprint: Some(peer.fingerprint.to_string()),
        connect_ns: Some(linerate_sys::clock::as_ns(peer.connect_time)),
        ..PathTarget::new(host, port, peer.remote.ip(), Dialect::Native)
    }
}

/// Describes a server of iperf3, which has no key.
pub(super) fn unproven(target: &Target, established: &Established) -> PathTarget {
    let remote = established.remote;
    let host = target.host.as_str();
    let port = target.port;
    let mut target = PathTarget::new(host, port, remote.ip(), Dialect::Iperf3);
    target.connect_ns = Some(linerate_sys::clock::as_ns(established.connect_time));
    target
}

fn known_hosts() -> Result<KnownHosts, Error> {
    KnownHosts::load(&path()?).map_err(Error::failed)
}

/// File of the key by which clients recognise this host as a server; it is made at the first call.
///
/// # Errors
/// Where there is no state directory, or the key cannot be read or made.
pub fn host_key_file() -> Result<PathBuf, Error> {
    let file = linerate_store::state_directory()
        .map_err(Error::failed)?
        .join("host_key.pem");
    HostKey::load_or_create(&file).map_err(Error::failed)?;
    Ok(file)
}

fn path() -> Result<PathBuf, Error> {
    Ok(linerate_store::state_directory()
        .map_err(Error::failed)?
        .join("known_hosts"))
}
