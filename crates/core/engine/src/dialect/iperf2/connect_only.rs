//! Connections that are opened and closed, and nothing else: what is measured is how long
//! connecting takes.

use std::time::{Duration, Instant};

use linerate_model::metrics::ConnectTimes;
use linerate_model::spec::ClientSpec;
use linerate_model::spread::Spread;
use linerate_model::stream::EffectiveOptions;
use linerate_model::{Event, Failure, Flow, Stream, StreamId, StreamRole};
use linerate_sys::socket;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use super::connect;
use super::sockets::{self, DeviceCache};
use crate::interrupts::Interrupts;
use crate::measure::stream_stats::distribution;
use crate::reporter::Reporter;
use crate::wait::pause;

/// Opens `count` connections one after the other, or as many as fit the time.
pub(super) fn run(
    spec: &ClientSpec,
    server: SocketAddr,
    count: Option<u32>,
    reporter: &mut Reporter<'_>,
    interrupts: &dyn Interrupts,
) -> Result<(), Failure> {
    let time = spec.test.end.duration().unwrap_or(Duration::MAX);
    let until = Instant::now().checked_add(time);
    let mut times = Spread::default();
    let mut errors = 0;
    let mut attempts = 0;
    let mut last = Ok(());
    let mut devices = DeviceCache::default();

    while count.is_none_or(|count| attempts < count)
        && until.is_none_or(|until| Instant::now() < until)
    {
        let due = spec
            .local
            .interval
            .map(|interval| Instant::now() + interval);
        attempts += 1;

        let unconnected = connect::open(spec, server, 0)?;
        for outcome in connect::connect_all(vec![unconnected], spec, interrupts)? {
            match outcome {
                Ok(connected) => {
                    times.add(connected.took.as_secs_f64());
                    announce(
                        spec,
                        &connected,
                        StreamId(attempts - 1),
                        &mut devices,
                        reporter,
                    );
                }
                Err(failure) => {
                    errors += 1;
                    reporter.emit(&Event::Warning(failure.message.clone()));
                    last = Err(failure);
                }
            }
        }

        let is_last = count.is_some_and(|count| attempts >= count);
        if let Some(due) = due.filter(|_| !is_last)
            && pause(due.saturating_duration_since(Instant::now()), interrupts).is_err()
        {
            break;
        }
    }

    reporter.emit(&Event::ConnectTimes(ConnectTimes {
        times: distribution(&times),
        errors,
    }));
    if times.count > 0 { Ok(()) } else { last }
}

/// The original numbers all connections 1.
fn announce(
    spec: &ClientSpec,
    connected: &connect::Connected,
    id: StreamId,
    devices: &mut DeviceCache,
    reporter: &mut Reporter<'_>,
) {
    let fd = connected.fd.as_fd();
    let (Ok(local), Ok(remote)) = (socket::local_addr(fd), socket::peer_addr(fd)) else {
        return;
    };
    let mut facts = sockets::stream_facts(fd, 1, spec.test.transport);
    facts.device = devices.device_of(local.ip());

    // A report shows an option of such a connection only where the user has set it, and reading all
    // of them takes longer than anything else that is done with it.
    let is_congestion_set = spec.test.socket.congestion.is_some();
    facts.connect_us = u32::try_from(connected.took.as_micros()).ok();

    let mut stream = Stream::new(
        id,
        StreamRole::Sender,
        Flow::Forward,
        socket::unmap(local),
        socket::unmap(remote),
    );
    stream.effective = if is_congestion_set {
        sockets::effective(fd, spec.test.transport)
    } else {
        EffectiveOptions::default()
    };
    stream.facts = Some(Box::new(facts));
    reporter.emit(&Event::StreamOpened(stream));
}
