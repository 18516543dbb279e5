//! The bus of a command line of the fleet.

use std::path::PathBuf;

use clap::Args;
use linerate::fleet::BusOptions;

/// A broker and the credentials for it.
#[derive(Debug, Args)]
pub(super) struct BusArgs {
    /// Broker that carries the control connections: nats://HOST:PORT or tls://HOST:PORT
    #[arg(long, value_name = "URL")]
    bus: Option<String>,
    /// Certificates of the authorities that the bus may have (PEM) [default: those of the system]
    #[arg(long, value_name = "FILE", requires = "bus")]
    bus_ca: Option<PathBuf>,
    /// Certificate of this client for the bus (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["bus", "bus_key"])]
    bus_cert: Option<PathBuf>,
    /// Key of this certificate (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["bus", "bus_cert"])]
    bus_key: Option<PathBuf>,
    /// Credentials for the bus, as nsc(1) writes them
    #[arg(long, value_name = "FILE", requires = "bus")]
    bus_creds: Option<PathBuf>,
}

impl BusArgs {
    /// The bus, where one is named.
    pub(super) fn resolve(self) -> Option<BusOptions> {
        Some(BusOptions {
            url: self.bus?,
            authority: self.bus_ca,
            certificate: self.bus_cert.zip(self.bus_key),
            credentials: self.bus_creds,
        })
    }
}
