//! Protocol options.

use std::path::PathBuf;

use clap::Args;
use linerate_http::plan::{Protocol, Trust, file_name, fingerprint};
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
        let wanted = Protocol {
            version: if self.h2 {
                HttpVersion::Http2
            } else {
                plan.version
            },
            streams: self.streams.unwrap_or(plan.streams),
            trust: self.trust()?.unwrap_or_else(|| plan.trust.clone()),
        };
        if wanted.has_streams_without_http2() {
            return Err(
                "--streams is for HTTP/2 (--h2); linerate http load --pipeline N has as many under \
                 way in HTTP/1.1 in plain text"
                    .to_owned(),
            );
        }

        Ok(wanted)
    }

    fn trust(&self) -> Result<Option<Trust>, String> {
        let file = self.cacert.as_ref().map(|path| {
            let name = path.to_str().ok_or("--cacert: its name is no UTF-8")?;
            file_name(name)
                .map(|name| Trust::File(name.into()))
                .map_err(|error| format!("--cacert: {error}"))
        });
        let pinned = self.pin_sha256.map(Trust::Pinned);
        Ok(self
            .insecure
            .then_some(Trust::Anything)
            .or(file.transpose()?)
            .or(pinned))
    }
}

/// The protocol of a load.
///
/// # Errors
/// Options without a meaning for the URL.
pub(crate) fn resolve(wanted: &Protocol, target: &Target) -> Result<protocol::Protocol, String> {
    // A trust that plain text does not check would suggest a protection that is not there.
    if wanted.trust != Trust::System && !target.is_tls {
        return Err(
            "--insecure, --cacert and --pin-sha256 are about certificates, which only https has"
                .to_owned(),
        );
    }

    Ok(protocol::Protocol {
        is_http2: wanted.version == HttpVersion::Http2,
        tls: target.is_tls.then(|| TlsPeer {
            name: target.host.clone(),
            trust: wanted.trust.clone(),
        }),
    })
}
