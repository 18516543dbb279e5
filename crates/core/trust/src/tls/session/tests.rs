//! Both ends joined in memory, and ends of other configurations against them.

use proptest::prelude::*;
use rustls::HandshakeKind;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::server::{AlwaysResolvesServerRawPublicKeys, ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;

use super::*;
use crate::host_key::HostKey;
use crate::tls::{ALPN, CHANNEL_BINDING};
use crate::token::{Role, Token, proof, verify};

fn key() -> HostKey {
    HostKey::ephemeral().expect("a key")
}

fn pair() -> (ClientSession, ServerSession) {
    (
        ClientSession::new(&ClientConfig::new()),
        ServerSession::new(&ServerConfig::new(&key())),
    )
}

/// Two ends after their handshake.
fn connected() -> (ClientSession, ServerSession) {
    let (mut client, mut server) = pair();
    exchange(&mut client.0, &mut server.0, usize::MAX).expect("a handshake");
    (client, server)
}

/// Moves bytes in segments of `cut` bytes until both ends are silent.
fn exchange(client: &mut Channel, server: &mut Channel, cut: usize) -> Result<(), TlsError> {
    loop {
        let (up, down) = (client.take_outgoing(), server.take_outgoing());
        if up.is_empty() && down.is_empty() {
            return Ok(());
        }

        // Both directions are delivered, so that alerts arrive.
        let server_result = up
            .chunks(cut)
            .try_for_each(|segment| server.receive(segment));
        let client_result = down
            .chunks(cut)
            .try_for_each(|segment| client.receive(segment));
        client_result.and(server_result)?;
    }
}

#[test]
fn handshake_and_data_survive_any_segmentation() {
    for cut in [1, 2, 5, 100, 4095, 4096, 4097, usize::MAX] {
        let key = key();
        let (mut client, mut server) = (
            ClientSession::new(&ClientConfig::new()),
            ServerSession::new(&ServerConfig::new(&key)),
        );
        assert_eq!(
            (client.peer(), client.exporter("x"), server.exporter("x")),
            (None, None, None)
        );
        exchange(&mut client.0, &mut server.0, cut).expect("a handshake");
        assert!(
            !client.is_handshaking() && !server.is_handshaking(),
            "{cut}"
        );
        assert_eq!(client.peer(), Some(key.fingerprint()), "{cut}");

        let (up, down) = (vec![1; 40_000], vec![2; 70_000]);
        client.send(&up).expect("sent");
        server.send(&down).expect("sent");
        exchange(&mut client.0, &mut server.0, cut).expect("data");
        assert!(
            server.take_received() == up && client.take_received() == down,
            "{cut}"
        );
        assert!(server.take_received().is_empty());
    }
}

#[test]
fn bytes_sent_during_the_handshake_arrive_merged_with_its_end() {
    let (mut client, mut server) = pair();
    client.send(b"hello").expect("kept");
    server.send(b"welcome").expect("kept");
    server
        .receive(&client.take_outgoing())
        .expect("a ClientHello");
    assert!(server.is_handshaking() && server.take_received().is_empty());
    client
        .receive(&server.take_outgoing())
        .expect("the server's flight");
    client.send(&[7; 20_000]).expect("sent");
    server
        .receive(&client.take_outgoing())
        .expect("Finished and data");
    assert_eq!(
        server.take_received(),
        [&b"hello"[..], &[7; 20_000]].concat()
    );
    client.receive(&server.take_outgoing()).expect("data");
    assert_eq!(client.take_received(), b"welcome");
}

#[test]
fn exporters_are_equal_at_both_ends_and_differ_by_session_and_label() {
    let (client, server) = connected();
    let exporter = client.exporter(CHANNEL_BINDING);
    assert!(exporter.is_some() && exporter == server.exporter(CHANNEL_BINDING));
    assert_ne!(exporter, client.exporter("EXPORTER-other"));
    assert_ne!(exporter, connected().0.exporter(CHANNEL_BINDING));
}

#[test]
fn proof_passed_on_by_an_attacker_between_two_sessions_is_invalid() {
    let token = Token::new("0123456789abcdef012345").expect("a token");
    let (client, _attacker_as_server) = connected();
    let (_attacker_as_client, server) = connected();
    let [at_client, at_server] = [
        client.exporter(CHANNEL_BINDING),
        server.exporter(CHANNEL_BINDING),
    ];
    let (at_client, at_server) = (at_client.expect("complete"), at_server.expect("complete"));
    let passed_on = proof(&token, &at_server, Role::Server);
    assert!(!verify(&token, &at_client, Role::Server, &passed_on));
    assert!(verify(&token, &at_server, Role::Server, &passed_on));
}

#[test]
fn every_session_is_a_full_handshake_without_tickets() {
    let (client_config, server_config) = (ClientConfig::new(), ServerConfig::new(&key()));
    for _ in 0..2 {
        let (mut client, mut server) = (
            ClientSession::new(&client_config),
            ServerSession::new(&server_config),
        );
        exchange(&mut client.0, &mut server.0, usize::MAX).expect("a handshake");
        assert_eq!(
            client.0.connection.handshake_kind(),
            Some(HandshakeKind::Full)
        );
        assert_eq!(
            client.0.connection.alpn_protocol(),
            Some(&b"linerate/1"[..])
        );
        assert!(!client.0.connection.is_handshaking());
    }

    let (mut client, mut server) = pair();
    server
        .receive(&client.take_outgoing())
        .expect("a ClientHello");
    client
        .receive(&server.take_outgoing())
        .expect("the server's flight");
    server.receive(&client.take_outgoing()).expect("Finished");
    assert!(
        server.take_outgoing().is_empty(),
        "nothing follows the handshake"
    );
}

/// A client with any key and these protocols.
fn client_of(alpn: &[&str]) -> Channel {
    let mut config = rustls::ClientConfig::clone(&ClientConfig::new().config);
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let config = ClientConfig {
        config: Arc::new(config),
        ..ClientConfig::new()
    };
    ClientSession::new(&config).0
}

/// A server that presents `resolver`'s key, with these protocols.
fn server_of(resolver: impl ResolvesServerCert + 'static, alpn: &[&str]) -> Channel {
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])
        .expect("TLS 1.3")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    ServerSession::new(&ServerConfig {
        config: Arc::new(config),
        alpn: Some(ALPN),
    })
    .0
}

