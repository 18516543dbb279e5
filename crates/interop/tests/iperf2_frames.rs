//! Isochronous frames over UDP: both ends count the frames that were sent, and none is lost that arrived.

use linerate_interop::iperf2::{Iperf2, run_iperf2, totals};
use linerate_interop::{Finished, patiently};

/// Sizes vary, so most frames end with a datagram of a length of its own. The original takes a frame for lost whose last
/// datagram is longer than what is left of the frame.
#[test]
fn no_frame_is_lost_without_a_lost_datagram() {
    patiently(|| {
        for server in [Iperf2::Original, Iperf2::Ours] {
            let words = "-u --isochronous=60:5m,500k --trip-times -t 1 -e";
            let (_, server) = run_iperf2((Iperf2::Ours, server), words, "-u -e");
            let (received, lost) = frames(&server);
            assert!(received > 40 && lost == 0, "{received} frames, {lost} lost: {server:?}");
            let line = &totals(&server.stdout)[0].rest;
            assert!(!line.contains('-'), "a delay below 0: {server:?}");
        }
    });
}

#[test]
fn a_server_reports_the_frames_of_the_original() {
    patiently(|| {
        let words = "-u --isochronous=60:5m --trip-times -t 1 -e";
        let (client, server) = run_iperf2((Iperf2::Original, Iperf2::Ours), words, "-u -e --histograms");
        assert!(server.stdout.contains(" (isoch) (trip-times)"), "{server:?}");
        assert!(server.stdout.contains("  Frame:rx/lost  "), "{server:?}");
        assert!(server.stdout.contains(" F8(f)-PDF: bin(w=100us):cnt("), "{server:?}");
        let sent = totals(&client.stdout)[0].rest.clone();
        let (received, lost) = frames(&server);
        assert!(
            lost == 0 && received > 40,
            "{received} frames, {lost} lost of {sent}: {server:?}"
        );
    });
}

/// Frames received and lost: the two numbers behind the rate in datagrams.
fn frames(report: &Finished) -> (u32, u32) {
    let line = totals(&report.stdout).into_iter().find(|line| line.label == "1");
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
