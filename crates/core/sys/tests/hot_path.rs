//! The calls of the data path move exactly the bytes they claim.

mod common;

use std::io::{ErrorKind, IoSlice};
use std::os::fd::{AsFd, OwnedFd};

use common::{V4, V6, address, await_readable, await_writable, open, pattern, tcp_pair, udp_pair};
use linerate_sys::caps::Capabilities;
use linerate_sys::clock::{self, RealtimeOffset};
use linerate_sys::sendfile_source::SourceFile;
use linerate_sys::socket::{self, Protocol};
use linerate_sys::stream_io::{self, Followed};
use linerate_sys::udp::{self, RecvBatch};
use linerate_sys::{error, sockopt};
use socket2::SockRef;

/// Receives everything until end of file.
fn drain(fd: impl AsFd) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buffer = [0; 65_536];

    loop {
        await_readable(&fd);
        match stream_io::recv(&fd, &mut buffer).expect("recv") {
            0 => return all,
            len => all.extend_from_slice(&buffer[..len]),
        }
    }
}

#[test]
fn slices_leave_in_their_order_and_more_than_one_call_takes_is_left() {
    let (client, server) = tcp_pair();
    let words = [
        IoSlice::new(b"head"),
        IoSlice::new(b""),
        IoSlice::new(b" body"),
    ];
    assert_eq!(
        stream_io::send_slices(&client, &words, Followed::Soon).expect("send"),
        9
    );

    let many = vec![IoSlice::new(b"x"); stream_io::SLICES_MAX + 1];
    let sent = stream_io::send_slices(&client, &many, Followed::No).expect("send");
    assert_eq!(sent, stream_io::SLICES_MAX);

    let mut received = vec![0; 9 + sent];
    let mut filled = 0;
    while filled < received.len() {
        await_readable(&server);
        filled += stream_io::recv(&server, &mut received[filled..]).expect("recv");
    }

    assert!(received.starts_with(b"head bodyx"));
}

#[test]
fn full_and_empty_buffers_would_block() {
    let (client, server) = tcp_pair();
    assert_eq!(
        stream_io::recv(&server, &mut [0; 8])
            .expect_err("empty")
            .kind(),
        ErrorKind::WouldBlock
    );
    assert_eq!(
        stream_io::recv_discard(&server, 8)
            .expect_err("empty")
            .kind(),
        ErrorKind::WouldBlock
    );

    let full = loop {
        if let Err(error) = stream_io::send(&client, &[0; 65_536]) {
            break error;
        }
    };
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
}

#[test]
fn peeked_bytes_stay() {
    let (client, server) = tcp_pair();
    stream_io::send(&client, b"header and body").expect("send");
    await_readable(&server);

    let mut buffer = [0; 6];
    assert_eq!(stream_io::peek(&server, &mut buffer).expect("peek"), 6);
    assert_eq!(&buffer, b"header");
    drop(client);
    assert_eq!(drain(server), b"header and body");
}

#[test]
fn discarded_bytes_are_counted_and_gone() {
    let (client, server) = tcp_pair();
    stream_io::send(&client, &pattern(50_000)).expect("send");
    stream_io::send(&client, b"tail").expect("send");

    let mut discarded = 0;
    while discarded < 50_000 {
        await_readable(&server);
        discarded += stream_io::recv_discard(&server, 50_000 - discarded).expect("discard");
    }

    drop(client);
    assert_eq!(drain(&server), b"tail");
    assert_eq!(stream_io::recv_discard(&server, 8).expect("end of file"), 0);
}

#[test]
fn a_file_is_sent_from_the_offset_to_its_end() {
    let (client, server) = tcp_pair();
    let content = pattern(300_000);
    let file = SourceFile::filled("payload", &content).expect("memfd");
    let receiver = std::thread::spawn(move || drain(server));
    let mut offset = 1000;

    loop {
        await_writable(&client);
        let before = offset;
        let sent = stream_io::send_file(&client, &file, &mut offset, 70_000).expect("sendfile");
        assert_eq!(offset, before + sent as u64);

        if sent == 0 {
            break;
        }
    }

    assert_eq!(offset, content.len() as u64);
    drop(client);
    assert_eq!(receiver.join().expect("receiver"), content[1000..]);
}

