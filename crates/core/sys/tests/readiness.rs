//! Epoll, the doorbell and waiting for single descriptors.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{TIMEOUT, tcp_pair};
use linerate_sys::clock::monotonic_ns;
use linerate_sys::poll::{Epoll, EventFd, Interest, Ready, wait_fd};
use linerate_sys::{socket, stream_io};

fn wait(epoll: &Epoll) -> Vec<Ready> {
    let mut events = Vec::new();
    epoll.wait(&mut events, TIMEOUT).expect("wait");
    events
}

fn look(epoll: &Epoll) -> Vec<Ready> {
    let mut events = Vec::new();
    epoll.wait(&mut events, Some(Duration::ZERO)).expect("wait");
    events
}

const READABLE: Ready = Ready {
    token: 0,
    readable: true,
    writable: false,
    hangup: false,
    error: false,
};

#[test]
fn readiness_comes_under_the_token_and_lasts() {
    let (client, server) = tcp_pair();
    let epoll = Epoll::new().expect("epoll");
    epoll.add(&server, u64::MAX, Interest::READ).expect("add");
    assert_eq!(look(&epoll), []);
    stream_io::send(&client, b"x").expect("send");

    for _ in 0..2 {
        assert_eq!(
            wait(&epoll),
            [Ready {
                token: u64::MAX,
                ..READABLE
            }]
        );
    }

    stream_io::recv(&server, &mut [0; 8]).expect("recv");
    assert_eq!(look(&epoll), []);
}

#[test]
fn edge_triggers_once_per_change() {
    let event = EventFd::new().expect("eventfd");
    let epoll = Epoll::new().expect("epoll");
    epoll
        .add(
            &event,
            1,
            Interest {
                edge: true,
                ..Interest::READ
            },
        )
        .expect("add");

    for _ in 0..2 {
        event.signal();
        assert_eq!(wait(&epoll).len(), 1);
        assert_eq!(look(&epoll), [], "nothing changed since");
    }
}

#[test]
fn interest_is_modified_and_removed() {
    let (client, server) = tcp_pair();
    stream_io::send(&client, b"x").expect("send");
    let epoll = Epoll::new().expect("epoll");
    epoll.add(&server, 1, Interest::WRITE).expect("add");
    assert_eq!(
        wait(&epoll),
        [Ready {
            token: 1,
            readable: false,
            writable: true,
            ..READABLE
        }]
    );
    epoll.modify(&server, 2, Interest::BOTH).expect("modify");
    common::await_readable(&server);
    assert_eq!(
        wait(&epoll),
        [Ready {
            token: 2,
            writable: true,
            ..READABLE
        }]
    );
    epoll
        .modify(&server, 3, Interest::default())
        .expect("modify");
    assert_eq!(look(&epoll), []);
    epoll.remove(&server).expect("remove");
    assert_eq!(
        epoll.remove(&server).expect_err("gone").to_string(),
        "epoll_ctl remove: No such file or directory"
    );
    epoll.add(&server, 1, Interest::READ).expect("add again");
    assert_eq!(
        epoll
            .add(&server, 9, Interest::READ)
            .expect_err("twice")
            .to_string(),
        "epoll_ctl add 9: File exists"
    );
}

#[test]
fn a_connection_closed_both_ways_is_a_hangup() {
    let (client, server) = tcp_pair();
    let epoll = Epoll::new().expect("epoll");
    epoll.add(&server, 1, Interest::READ).expect("add");
    socket::shutdown_write(&client).expect("shutdown");
    assert_eq!(
        wait(&epoll),
        [Ready {
            token: 1,
            ..READABLE
        }],
        "end of file is readable"
    );
    socket::shutdown_write(&server).expect("shutdown");
    assert_eq!(
        wait(&epoll),
        [Ready {
            token: 1,
            hangup: true,
            ..READABLE
        }]
    );
}

#[test]
fn many_events_come_in_portions_and_none_is_lost() {
    let epoll = Epoll::new().expect("epoll");
    let event_fds: Vec<_> = (0..300).map(|_| EventFd::new().expect("eventfd")).collect();
    for (token, event) in (0..).zip(&event_fds) {
        epoll
            .add(
                event,
                token,
                Interest {
                    edge: true,
                    ..Interest::READ
                },
            )
            .expect("add");
        event.signal();
    }

    let mut tokens: Vec<u64> = wait(&epoll)
        .into_iter()
        .chain(wait(&epoll))
        .map(|ready| ready.token)
        .collect();
    tokens.sort_unstable();
    assert_eq!(tokens, (0..300).collect::<Vec<_>>());
}

#[test]
fn a_timeout_never_ends_early_and_clears_old_events() {
    let epoll = Epoll::new().expect("epoll");
    let mut events = vec![READABLE];

    for us in [1, 300, 2_500] {
        let before = monotonic_ns();
        epoll
            .wait(&mut events, Some(Duration::from_micros(us)))
            .expect("wait");
        let slept = monotonic_ns() - before;

        assert_eq!(events, []);
        assert!(slept >= us * 1_000, "{us} us: {slept} ns");
    }
}

#[test]
fn the_doorbell_wakes_another_thread_until_it_is_silenced() {
    let event = Arc::new(EventFd::new().expect("eventfd"));
    let epoll = Epoll::new().expect("epoll");
    epoll.add(&*event, 5, Interest::READ).expect("add");

    let signaller = Arc::clone(&event);
    let thread = std::thread::spawn(move || {
        signaller.signal();
        signaller.signal();
    });
    assert_eq!(
        wait(&epoll),
        [Ready {
            token: 5,
            ..READABLE
        }]
    );
    thread.join().expect("thread");
    assert!(event.drain(), "rang, however often");
    assert!(!event.drain());
    assert_eq!(look(&epoll), []);
}

#[test]
fn one_descriptor_is_waited_for() {
    let event = EventFd::new().expect("eventfd");
    let before = monotonic_ns();
    assert!(!wait_fd(&event, Interest::READ, Some(Duration::from_micros(500))).expect("poll"));
    assert!(monotonic_ns() - before >= 500_000);
    event.signal();

    for timeout in [Some(Duration::ZERO), Some(Duration::MAX), None] {
        assert!(
            wait_fd(&event, Interest::READ, timeout).expect("poll"),
            "{timeout:?}"
        );
    }

    let epoll = Epoll::new().expect("epoll");
    epoll.add(&event, 1, Interest::READ).expect("add");
    let mut events = Vec::new();
    epoll
        .wait(&mut events, Some(Duration::MAX))
        .expect("the longest timeout is none too long");
    assert_eq!(events.len(), 1);
}
