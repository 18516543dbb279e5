//! Protocol options.

use std::path::PathBuf;

use clap::Args;
use linerate_http::plan::{Protocol, Trust, fingerprint};
use linerate_http::protocol::{self, TlsPeer};
use linerate_http::target::Target;
use linerate_model::http::HttpVersion;

/// HTTP/2 and TLS.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Protocol (HTTP/1.1 unless --h2 is given; TLS for https URLs)")]
pub(crate) struct ProtocolArgs {
    /// HTTP/2: by ALPN over TLS, by prior knowledge in plain text
    #[arg(long)]
    h2: bool,
    /// Concurrent requests per connection of HTTP/2 [default: 1]
    #[arg(short = 'm', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    streams: Option<u32>,
    /// Trust any certificate
    #[arg(short = 'k', long, conflicts_with_all = ["cacert", "pin_sha256"])]
    insecure: bool,
    /// PEM file with trusted authorities, instead of this host's
    #[arg(long, value_name = "FILE", conflicts_with = "pin_sha256")]
    cacert: Option<PathBuf>,
    /// Trust the certificate with this SHA-256 and no other
    #[arg(long, value_name = "HEX", value_parser = fingerprint)]
    pin_sha256: Option<[u8; 32]>,
}

impl ProtocolArgs {
    /// The protocol of the plan, overridden by the command line.
    ///
    /// # Errors
    /// Options that contradict each other or the plan.
    pub(crate) fn over(&self, plan: &Protocol) -> Result<Protocol, String> {
        let mut wanted = plan.clone();
        if self.h2 {
            wanted.version = HttpVersion::Http2;
        }
        wanted.streams = self.streams.unwrap_or(plan.streams);

        if self.insecure || self.cacert.is_some() || self.pin_sha256.is_some() {
            let name = |path: &PathBuf| {
                path.to_str()
                    .map(str::to_owned)
                    .ok_or("--cacert: its name is no UTF-8")
            };
            wanted.insecure = self.insecure;
            wanted.cacert = self.cacert.as_ref().map(name).transpose()?;
            wanted.pin_sha256 = self.pin_sha256;
            let trust = wanted.trust();
            trust.map_err(|error| format!("--cacert: {error}"))?;
        }

        if wanted.has_streams_without_http2() {
            return Err(
                "--streams is for HTTP/2 (--h2); linerate http load --pipeline N has as many under \
                 way in HTTP/1.1 in plain text"
                    .to_owned(),
            );
        }

        Ok(wanted)
    }
}

/// The protocol of a load.
///
/// # Errors
/// Options without a meaning for the URL.
pub(crate) fn resolve(wanted: &Protocol, target: &Target) -> Result<protocol::Protocol, String> {
    // A trust that plain text does not check would suggest a protection that is not there.
    let trust = wanted.trust().map_err(|error| error.to_string())?;
    if trust != Trust::System && !target.is_tls {
        return Err(
            "--insecure, --cacert and --pin-sha256 are about certificates, which only https has"
                .to_owned(),
        );
    }

    Ok(protocol::Protocol {
        is_http2: wanted.version == HttpVersion::Http2,
        tls: target.is_tls.then(|| TlsPeer {
            name: target.host.clone(),
            trust,
        }),
    })
}
