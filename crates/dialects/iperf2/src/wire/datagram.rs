//! The head of every datagram: number, time, and in the first one the header of its flow.

use linerate_model::spec::Payload;

use crate::wire::header::{Header, parse_udp};
use crate::wire::stamp::Timestamp;
use crate::wire::{put_word, word};

/// Bytes of number and time.
pub const HEAD_LEN: usize = 16;
/// The same of releases up to 2.0.9, whose numbers are 32 bits wide.
pub const LEGACY_HEAD_LEN: usize = 12;

/// Number and time of a datagram.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DatagramHead {
    /// Position in the flow, from 1; negative for the last one and its repetitions.
    pub number: i64,
    /// Sender's clock.
    pub sent: Timestamp,
}

/// Width of the numbers of a flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NumberWidth {
    /// 32 bits: releases up to 2.0.9, and flows without a header.
    #[default]
    Narrow,
    /// 64 bits.
    Wide,
}

impl DatagramHead {
    /// Reads the head of a datagram; `None` when it is shorter than that.
    #[inline]
    pub fn parse(datagram: &[u8], width: NumberWidth) -> Option<Self> {
        let low = word(datagram, 0)?;
        let number = match width {
            NumberWidth::Narrow => i64::from(low as i32),
            NumberWidth::Wide => i64::from(word(datagram, 12)? as i32) << 32 | i64::from(low),
        };
        Some(Self {
            number,
            sent: Timestamp::read(datagram, 4)?,
        })
    }

    /// Writes the head over the start of a datagram, as far as that is long enough.
    #[inline]
    pub fn write(&self, datagram: &mut [u8]) {
        put_word(datagram, 0, self.number as u32);
        self.sent.write(datagram, 4);
        put_word(datagram, 12, (self.number >> 32) as u32);
    }

    /// The datagram after the last: data have ended.
    pub fn is_last(&self) -> bool {
        self.number < 0
    }
}

/// A datagram of `datagram_bytes`, complete but for number and time: digits as far as it reaches,
/// with the header over their beginning.
pub fn template(header: Option<&Header>, datagram_bytes: usize) -> Vec<u8> {
    let mut datagram = vec![0; datagram_bytes];
    Payload::fill_repeating(&mut datagram);

    if let Some(header) = header {
        let header = header.emit_udp();
        for (byte, word) in datagram.iter_mut().zip(header) {
            *byte = word;
        }
    }

    datagram
}

/// The first datagram of a flow.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowOpening {
    /// Its head.
    pub head: DatagramHead,
    /// Width of this flow's numbers.
    pub width: NumberWidth,
    /// The test, if there is a header.
    pub header: Option<Header>,
    /// Numbers and times only, but the clocks agree: one-way delays can be measured.
    pub short_trip_times: bool,
    /// Where this client expects the final report.
    pub report_offset: usize,
}

impl FlowOpening {
    /// Reads the first datagram of an unknown peer. `None` when it begins no flow: too short, the
    /// end of one that is already forgotten, or, without a header, a number or a time that cannot
    /// be one.
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        if let Ok(header) = parse_udp(datagram) {
            let head = DatagramHead::parse(datagram, NumberWidth::Wide)?;
            return (head.number > 0).then_some(Self {
                head,
                width: NumberWidth::Wide,
                header: Some(header),
                short_trip_times: false,
                report_offset: HEAD_LEN,
            });
        }

        let head = DatagramHead::parse(datagram, NumberWidth::Narrow)?;
        if head.number <= 0 || head.number > FIRST_NUMBER_MAX || head.sent.usec >= 1_000_000 {
            return None;
        }

        let is_legacy = is_legacy_header(datagram);
        Some(Self {
            head,
            width: NumberWidth::Narrow,
            header: None,
            short_trip_times: word(datagram, HEAD_LEN) == Some(SHORT_TRIP_TIMES),
            report_offset: if is_legacy { LEGACY_HEAD_LEN } else { HEAD_LEN },
        })
    }
}

/// Without a header a number near the first is all there is to go by.
const FIRST_NUMBER_MAX: i64 = 1 << 20;
/// Flags after the head of flows that have room for nothing else.
const SHORT_TRIP_TIMES: u32 = crate::wire::header::first::SHORT_TRIP_TIMES;

/// Releases up to 2.0.9 put 24 bytes behind their shorter head: flags, streams, port, lengths and
/// an amount.
fn is_legacy_header(datagram: &[u8]) -> bool {
    let flags = word(datagram, 12);
    let streams = word(datagram, 16);
    let port = word(datagram, 20);
    matches!(flags, Some(0 | 0x8000_0000 | 0x8000_0001))
        && streams.is_some_and(|n| (1..=0xffff).contains(&n))
        && port.is_some_and(|n| (1..=0xffff).contains(&n))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(number: i64, sent: Timestamp) -> [u8; 64] {
        let mut bytes = [b'7'; 64];
        DatagramHead { number, sent }.write(&mut bytes);
        bytes
    }

    #[test]
    fn numbers_are_signed_and_split_as_captured() {
        let bytes = datagram(-8, Timestamp::default());
        assert_eq!(bytes[..4], [0xff, 0xff, 0xff, 0xf8]);
        assert_eq!(bytes[12..16], [0xff; 4]);

        for number in [1, -1, i64::from(u32::MAX) + 5, i64::MAX, i64::MIN] {
            let bytes = datagram(number, Timestamp::default());
            let head = DatagramHead::parse(&bytes, NumberWidth::Wide).expect("long enough");
            assert_eq!((head.number, head.is_last()), (number, number < 0));
        }

        assert_eq!(DatagramHead::parse(&[0; 11], NumberWidth::Narrow), None);
        assert_eq!(DatagramHead::parse(&[0; 15], NumberWidth::Wide), None);
    }

    #[test]
    fn a_flow_without_header_needs_a_number_and_a_time_that_can_be_true() {
        let time = Timestamp {
            sec: 7,
            usec: 999_999,
        };
        let no_time = Timestamp {
            sec: 7,
            usec: 1_000_000,
        };

        for (number, sent, begins) in [
            (1, time, true),
            (0, time, false),
            (-3, time, false),
            (1, no_time, false),
        ] {
            let opening = FlowOpening::parse(&datagram(number, sent));
            assert_eq!(opening.is_some(), begins, "{number} {sent:?}");
        }
    }

    #[test]
    fn old_clients_look_for_their_report_four_bytes_earlier() {
        let mut bytes = datagram(1, Timestamp::default());
        assert_eq!(
            FlowOpening::parse(&bytes).expect("a flow").report_offset,
            16
        );

        for (at, value) in [(12, 0), (16, 1), (20, 5001)] {
            put_word(&mut bytes, at, value);
        }

        assert_eq!(
            FlowOpening::parse(&bytes).expect("a flow").report_offset,
            12
        );
    }
}
