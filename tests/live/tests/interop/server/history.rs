//! Defects of iperf3 that must not happen here: the tests that docs/security-tests.md names
//! and that have no other home.

use std::fs;

use linerate_interop::{
    Keys, RawClient, Server, each_case, frame, original, ours, ours_only, state,
};

/// Sends parameters and returns all that the server says to them.
fn response_to(port: u16, parameters: &str) -> Vec<u8> {
    let mut control = RawClient::named(port).control;
    control.send(&frame(parameters));
    control.half_close();
    control.drain()
}

#[test]
fn malformed_escapes_are_refused_or_read_as_text() {
    ours_only!("the original reads them in its own way");
    let server = Server::start(ours(), &[]);

    for text in [
        "\\u",
        "\\u1",
        "\\u12",
        "\\u123",
        "\\uD800",
        "\\uD800\\u",
        "\\uD800\\uD800",
        "\\uDC00",
        "\\uD800x",
        "\\u0000",
        "\\uFFFF",
        "\\x",
        "\\",
        "\\u00zz",
        "\\uD834\\uDD1E",
    ] {
        for key in ["title", "extra_data", "congestion", "client_version"] {
            let output = response_to(
                server.port,
                &format!("{{\"tcp\":true,\"time\":1,\"{key}\":\"{text}\"}}"),
            );
            assert!(
                matches!(
                    output.first(),
                    Some(&(state::CREATE_STREAMS | state::SERVER_ERROR))
                ),
                "{text} {key}: {output:?}"
            );
        }
    }

    server.run(original(), &["-n", "64K"]).expect_clean();
}

#[test]
fn tokens_of_every_length_are_refused() {
    ours_only!("3.12 reads beyond some of them");
    let keys = Keys::make();
    fs::write(keys.path("users"), "mario,00\n").expect("the folder is writable");

    let server = keys.server(ours(), None);
    let lengths: Vec<usize> = (0..8)
        .chain(340..348)
        .chain([1000, 1367, 1368, 1369, 4096])
        .collect();
    let tokens = lengths.iter().flat_map(|n| {
        [
            "A".repeat(*n),
            "=".repeat(*n),
            format!("{}=", "/".repeat(*n)),
        ]
    });
    let tokens: Vec<String> = tokens
        .chain(["A A A".into(), "\\n\\n".into(), "äöü".into()])
        .collect();

    // Refusals take their time; many at once do not take longer.
    each_case(&tokens, |token| {
        let output = response_to(
            server.port,
            &format!("{{\"tcp\":true,\"authtoken\":\"{token}\"}}"),
        );
        assert_eq!(output, [state::SERVER_ERROR, 0, 0, 0, 142, 0, 0, 0, 0]);
    });
    let output = response_to(server.port, "{\"tcp\":true}");
    assert_eq!(
        output.first(),
        Some(&state::SERVER_ERROR),
        "the server lives"
    );
}

#[test]
fn a_receiver_that_skips_the_copy_survives_any_block_length() {
    ours_only!("3.12 has no --skip-rx-copy");
    let server = Server::start(ours(), &[]);

    for length in ["16", "1K", "128K", "1M"] {
        for direction in [&[][..], &["-R"], &["--bidir"]] {
            let options = [&["-k", "50", "--skip-rx-copy", "-l", length], direction].concat();
            server.run(ours(), &options).expect_clean();
        }
    }

    server.run(original(), &["-n", "64K"]).expect_clean();
}