#[test]
fn other_protocols_are_refused_by_both_ends() {
    let (_, mut server) = pair();
    for alpn in [&["h2"][..], &["linerate/2", "linerate"], &[]] {
        let mut client = client_of(alpn);
        let mut server = ServerSession::new(&ServerConfig::new(&key())).0;
        let _ = client.send(b"early");

        assert!(
            exchange(&mut client, &mut server, usize::MAX).is_err(),
            "{alpn:?}"
        );
        let failures = [client.failure, server.failure];
        assert!(
            failures.contains(&Some(TlsError::Protocol)),
            "{alpn:?}: {failures:?}"
        );
        assert!(server.received.is_empty(), "{alpn:?}");
    }

    for alpn in [&["h2"][..], &[]] {
        let raw = AlwaysResolvesServerRawPublicKeys::new(key().certified());
        let mut client = ClientSession::new(&ClientConfig::new());
        let error = exchange(&mut client.0, &mut server_of(raw, alpn), usize::MAX)
            .expect_err("another protocol");
        assert_eq!(error, TlsError::Protocol, "{alpn:?}");
        assert_eq!(
            (client.peer(), client.exporter("x")),
            (None, None),
            "{alpn:?}"
        );
    }

    let mut client = client_of(&["linerate/2", "linerate/1"]);
    assert_eq!(exchange(&mut client, &mut server.0, usize::MAX), Ok(()));
}

#[test]
fn client_without_comparison_accepts_any_key_whose_possession_is_proved() {
    let (one, other) = (connected().0.peer(), connected().0.peer());
    assert!(
        one.is_some() && other.is_some() && one != other,
        "the comparison is the caller's"
    );
}

