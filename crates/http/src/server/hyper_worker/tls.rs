//! What a server shows to clients that speak TLS.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ServerConfig;
use tokio_rustls::TlsAcceptor;

use super::certificate::Certificate;
use crate::server::spec::TlsSpec;
use crate::tls::provider;

/// A certificate, ready to be shown.
#[derive(Clone)]
pub struct Identity {
    pub(in crate::server) acceptor: TlsAcceptor,
    fingerprint: String,
}

impl Identity {
    /// SHA-256 of the certificate, in hexadecimal.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the key.
        f.debug_tuple("Identity").field(&self.fingerprint).finish()
    }
}

/// Reads or makes a certificate.
///
/// # Errors
/// In words, with the file.
pub(in crate::server) fn identity(spec: &TlsSpec, addresses: &[SocketAddr]) -> Result<Identity, String> {
    let certificate = match spec {
        TlsSpec::SelfSigned => Certificate::self_signed(names(addresses))?,
        TlsSpec::Files { certificates, key } => Certificate::read(certificates, key)?,
    };
    let fingerprint = certificate.fingerprint();
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(certificate.chain, certificate.key)
        })
        .map_err(|error| format!("cannot use this certificate: {error}"))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Identity {
        acceptor: TlsAcceptor::from(Arc::new(config)),
        fingerprint,
    })
}

/// Names of a self-signed certificate: this host, seen from itself and from others.
fn names(addresses: &[SocketAddr]) -> Vec<String> {
    let listened = addresses.iter().map(SocketAddr::ip).filter(|ip| !ip.is_unspecified());
    let own = linerate_sys::interfaces::addresses().into_iter().map(|(ip, _)| ip);
    let mut names: Vec<String> = listened.chain(own).map(|ip| ip.to_string()).collect();
    names.push("localhost".to_owned());
    names.push(linerate_sys::process::uname().node);
    names.sort();
    names.dedup();
    names
}
