//! Set-up of a client before its test: cookie, parameters, block length, file.

use std::time::Instant;

use linerate_iperf3::wire::client::{Client as Machine, ClientAction, ClientSetup};
use linerate_iperf3::wire::{Cookie, ErrorCode, Params, auth};
use linerate_model::event::{Endpoint, TestHeader};
use linerate_model::spec::{ClientSpec, Segmentation};
use linerate_model::{Direction, Event, Failure, Transport};
use linerate_sys::error::io_text;
use linerate_sys::{clock, random};

use crate::data::files;
use crate::data::run::RunSettings;
use crate::dialect::iperf3::control_connection::ControlConnection;
use crate::dialect::iperf3::error::failed;
use crate::dialect::iperf3::udp_headers;
use crate::reporter::{Reporter, test_header};

/// The parameters for the server.
pub(super) fn offer(spec: &ClientSpec, cookie: Cookie, token: Option<String>) -> ClientSetup {
    ClientSetup {
        cookie,
        params: Params::from_client(spec, spec.test.block_len_bytes, token),
        spec: spec.test.clone(),
    }
}

pub(super) fn token(spec: &ClientSpec) -> Result<Option<String>, Failure> {
    let Some(credentials) = &spec.credentials else {
        return Ok(None);
    };
    let token = auth::make_token(credentials, unix_s());
    token
        .map(Some)
        .map_err(|e| ErrorCode::SetClientAuth.failure(Some(&e.to_string())))
}

/// Sends the cookie, the machine's first action, unless the server has one.
pub(super) fn greet(
    spec: &ClientSpec,
    token: Option<String>,
    greeting: Option<&(Cookie, Vec<u8>)>,
    control: &mut ControlConnection,
) -> Result<(Machine, Cookie), Failure> {
    let now = Instant::now();
    if let Some((cookie, _)) = greeting {
        return Ok((
            Machine::introduced(now, offer(spec, *cookie, token)),
            *cookie,
        ));
    }

    let cookie = Cookie::from_random(random::bytes());
    let mut machine = Machine::new(now, offer(spec, cookie, token));
    if let Some(ClientAction::Send(bytes)) = machine.poll_action() {
        control
            .send(&bytes)
            .map_err(|e| ErrorCode::SendCookie.failure(Some(&io_text(&e))))?;
    }

    Ok((machine, cookie))
}

/// Settles the UDP block length: the control connection's segment size avoids fragments on the same
/// path.
pub(super) fn choose_block_len(
    spec: &mut ClientSpec,
    mss_bytes: Option<u32>,
    reporter: &mut Reporter<'_>,
) -> Option<u32> {
    const FALLBACK: u32 = 1460;

    if spec.test.transport != Transport::Udp {
        return None;
    }

    let len = spec.test.block_len_bytes;
    if len != 0 {
        if let Some(mss) = mss_bytes.filter(|&mss| len > mss) {
            reporter.emit(&Event::Warning(format!(
                "UDP block size {len} exceeds TCP MSS {mss}, may result in fragmentation / drops"
            )));
        }

        return None;
    }

    let chosen = match mss_bytes {
        Some(mss) if (1..=65_507).contains(&mss) => mss,
        Some(mss) => {
            reporter.emit(&Event::Warning(format!("Ignoring nonsense TCP MSS {mss}")));
            FALLBACK
        }
        None => FALLBACK,
    };
    spec.test.block_len_bytes = chosen;

    for segmentation in [&mut spec.test.udp.gso, &mut spec.test.udp.gro]
        .into_iter()
        .flatten()
    {
        *segmentation = Segmentation::of_datagrams(chosen);
    }

    Some(chosen)
}

/// A file that cannot be sent is reported before the server prepares a test for it.
pub(super) fn check_file(spec: &ClientSpec) -> Result<(), Failure> {
    match &spec.local.file {
        Some(path) if spec.test.direction != Direction::Reverse => {
            let source = files::source(path, 1).map(|_| ());
            source.map_err(failed(ErrorCode::File))
        }
        _ => Ok(()),
    }
}

/// Header of the report.
pub(super) fn header(
    spec: &ClientSpec,
    cookie: &Cookie,
    started_at_unix_ms: u64,
    mss_bytes: Option<u32>,
) -> TestHeader {
    let mut header = test_header(
        Endpoint::Client,
        spec.host.clone(),
        spec.local.port,
        &spec.test,
        &spec.local,
    );
    header.cookie = cookie.to_string();
    header.started_at_unix_ms = started_at_unix_ms;
    header.control_mss_bytes = mss_bytes;

    header
}

pub(super) fn run_settings(spec: &ClientSpec) -> RunSettings {
    RunSettings {
        spec: spec.test.clone(),
        local: spec.local.clone(),
        decides_end: true,
        measures_cpu: spec.test.want_peer_facts,
        datagrams: Some(udp_headers::FORMAT),
        ..RunSettings::default()
    }
}

fn unix_s() -> i64 {
    i64::try_from(clock::unix_ms() / 1000).unwrap_or(i64::MAX)
}
