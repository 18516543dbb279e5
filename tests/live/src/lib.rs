//! Helpers for live tests: start the linerate program and the original iperf3 on loopback, and read
//! their output.
//!
//! Two environment variables choose the programs: `LINERATE_BIN` (default: the program of this
//! build) and `IPERF3_BIN` (default `/usr/bin/iperf3`, the Debian package, 3.12).
//!
//! An outcome other than a function's documentation states, or a late one, is a panic: the
//! failure of a test.

#![forbid(unsafe_code)]

mod attacker;
mod broker;
mod browser;
mod busy_cpus;
mod cases;
mod certificate;
mod certificates;
pub mod chain;
mod control_group;
mod deadline;
mod fleet_agent;
mod fleet_lab;
mod forged;
mod host_link;
mod http_control;
mod http_lab;
mod http_load;
mod http_server;
pub mod iperf2;
mod keys;
pub mod namespaces;
mod native;
mod nats;
mod net;
mod nginx;
mod pairing;
mod process;
mod program;
mod raw_native;
mod raw_server;
mod report;
mod service;
mod session;
mod shells;
mod sockets;
mod status;
mod traced;
mod transcript;
mod tun_link;
mod wire;

pub use attacker::{Attacker, give_way};
pub use broker::{Broker, BrokerTls};
pub use browser::{NDT7, RawBrowser, masked};
pub use busy_cpus::BusyCpus;
pub use cases::{each_case, report, skip, unsupported};
pub use certificate::Certificate;
pub use certificates::Certificates;
pub use control_group::ControlGroup;
pub use deadline::{TIMEOUT, wait_for, wait_until};
pub use fleet_agent::{FleetAgent, FleetRun};
pub use fleet_lab::FleetLab;
pub use forged::{FORGED_BYTES, FlowMode, forged};
pub use host_link::HostLink;
pub use http_control::{HttpControl, hello_without_phases};
pub use http_lab::{FEW_DESCRIPTORS, HttpLab, HttpStudy};
pub use http_load::HttpLoad;
pub use http_server::{HttpClient, HttpResponse, HttpServer, wait_for_status};
pub use keys::Keys;
pub use native::NativeHost;
pub use nats::NatsClient;
pub use net::{
    free_port, free_port_run, has_ipv6, is_bound_udp, is_bound_udp_beside, listens, listens_beside,
    udp_socket,
};
pub use nginx::Nginx;
pub use pairing::Pairing;
pub use process::{Finished, Process, Signal};
pub use program::{Program, limited, linerate, original, ours, words};
pub use raw_native::{
    RawNative, datagram, hello, knock, native_cookie, probe_head, stream_head, token,
};
pub use raw_server::{RawServer, Then, send_text};
pub use report::Report;
pub use service::Service;
pub use session::{Pair, Server, run_pair, run_pair_at};
pub use shells::Shells;
pub use sockets::established;
pub use status::{Status, cpu_time};
pub use traced::traced;
pub use transcript::{difference, normalise};
pub use tun_link::{LinkReport, TunLink};
pub use wire::{Control, RawClient, Received, cookie, frame, fresh_cookie, state};
