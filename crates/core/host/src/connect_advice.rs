//! Next steps after a connection that could not be opened.

use linerate_sys::errno;
use linerate_sys::error::strerror;

use linerate_model::link_local::scope_advice;

/// The program that a client expects at the other end.
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    /// Commands that start it.
    program: &'static str,
    /// Its tests use UDP as well.
    uses_udp: bool,
}

/// The server of tests.
pub const TEST_SERVER: Expected = Expected {
    program: "`linerate serve` (or `iperf3 -s`)",
    uses_udp: true,
};
/// A server of HTTP.
pub const HTTP_SERVER: Expected = Expected {
    program: "`linerate http serve` (or another server)",
    uses_udp: false,
};
/// The channel beside a server of HTTP.
pub const CONTROL_SERVER: Expected = Expected {
    program: "`linerate http serve` (or `linerate http agent`)",
    uses_udp: false,
};

/// The reason with its object, `HOST:PORT`, and what to try; as it is where nothing is known to
/// try.
pub fn connect_failure(reason: &str, host: &str, port: u16, expected: Expected) -> String {
    let object = if host.contains(':') {
        // Brackets separate an IPv6 address from the port (RFC 3986, section 3.2.2).
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    };
    let reason = if reason.contains(&object) {
        reason.to_owned()
    } else {
        format!("{object}: {reason}")
    };
    match connect_advice(&reason, host, port, expected) {
        Some(advice) => format!("{reason}; {advice}"),
        None => reason,
    }
}

fn connect_advice(reason: &str, host: &str, port: u16, expected: Expected) -> Option<String> {
    let has = |errno: i32| reason.contains(&strerror(errno));
    let Expected { program, uses_udp } = expected;
    let ports = if uses_udp {
        format!("are TCP and UDP port {port}")
    } else {
        format!("is TCP port {port}")
    };

    // connect(2) to a link-local address without a scope fails with this error.
    if has(errno::EINVAL) {
        return scope_advice(host);
    }
    if has(errno::ECONNREFUSED) {
        return Some(format!("is {program} running there, and {ports} open?"));
    }
    // The text of ETIMEDOUT and that of the program's own timeout have these words in common.
    if reason.contains("timed out") {
        return Some(format!(
            "is the host up, is {program} running there, and {ports} open in its firewall?"
        ));
    }
    if has(errno::EHOSTUNREACH) || has(errno::ENETUNREACH) {
        return Some(format!(
            "`ip route get {host}` shows the way from here; is the host up?"
        ));
    }

    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_to_connect_come_with_a_next_step() {
        for (reason, host, expected) in [
            (
                "10.0.0.2:5201: Connection refused",
                "10.0.0.2",
                "10.0.0.2:5201: Connection refused; is `linerate serve` (or `iperf3 -s`) running \
                 there, and are TCP and UDP port 5201 open?",
            ),
            (
                "unable to connect: Connection refused",
                "lab",
                "lab:5201: unable to connect: Connection refused; is `linerate serve` (or `iperf3 \
                 -s`) running there, and are TCP and UDP port 5201 open?",
            ),
            (
                "connection timed out",
                "2001:db8::1",
                "[2001:db8::1]:5201: connection timed out; is the host up, is `linerate serve` (or \
                 `iperf3 -s`) running there, and are TCP and UDP port 5201 open in its firewall?",
            ),
            (
                "unable to connect: [fe80::1]:5201: Invalid argument",
                "fe80::1",
                "unable to connect: [fe80::1]:5201: Invalid argument; a link-local address needs \
                 the device of this host: fe80::1%eth0 (`ip -6 address` lists the devices)",
            ),
            (
                "[fe80::1%9]:5201: Invalid argument",
                "fe80::1%9",
                "[fe80::1%9]:5201: Invalid argument",
            ),
            ("a protocol error", "lab", "lab:5201: a protocol error"),
        ] {
            assert_eq!(connect_failure(reason, host, 5201, TEST_SERVER), expected);
        }
    }
}
