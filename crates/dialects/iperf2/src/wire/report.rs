//! Counters of a server for a UDP flow, sent to the client when the flow has ended.

use std::time::Duration;

use crate::wire::datagram::HEAD_LEN;
use crate::wire::{put_word, word};
use linerate_model::spread::Spread;

/// Bytes of the datagram that carries a report.
pub const REPORT_LEN: usize = 128;

/// A server's final counts of one flow.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FinalReport {
    /// Payload bytes received.
    pub bytes: u64,
    /// From the first datagram to the last.
    pub duration: Duration,
    /// Datagrams that did not arrive.
    pub lost: u64,
    /// Datagrams that arrived late.
    pub out_of_order: u64,
    /// Datagrams sent, by their numbers.
    pub datagrams: u64,
    /// Mean jitter in s.
    pub jitter_s: f64,
    /// One-way delays in s, if client and server share a clock.
    pub transit_s: Option<Spread>,
    /// Datagrams per second.
    pub datagrams_per_s: u32,
}

impl FinalReport {
    /// The datagram, for a client that expects its report at `offset`
    /// ([`FlowOpening::report_offset`](crate::wire::datagram::FlowOpening)).
    pub fn emit(&self, offset: usize) -> Vec<u8> {
        let mut bytes = vec![0; REPORT_LEN];
        let Some(at) = bytes.get_mut(offset..) else {
            return bytes;
        };
        let mut flags = REPORT | WIDE_COUNTS;

        if let Some(transit) = &self.transit_s {
            flags |= HAS_TRANSIT;
            write_transit(transit, at);
        }

        put_word(at, 0, flags);
        put_split(at, 8, 4, self.bytes);
        put_word(
            at,
            12,
            u32::try_from(self.duration.as_secs()).unwrap_or(u32::MAX),
        );
        put_word(at, 16, self.duration.subsec_micros());
        put_split(at, 20, 100, self.lost);
        put_split(at, 24, 104, self.out_of_order);
        put_split(at, 28, 108, self.datagrams);
        put_seconds(at, 32, self.jitter_s);
        put_word(at, 92, self.datagrams_per_s);
        put_word(at, 96, 1);

        bytes
    }

    /// Reads a report; `None` when the datagram is none.
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let at = datagram.get(HEAD_LEN..)?;
        let flags = word(at, 0)?;
        if flags & REPORT == 0 || flags & !(REPORT | WIDE_COUNTS | HAS_TRANSIT) != 0 {
            return None;
        }

        let count = |low, high| {
            let upper = if flags & WIDE_COUNTS != 0 {
                word(at, high).unwrap_or(0)
            } else {
                0
            };
            Some(u64::from(upper) << 32 | u64::from(word(at, low)?))
        };
        Some(Self {
            bytes: u64::from(word(at, 4)?) << 32 | u64::from(word(at, 8)?),
            duration: Duration::from_secs(word(at, 12)?.into())
                + Duration::from_micros(word(at, 16)?.into()),
            lost: count(20, 100)?,
            out_of_order: count(24, 104)?,
            datagrams: count(28, 108)?,
            jitter_s: seconds(at, 32)?,
            transit_s: if flags & HAS_TRANSIT != 0 {
                read_transit(at)
            } else {
                None
            },
            datagrams_per_s: word(at, 92).unwrap_or_default(),
        })
    }
}

fn write_transit(transit: &Spread, at: &mut [u8]) {
    put_seconds(at, 40, transit.min);
    put_seconds(at, 48, transit.max);
    put_seconds(at, 56, transit.sum());
    put_seconds(at, 64, transit.mean);

    // In square microseconds: the words hold an integer and its millionths.
    put_seconds(at, 72, transit.squares * 1e12);
    put_seconds(at, 80, transit.last);
    put_word(at, 88, u32::try_from(transit.count).unwrap_or(u32::MAX));
}

fn read_transit(at: &[u8]) -> Option<Spread> {
    Some(Spread {
        count: u64::from(word(at, 88)?),
        mean: seconds(at, 64)?,
        min: seconds(at, 40)?,
        max: seconds(at, 48)?,
        squares: seconds(at, 72)? / 1e12,
        last: seconds(at, 80)?,
    })
}

/// A number as whole part and millionths, both signed as delays between clocks that disagree may
/// be.
fn put_seconds(bytes: &mut [u8], at: usize, value: f64) {
    // Conversions of floats saturate.
    put_word(bytes, at, (value.trunc() as i32) as u32);
    put_word(bytes, at + 4, ((value.fract() * 1e6).round() as i32) as u32);
}

fn seconds(bytes: &[u8], at: usize) -> Option<f64> {
    let whole = word(bytes, at)? as i32;
    let millionths = word(bytes, at + 4)? as i32;
    Some(f64::from(whole) + f64::from(millionths) / 1e6)
}

fn put_split(bytes: &mut [u8], low: usize, high: usize, value: u64) {
    put_word(bytes, low, value as u32);
    put_word(bytes, high, (value >> 32) as u32);
}

const REPORT: u32 = 0x8000_0000;
const HAS_TRANSIT: u32 = 0x4000_0000;
const WIDE_COUNTS: u32 = 0x0800_0000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives() {
        let mut transit = Spread::default();
        for value in [0.000_019, 0.000_243, 0.000_103, -0.000_026] {
            transit.add(value);
        }

        let report = FinalReport {
            bytes: 5_000_000_000,
            duration: Duration::from_micros(2_018_900),
            lost: 5_000_000_001,
            out_of_order: 7,
            datagrams: 6_000_000_000,
            jitter_s: 0.000_017,
            transit_s: Some(transit),
            datagrams_per_s: 95,
        };
        let read = FinalReport::parse(&report.emit(HEAD_LEN)).expect("our own");
        assert_eq!(
            FinalReport {
                transit_s: None,
                ..read
            },
            FinalReport {
                transit_s: None,
                ..report
            }
        );

        let read = read.transit_s.expect("transmitted");
        assert_eq!(read.count, 4);
        assert!((read.mean - transit.mean).abs() < 1e-6 && (read.min - transit.min).abs() < 1e-6);
        assert!((read.deviation() - transit.deviation()).abs() < 1e-6);
        assert_eq!(
            FinalReport {
                transit_s: None,
                ..report
            }
            .emit(HEAD_LEN)
            .len(),
            REPORT_LEN
        );
    }

    #[test]
    fn other_datagrams_are_no_reports() {
        assert_eq!(FinalReport::parse(&[0; REPORT_LEN]), None);
        assert_eq!(FinalReport::parse(&[b'6'; REPORT_LEN]), None);
        assert_eq!(
            FinalReport::parse(&FinalReport::default().emit(HEAD_LEN)[..50]),
            None
        );
        assert_eq!(FinalReport::default().emit(500).len(), REPORT_LEN);
    }
}