#[test]
fn a_vanished_peer_is_an_error_not_a_signal() {
    let (client, server) = tcp_pair();
    drop(server);

    let error = loop {
        await_writable(&client);
        if let Err(error) = stream_io::send(&client, b"x") {
            break error;
        }
    };
    assert!(
        matches!(
            error.kind(),
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
        ),
        "{error}"
    );
    assert!(["Broken pipe", "Connection reset by peer"].contains(&error::io_text(&error).as_str()));
}

#[test]
fn a_datagram_comes_with_its_sender() {
    for local in [V4, V6] {
        let (sender, receiver) = udp_pair(local);
        assert_eq!(udp::send(&sender, b"ping").expect("send"), 4);
        let mut buffer = [0; 16];

        await_readable(&receiver);
        let (len, from) = udp::recv_from(&receiver, &mut buffer).expect("recv");
        assert_eq!(
            (&buffer[..len], from),
            (
                b"ping".as_slice(),
                socket::local_addr(&sender).expect("local")
            )
        );
        assert_eq!(
            SockRef::from(&receiver)
                .send_to(b"pong!", &from.into())
                .expect("send"),
            5
        );
        await_readable(&sender);
        assert_eq!(udp::recv(&sender, &mut buffer).expect("recv"), 5);
        assert_eq!(
            udp::recv(&sender, &mut buffer).expect_err("empty").kind(),
            ErrorKind::WouldBlock
        );
    }
}

#[test]
fn an_ipv4_sender_to_a_dual_stack_socket_is_shown_as_ipv4() {
    let receiver = open("[::]:0", Protocol::Udp);
    sockopt::IPV6_V6ONLY.set(&receiver, false).expect("set");
    socket::bind(&receiver, &address("[::]:0")).expect("bind");

    let port = socket::local_addr(&receiver).expect("local").port();
    let sender = open(V4, Protocol::Udp);
    socket::connect(&sender, &address(&format!("127.0.0.1:{port}"))).expect("connect");

    let here = socket::local_addr(&sender).expect("local");
    udp::send(&sender, b"one").expect("send");
    udp::send(&sender, b"two").expect("send");
    await_readable(&receiver);
    assert_eq!(
        udp::recv_from(&receiver, &mut [0; 8]).expect("recv"),
        (3, here)
    );

    let mut batch = RecvBatch::new(4, 100).expect("memory");
    assert_eq!(receive(&mut batch, &receiver), 1);
    assert_eq!(batch.message(0).from, Some(here));
}

#[test]
fn a_closed_port_answers_the_next_send_with_refused() {
    let (sender, receiver) = udp_pair(V4);
    drop(receiver);
    udp::send(&sender, b"x").expect("the closed port is not known yet");
    await_readable(&sender);
    assert_eq!(
        udp::send(&sender, b"x").expect_err("ICMP came").kind(),
        ErrorKind::ConnectionRefused
    );
}

#[test]
fn a_batch_arrives_datagram_by_datagram_with_its_source() {
    let (sender, receiver) = udp_pair(V4);
    let data = pattern(1_000 * 9 + 123);
    assert_eq!(
        udp::send_many(&sender, &data, 1_000).expect("send"),
        10,
        "the last one is shorter"
    );

    let here = socket::local_addr(&sender).expect("local");
    let mut batch = RecvBatch::new(4, 1_500).expect("memory");
    let mut chunks = data.chunks(1_000);

    for expected in [4, 4, 2] {
        assert_eq!(receive(&mut batch, &receiver), expected);
        for i in 0..expected {
            let message = batch.message(i);
            assert_eq!(message.data, chunks.next().expect("no more than were sent"));
            assert_eq!(
                (message.segment_len, message.full_len),
                (message.data.len(), message.data.len())
            );
            assert_eq!((message.from, message.datagrams()), (Some(here), 1));
        }
    }

    assert_eq!(
        batch.recv(&receiver).expect_err("empty").kind(),
        ErrorKind::WouldBlock
    );
}

