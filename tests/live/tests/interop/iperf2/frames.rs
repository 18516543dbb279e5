//! Isochronous frames over UDP: both ends count the frames that were sent, and none is lost that
//! arrived.

use linerate_interop::Finished;
use linerate_interop::iperf2::{Iperf2, lines, run_iperf2, totals};

/// Sizes vary, so most frames end with a datagram of a length of its own. The original takes a
/// frame for lost whose last datagram is longer than what is left of the frame.
#[test]
fn timed_no_frame_is_lost_without_a_lost_datagram() {
    for server in [Iperf2::Original, Iperf2::Ours] {
        let words = "-u --isochronous=60:5m,500k --trip-times -t 1 -e";
        let (_, server) = run_iperf2((Iperf2::Ours, server), words, "-u -e");
        let (received, lost) = frames(&server);
        assert!(
            received > 40 && lost == 0,
            "{received} frames, {lost} lost: {server:?}"
        );

        let line = &totals(&server.stdout)[0].rest;
        assert!(!line.contains('-'), "a delay below 0: {server:?}");
    }
}

#[test]
fn timed_a_server_reports_the_frames_of_the_original() {
    let words = "-u --isochronous=60:5m --trip-times -t 1 -e";
    let (client, server) = run_iperf2(
        (Iperf2::Original, Iperf2::Ours),
        words,
        "-u -e --histograms",
    );
    server.expect_stdout(" (isoch) (trip-times)");
    server.expect_stdout("  Frame:rx/lost  ");

    for kind in ["T8", "F8"] {
        let start = format!(" {kind}(f)-PDF: bin(w=100us):cnt(");
        assert_eq!(
            server.stdout.matches(&start).count(),
            1,
            "{kind}: {server:?}"
        );
    }

    let sent = totals(&client.stdout)[0].rest.clone();
    let (received, lost) = frames(&server);
    assert!(
        lost == 0 && received > 40,
        "{received} frames, {lost} lost of {sent}: {server:?}"
    );
}

/// Frames received and lost: the two numbers behind the rate in datagrams.
fn frames(report: &Finished) -> (u32, u32) {
    let line = totals(&report.stdout)
        .into_iter()
        .find(|line| line.label == "1");
    let rest = line.unwrap_or_else(|| panic!("no line: {report:?}")).rest;
    let counts = rest
        .split_once(" pps ")
        .and_then(|(_, rest)| rest.split_whitespace().next()?.split_once('/'));
    let (received, lost) = counts.unwrap_or_else(|| panic!("no frames: {report:?}"));
    match (received.parse(), lost.parse()) {
        (Ok(received), Ok(lost)) => (received, lost),
        _ => panic!("no frames: {report:?}"),
    }
}

/// With `-i f` a receiver has a row for each frame instead of intervals. The original announces
/// that and has no such rows.
#[test]
fn timed_a_server_reports_each_frame_on_request() {
    for (transport, client) in [
        ("", Iperf2::Original),
        ("-u", Iperf2::Original),
        ("-u", Iperf2::Ours),
    ] {
        let words = format!("{transport} --isochronous=20:1m --trip-times -t 1 -f B");
        let (_, server) = run_iperf2(
            (client, Iperf2::Ours),
            &words,
            &format!("{transport} -i f -f B"),
        );

        let notice = "Frame or burst interval reporting (feature is experimental)";
        server.expect_stdout(notice);
        let mut rows = lines(&server.stdout);
        let total = rows.pop().unwrap_or_else(|| panic!("{server:?}"));

        assert!((18..=22).contains(&rows.len()), "{server:?}");
        assert!(rows.iter().all(|row| row.amount < 10_000.0), "{server:?}");
        assert!(
            rows.windows(2).all(|pair| pair[0].end_s <= pair[1].start_s),
            "{server:?}"
        );

        let sum: f64 = rows.iter().map(|row| row.amount).sum();
        // The first datagram and the one that ends the flow are in no frame.
        assert!(total.amount - sum < 3000.0, "{server:?}");
    }
}