#[test]
fn key_of_another_server_is_refused() {
    let (own, copied) = (key().certified(), key().certified());
    let forged = CertifiedKey::new(copied.cert.clone(), Arc::clone(&own.key));
    let mut server = server_of(
        AlwaysResolvesServerRawPublicKeys::new(Arc::new(forged)),
        &["linerate/1"],
    );
    let mut client = ClientSession::new(&ClientConfig::new());
    client.send(b"secret").expect("kept");

    let error = exchange(&mut client.0, &mut server, usize::MAX).expect_err("a copied key");
    assert!(matches!(error, TlsError::Key(_)), "{error:?}");
    assert_eq!((client.peer(), client.exporter("x")), (None, None));
    server
        .receive(&client.take_outgoing())
        .expect_err("an alert");
    assert!(server.received.is_empty(), "nothing was sent");
}

#[derive(Debug)]
struct Certificate(Arc<CertifiedKey>);

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

#[test]
fn other_forms_of_keys_are_refused() {
    let own = key().certified();
    let mut server = server_of(Certificate(Arc::clone(&own)), &["linerate/1"]);
    let mut client = ClientSession::new(&ClientConfig::new());
    assert!(
        exchange(&mut client.0, &mut server, usize::MAX).is_err(),
        "a certificate"
    );
    assert_eq!(client.peer(), None);

    // The same key with one byte behind it would have a second fingerprint.
    let long = CertificateDer::from([own.cert[0].as_ref(), &[0]].concat());
    let several = vec![own.cert[0].clone(), own.cert[0].clone()];

    for keys in [
        vec![long],
        several,
        vec![CertificateDer::from(own.cert[0][1..].to_vec())],
    ] {
        let resolver = AlwaysResolvesServerRawPublicKeys::new(Arc::new(CertifiedKey::new(
            keys,
            Arc::clone(&own.key),
        )));
        let mut client = ClientSession::new(&ClientConfig::new());
        let result = exchange(
            &mut client.0,
            &mut server_of(resolver, &["linerate/1"]),
            usize::MAX,
        );
        assert!(result.is_err(), "{result:?}");
        assert_eq!(client.peer(), None);
    }
}

#[test]
fn bytes_that_are_no_tls_end_the_session() {
    for garbage in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0; 64],
        &[255; 64],
        b"\x16\x03\x01\x00\x04\x01\xff\xff\xff",
    ] {
        let (mut client, mut server) = pair();
        assert_eq!(
            client.receive(garbage),
            Err(TlsError::NotTls),
            "{garbage:?}"
        );
        assert_eq!(
            server.receive(garbage),
            Err(TlsError::NotTls),
            "{garbage:?}"
        );
        assert_eq!(
            server.receive(b""),
            Err(TlsError::NotTls),
            "every later call fails alike"
        );
        assert_eq!(server.send(b"x"), Err(TlsError::NotTls));
        assert!(server.take_received().is_empty() && server.exporter("x").is_none());
    }
}

/// A ClientHello of TLS 1.2 (RFC 5246, 7.4.1.2) without extensions.
#[test]
fn older_versions_are_refused() {
    let body = [&[3, 3][..], &[9; 32], &[0, 0, 2, 0xc0, 0x2f, 1, 0]].concat();
    let length = u8::try_from(body.len()).expect("short");
    let hello = [&[0x16, 3, 1, 0, length + 4, 1, 0, 0, length][..], &body].concat();
    let (_, mut server) = pair();
    let error = server.receive(&hello).expect_err("TLS 1.2");
    assert!(matches!(error, TlsError::Incompatible(_)), "{error:?}");
    assert_eq!(server.take_outgoing()[0], 0x15, "an alert");
}

/// The beginning of a handshake message of 64 KiB in records of 4 KiB.
fn long_message(kind: u8, len: usize) -> Vec<u8> {
    let message = [&[kind, 0, 0xff, 0xf0][..], &vec![0; len]].concat();
    let record = |part: &[u8]| [&[0x16, 3, 3, 0x10, 0][..], part].concat();
    message.chunks_exact(4096).flat_map(record).collect()
}