#[test]
fn batch_keeps_the_source_of_each_datagram() {
    let (first, receiver) = udp_pair(V4);
    let second = open(V4, Protocol::Udp);
    socket::connect(&second, &socket::local_addr(&receiver).expect("local")).expect("connect");

    for fd in [&first, &second, &first] {
        udp::send(fd, b"x").expect("send");
    }

    let name = |fd: &OwnedFd| Some(socket::local_addr(fd).expect("local"));
    let mut batch = RecvBatch::new(8, 100).expect("memory");
    assert_eq!(receive(&mut batch, &receiver), 3);

    let sources: Vec<_> = (0..3).map(|i| batch.message(i).from).collect();
    assert_eq!(sources, [name(&first), name(&second), name(&first)]);
}

#[test]
fn a_batch_takes_no_more_than_its_limit_and_no_zero_length() {
    let (sender, _receiver) = udp_pair(V4);
    assert_eq!(
        udp::send_many(&sender, &[7; 1000], 10).expect("send"),
        udp::BATCH_MAX
    );
    assert_eq!(
        udp::send_many(&sender, &[7; 10], 0)
            .expect_err("zero")
            .kind(),
        ErrorKind::InvalidInput
    );
}

#[test]
fn short_slot_reports_the_full_length() {
    let (sender, receiver) = udp_pair(V4);
    let data = pattern(1_200);
    udp::send(&sender, &data).expect("send");
    udp::send(&sender, b"").expect("an empty datagram");

    let mut batch = RecvBatch::new(4, 16).expect("memory");
    assert_eq!(receive(&mut batch, &receiver), 2);
    let cut = batch.message(0);
    assert_eq!((cut.data, cut.full_len), (&data[..16], 1_200));
    assert_eq!(cut.datagrams(), 1);

    let empty = batch.message(1);
    assert_eq!(
        (empty.data.len(), empty.full_len, empty.datagrams()),
        (0, 0, 1)
    );
    assert_eq!(empty.segments().count(), 0);
}

#[test]
#[should_panic(expected = "only received messages")]
fn messages_of_an_earlier_call_cannot_be_read() {
    let (sender, receiver) = udp_pair(V4);
    udp::send(&sender, b"x").expect("send");
    let mut batch = RecvBatch::new(4, 16).expect("memory");
    assert_eq!(receive(&mut batch, &receiver), 1);
    batch.recv(&receiver).expect_err("empty");

    let _ = batch.message(0);
}

#[test]
fn the_memory_of_a_batch_is_bounded() {
    let batch = RecvBatch::new(usize::MAX, usize::MAX).expect("memory");
    assert_eq!(
        format!("{batch:?}"),
        "RecvBatch { slots: 128, slot_len: 65536, received: 0 }"
    );
}

#[test]
fn a_batch_moves_to_another_thread() {
    let (sender, receiver) = udp_pair(V4);
    let mut batch = RecvBatch::new(2, 100).expect("memory");
    udp::send(&sender, b"first").expect("send");
    assert_eq!(receive(&mut batch, &receiver), 1);
    udp::send(&sender, b"second").expect("send");

    let seen = std::thread::spawn(move || {
        assert_eq!(batch.message(0).data, b"first");
        assert_eq!(receive(&mut batch, &receiver), 1);
        batch.message(0).data.to_vec()
    });
    assert_eq!(seen.join().expect("thread"), b"second");
}

#[test]
fn a_train_arrives_as_separate_datagrams_without_gro() {
    let Some((sender, receiver)) = train_pair(false) else {
        return;
    };
    let data = pattern(1_000 * 7 + 321);
    assert_eq!(
        udp::send_segmented(&sender, &data, 1_000).expect("send"),
        data.len()
    );

    let mut batch = RecvBatch::new(16, 65_536).expect("memory");
    assert_eq!(receive(&mut batch, &receiver), 8);

    for (i, expected) in data.chunks(1_000).enumerate() {
        let message = batch.message(i);
        assert_eq!(
            (message.data, message.segment_len),
            (expected, expected.len())
        );
    }
}

#[test]
fn a_train_arrives_joined_with_gro() {
    let Some((sender, receiver)) = train_pair(true) else {
        return;
    };
    let here = socket::local_addr(&sender).expect("local");
    let data = pattern(1_000 * 7 + 321);
    udp::send_segmented(&sender, &data, 1_000).expect("send");

    // A lone datagram behind the train has no segment size.
    udp::send(&sender, b"alone").expect("send");
    let mut batch = RecvBatch::new(16, 65_536).expect("memory");

    let mut segments = Vec::new();
    while segments.len() < 9 {
        for i in 0..receive(&mut batch, &receiver) {
            let message = batch.message(i);
            assert_eq!(message.from, Some(here));
            assert_eq!(message.datagrams(), message.segments().count());
            segments.extend(message.segments().map(<[u8]>::to_vec));
        }
    }

    let expected: Vec<_> = data.chunks(1_000).chain([b"alone".as_slice()]).collect();
    assert_eq!(segments, expected);
}

