//! A server with one place: a stranger that takes it again and again keeps no other address out.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use linerate_interop::{Attacker, Service, TIMEOUT, fresh_cookie, original, wait_until};

const TRIES: usize = 20;
const TRY_PERIOD: Duration = Duration::from_secs(1);

/// Takes the place, holds it until the server ends the connection, and comes again at once.
fn take_place(stranger: &Attacker<'_>) {
    while stranger.goes_on() {
        let Some(control) = stranger.connect() else {
            return;
        };
        hold(stranger, control);
    }
}

fn hold(stranger: &Attacker<'_>, mut control: TcpStream) {
    // So that the end of the test is noticed.
    let _ = control.set_read_timeout(Some(Duration::from_millis(100)));
    let _ = control.write_all(&fresh_cookie());
    let mut answer = [0; 16];

    while stranger.goes_on() {
        match control.read(&mut answer) {
            Ok(1..) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Ok(0) | Err(_) => return,
        }
    }
}

#[test]
fn a_stranger_that_takes_the_place_again_and_again_does_not_keep_a_client_out() {
    let service = Service::start(&["--admit", "exclusive"]);
    let (is_over, server) = (
        AtomicBool::new(false),
        SocketAddr::from((Ipv4Addr::LOCALHOST, service.port)),
    );
    let stranger = Attacker::new(
        Ipv4Addr::new(127, 0, 7, 1),
        Ipv4Addr::LOCALHOST,
        server,
        &is_over,
    );
    let is_served = thread::scope(|scope| {
        scope.spawn(|| stranger.repeat(take_place));
        let is_refused = || {
            // As often as a user would try: a client that tries all the time is luckier than the
            // stranger now and then.
            thread::sleep(TRY_PERIOD);
            let client = service
                .client(original(), &["-n", "64K", "-B", "127.0.0.99"])
                .finish();
            client.code() != Some(0)
        };
        let is_taken = wait_until(TIMEOUT, is_refused);
        let is_served = is_taken && (0..TRIES).any(|_| !is_refused());

        is_over.store(true, Ordering::Relaxed);
        is_served
    });
    assert!(is_served, "{service:?}");
}
