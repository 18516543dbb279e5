//! The checks of the fuzz targets, on random input.

use proptest::prelude::*;

use crate::fuzzing;

proptest! {
    #[test]
    fn frames_do_not_depend_on_segments(cuts: Vec<u8>, lens in prop::collection::vec((0_u8..4, 0_u8..40), 0..9)) {
        let bytes: Vec<u8> = lens
            .iter()
            .flat_map(|(high, low)| [vec![0, 0, high / 3, *low], vec![b'x'; usize::from(*low)]].concat())
            .collect();
        fuzzing::frame(&cuts, &bytes);
    }

    #[test]
    fn any_text_is_a_message_or_a_short_fault(bytes: Vec<u8>) {
        fuzzing::messages(&bytes);
    }

    #[test]
    fn any_members_are_a_message_or_a_short_fault(
        kind in "hello|prove|open_phase|start|stop|clock|keep|bye|fault|ready|turn|phase_result|facts|re(quest|sponse)",
        members in "(,\"(phase|n|got|spec|sample|proof|result|text|facts|name|body)\":([0-9]{1,12}|\"[a-f]{0,9}\"|null|\\{\\}|\\[1\\])){0,5}",
    ) {
        fuzzing::messages(format!("{{\"type\":\"{kind}\"{members}}}").as_bytes());
    }

    #[test]
    fn any_events_end_both_machines_exactly_once(script: Vec<u8>) {
        fuzzing::machines(&script);
    }

    #[test]
    fn long_scripts_of_valid_messages_end_both_machines(script in prop::collection::vec((5_u8..16, any::<u8>()), 0..200)) {
        fuzzing::machines(&script.into_iter().flat_map(|(op, argument)| [op, argument]).collect::<Vec<_>>());
    }

    #[test]
    fn openings_are_decided_alike_with_more_bytes(mut bytes: Vec<u8>, starts in 0_usize..4, keep in 0_usize..40) {
        let start: &[u8] = [&[][..], b"lrnative2222", &[0xe5, 0x6c, 0x72, 0x01], &[0xe5, 0x6c, 0x72, 0x81]][starts];
        bytes.splice(..0, start.iter().take(keep).copied());
        fuzzing::stream_head(&bytes);
    }

    #[test]
    fn stream_frames_do_not_depend_on_segments(cuts: Vec<u8>, heads in prop::collection::vec((0_u8..6, 0_u8..40), 0..9)) {
        let mut bytes = Vec::new();
        for (kind, len) in heads {
            let len = if kind == 1 { len } else { 0 };
            bytes.extend([kind, 0, 0, 1, 0, 0, 0, len, 0, 0, 0, 0, 0, 0, 0, 9]);
            bytes.extend(vec![0; usize::from(len)]);
        }
        fuzzing::stream_frames(&cuts, &bytes);
    }

    #[test]
    fn any_datagram_is_survived(mut bytes: Vec<u8>, is_native: bool) {
        if is_native {
            bytes.splice(..0, [0xa5, 0x01]);
        }
        fuzzing::datagram(&bytes);
    }
}