#[test]
fn only_the_header_of_a_train_can_be_copied_and_all_its_datagrams_counted() {
    let Some((sender, receiver)) = train_pair(true) else {
        return;
    };
    udp::send_segmented(&sender, &pattern(1_000 * 7 + 321), 1_000).expect("send");
    let mut batch = RecvBatch::new(16, 16).expect("memory");
    let count = receive(&mut batch, &receiver);
    let messages = (0..count).map(|i| batch.message(i));
    let (datagrams, bytes) = messages.fold((0, 0), |(d, b), m| (d + m.datagrams(), b + m.full_len));
    assert_eq!((datagrams, bytes), (8, 7_321));
}

#[test]
fn a_train_of_too_many_or_too_long_segments_is_refused() {
    let Some((sender, _receiver)) = train_pair(false) else {
        return;
    };
    for (len, segment_len) in [(60_000, 10), (60_000, 70_000)] {
        let error = udp::send_segmented(&sender, &vec![0; len], segment_len).expect_err("refused");
        let text = error::io_text(&error);
        assert!(
            ["Invalid argument", "Message too long"].contains(&text.as_str()),
            "{text}"
        );
    }

    assert_eq!(
        udp::send_segmented(&sender, &[0; 640], 640 / udp::SEGMENTS_MAX)
            .expect("the documented limit"),
        640
    );
}

#[test]
fn a_datagram_arrives_when_the_kernel_received_it_however_late_it_is_read() {
    let (sender, receiver) = udp_pair(V4);
    let mut batch = RecvBatch::new(4, 100).expect("memory");
    udp::send(&sender, b"before").expect("send");
    assert_eq!(receive(&mut batch, &receiver), 1);
    assert_eq!(
        batch.message(0).stamped_unix_ns,
        None,
        "no time was requested"
    );

    let offset = RealtimeOffset::read();
    assert_eq!(
        batch.message(0).arrival_ns(offset, 7),
        7,
        "the read replaces it"
    );
    sockopt::SO_TIMESTAMPNS
        .set(&receiver, true)
        .expect("SO_TIMESTAMPNS");

    // The kernel switches its clock on a little later, for the first socket of the host that wants
    // stamps.
    let deadline_ns = clock::monotonic_ns() + 20_000_000_000;
    loop {
        let sent_ns = clock::monotonic_ns();
        udp::send(&sender, b"after").expect("send");
        // On loopback the datagram is in the queue when the call returns.
        let queued_ns = clock::monotonic_ns();

        assert_eq!(receive(&mut batch, &receiver), 1);
        assert!(batch.message(0).stamped_unix_ns.is_some());
        let arrival_ns = batch.message(0).arrival_ns(offset, clock::monotonic_ns());

        // The two clocks are compared with an error of microseconds.
        if (sent_ns - 50_000..=queued_ns + 50_000).contains(&arrival_ns) {
            break;
        }

        assert!(
            clock::monotonic_ns() < deadline_ns,
            "{sent_ns} {arrival_ns} {queued_ns}"
        );
    }
}

/// Waits for the first message, then takes what is there.
fn receive(batch: &mut RecvBatch, fd: impl AsFd) -> usize {
    await_readable(&fd);
    batch.recv(&fd).expect("recv")
}

/// Sockets for trains; `None` where the kernel has none, which its capabilities must then report.
fn train_pair(gro: bool) -> Option<(OwnedFd, OwnedFd)> {
    let (sender, receiver) = udp_pair(V4);
    let outcome = sockopt::UDP_GRO
        .set(&receiver, gro)
        .and_then(|()| sockopt::UDP_SEGMENT.get(&sender));
    match outcome {
        Ok(_) => Some((sender, receiver)),
        Err(error) => {
            assert!(error.is_unsupported(), "{error}");
            assert!(!Capabilities::probe().udp_gso || !Capabilities::probe().udp_gro);
            None
        }
    }
}