#[test]
fn hello_beyond_16_kib_ends_the_session() {
    for cut in [1, 1000, 4096, usize::MAX] {
        let (mut client, mut server) = pair();
        for (session, kind) in [(&mut client.0, 2), (&mut server.0, 1)] {
            let (within, beyond) = (long_message(kind, 60_000), 16 * 1024);
            for segment in within[..beyond].chunks(cut) {
                assert_eq!(session.receive(segment), Ok(()), "{kind} {cut}");
            }

            assert_eq!(
                session.receive(&within[beyond..=beyond]),
                Err(TlsError::HandshakeLimit),
                "{kind} {cut}"
            );
            assert!(session.outgoing.len() < 2048 && session.received.is_empty());
        }
    }
}

#[test]
fn altered_records_end_the_session_and_keep_what_arrived_before() {
    let (mut client, mut server) = connected();
    client.send(b"first").expect("sent");
    let mut bytes = client.take_outgoing();

    client.send(b"second").expect("sent");
    bytes.append(&mut client.take_outgoing());
    *bytes.last_mut().expect("a record") ^= 1;

    let error = server.receive(&bytes).expect_err("an altered record");
    assert!(matches!(error, TlsError::Broken(_)), "{error:?}");
    assert_eq!(server.take_received(), b"first");
    assert_eq!(
        (server.exporter("x"), server.receive(b"")),
        (None, Err(error))
    );

    let error = client
        .receive(&server.take_outgoing())
        .expect_err("an alert");
    assert_eq!(error, TlsError::Alert("BadRecordMac".to_owned()));
}

#[test]
fn close_is_announced_and_nothing_follows_it() {
    let (mut client, mut server) = connected();
    client.send(b"last").expect("sent");
    client.close();
    client.close();
    assert_eq!(client.send(b"more"), Err(TlsError::Closed));
    assert!(!server.0.is_closed_by_peer);

    let bytes = [&client.take_outgoing()[..], b"ignored"].concat();
    server.receive(&bytes).expect("data and close_notify");
    server.receive(b"ignored").expect("closed");
    assert!(server.0.is_closed_by_peer);
    assert_eq!(server.take_received(), b"last");
    server.send(b"answer").expect("the other direction is open");
    client.receive(&server.take_outgoing()).expect("data");
    assert_eq!(client.take_received(), b"answer");
    assert!(!client.0.is_closed_by_peer);
}

#[test]
fn plaintext_is_bounded_in_both_directions() {
    let (mut client, mut server) = connected();
    let message = vec![3; PLAINTEXT_BYTES_MAX];

    for _ in 0..2 {
        client.send(&message).expect("as much as a session keeps");
        assert_eq!(client.send(b"x"), Err(TlsError::SendLimit));
        server
            .receive(&client.take_outgoing())
            .expect("taken in time");
        assert!(server.take_received() == message);
    }

    client.send(&message).expect("taken");
    server
        .receive(&client.take_outgoing())
        .expect("as much as a session keeps");
    client.send(b"x").expect("taken");
    assert_eq!(
        server.receive(&client.take_outgoing()),
        Err(TlsError::ReceiveLimit)
    );

    let (mut client, _) = pair();
    client.send(&message).expect("kept during the handshake");
    assert!(!client.take_outgoing().is_empty());
    assert_eq!(client.send(b"x"), Err(TlsError::SendLimit));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_of_a_peer_are_survived(bytes: Vec<u8>, at in 0_usize..600, is_server: bool) {
        let (mut client, mut server) = pair();
        let mut hello = client.take_outgoing();
        let session = if is_server {
            &mut server.0
        } else {
            server.receive(&hello).expect("a ClientHello");
            hello = server.take_outgoing();
            &mut client.0
        };
        // The true flight, with other bytes from some place on.
        hello.truncate(at);
        let _ = session.receive(&[&hello[..], &bytes].concat());
        let _ = session.receive(&bytes);
        prop_assert!(session.received.is_empty() && session.outgoing.len() < 4096);
    }
}
