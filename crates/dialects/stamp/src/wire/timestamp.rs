//! Times of test packets, and the error estimate of the clock that they are of.

/// Seconds from 1900, where the time of NTP begins (RFC 5905 section 6), to 1970.
const NTP_TO_UNIX_S: u64 = 2_208_988_800;
/// Seconds of an NTP era: the field wraps in 2036.
const ERA_S: u64 = 1 << 32;
/// A field below belongs to the era that begins in 2036 (RFC 4330 section 3).
const ERA_MIDDLE_S: u64 = 1 << 31;
const NS_PER_S: u64 = 1_000_000_000;

/// Format of the timestamps of a packet, bit Z of its error estimate (RFC 8186 section 2.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TimeFormat {
    /// Seconds since 1900 and their fraction (RFC 5905 section 6), UTC.
    #[default]
    Ntp,
    /// Seconds since 1970 and nanoseconds (IEEE 1588, truncated), TAI unless set up otherwise.
    Ptp,
}

/// The NTP timestamp of a time in ns since 1970.
pub fn ntp(unix_ns: u64) -> u64 {
    let seconds = (unix_ns / NS_PER_S + NTP_TO_UNIX_S) % ERA_S;
    // Rounded up, so that the nanosecond is the same when it is read.
    let fraction = ((unix_ns % NS_PER_S) << 32).div_ceil(NS_PER_S);
    seconds << 32 | fraction
}

impl TimeFormat {
    /// Time of a timestamp in ns since 1970; 0 for a time before.
    pub fn unix_ns(self, timestamp: u64) -> u64 {
        let seconds = timestamp >> 32;
        let rest = timestamp & u64::from(u32::MAX);
        match self {
            Self::Ntp => {
                let era = if seconds < ERA_MIDDLE_S { ERA_S } else { 0 };
                let seconds = (seconds + era).saturating_sub(NTP_TO_UNIX_S);
                seconds * NS_PER_S + ((rest * NS_PER_S) >> 32)
            }
            Self::Ptp => seconds * NS_PER_S + rest,
        }
    }
}

/// Error estimate of a clock (RFC 4656 section 4.1.2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ErrorEstimate {
    /// Bit S: an external source keeps the clock to UTC.
    pub is_synchronized: bool,
    /// Bit Z.
    pub format: TimeFormat,
    /// The time may be wrong by this, ns.
    pub error_ns: u64,
}

const SYNCHRONIZED: u16 = 0x8000;
const PTP: u16 = 0x4000;
/// Largest scale and multiplier.
const SCALE_MAX: u32 = 63;
const MULTIPLIER_MAX: u128 = 255;

impl ErrorEstimate {
    /// The field: S, Z, six bits of scale, eight bits of multiplier. The error is rounded up.
    pub fn encode(self) -> u16 {
        // Multiplier * 2^(scale - 32) s; a multiplier of 0 is not allowed.
        let units = (u128::from(self.error_ns) << 32)
            .div_ceil(u128::from(NS_PER_S))
            .max(1);
        let fits = |scale: &u32| units.div_ceil(1 << scale) <= MULTIPLIER_MAX;
        let scale = (0..SCALE_MAX).find(fits).unwrap_or(SCALE_MAX);
        let multiplier = units.div_ceil(1 << scale).min(MULTIPLIER_MAX);

        let synchronized = if self.is_synchronized {
            SYNCHRONIZED
        } else {
            0
        };
        let format = match self.format {
            TimeFormat::Ntp => 0,
            TimeFormat::Ptp => PTP,
        };
        synchronized | format | (scale as u16) << 8 | multiplier as u16
    }

    /// Reads the field.
    pub fn decode(field: u16) -> Self {
        let scale = (field >> 8) & SCALE_MAX as u16;
        let multiplier = field & 0xff;
        let ns = ((u128::from(multiplier) << scale) * u128::from(NS_PER_S)).div_ceil(1 << 32);
        Self {
            is_synchronized: field & SYNCHRONIZED != 0,
            format: match field & PTP {
                0 => TimeFormat::Ntp,
                _ => TimeFormat::Ptp,
            },
            error_ns: u64::try_from(ns).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn timestamps_are_those_of_the_rfcs() {
        // 1970-01-01 in NTP (RFC 5905 figure 4), and half a second later.
        assert_eq!(ntp(0), 0x83aa_7e80_0000_0000);
        assert_eq!(ntp(500_000_000), 0x83aa_7e80_8000_0000);
        // 2036-02-07 06:28:16 UTC begins era 1.
        let era_1_ns = 2_085_978_496 * NS_PER_S;
        assert_eq!(ntp(era_1_ns), 0);
        assert_eq!(TimeFormat::Ntp.unix_ns(0), era_1_ns);
        assert_eq!(TimeFormat::Ptp.unix_ns(7 << 32 | 5), 7 * NS_PER_S + 5);
    }

    #[test]
    fn error_estimates_are_those_of_rfc_4656() {
        let estimate = |is_synchronized, error_ns| ErrorEstimate {
            is_synchronized,
            format: TimeFormat::Ntp,
            error_ns,
        };
        // 255 * 2^(24 - 32) s is the least one that holds 0.99 s: 254 * 2^-8 s.
        assert_eq!(estimate(true, 990_000_000).encode(), 0x8000 | 24 << 8 | 254);
        assert_eq!(estimate(false, 0).encode(), 1);
        assert_eq!(estimate(false, u64::MAX).encode() >> 8, 59);
        // S and Z, scale 31, multiplier 2: 2 * 2^-1 s.
        let decoded = ErrorEstimate::decode(0xc000 | 31 << 8 | 2);
        assert_eq!(decoded.error_ns, NS_PER_S);
        assert!(decoded.is_synchronized && decoded.format == TimeFormat::Ptp);
        assert_eq!(ErrorEstimate::decode(0xffff).error_ns, u64::MAX);
    }

    proptest! {
        #[test]
        fn times_come_back_as_they_were(unix_ns in 0..4_000_000_000 * NS_PER_S) {
            prop_assert_eq!(TimeFormat::Ntp.unix_ns(ntp(unix_ns)), unix_ns);
        }

        #[test]
        fn errors_are_rounded_up_by_a_percent_at_most(error_ns in 1_000..u64::MAX / 2, is_synchronized: bool) {
            let estimate = ErrorEstimate { is_synchronized, error_ns, ..ErrorEstimate::default() };
            let decoded = ErrorEstimate::decode(estimate.encode());
            prop_assert_eq!(decoded.is_synchronized, is_synchronized);
            prop_assert!(decoded.error_ns >= error_ns && decoded.error_ns - error_ns <= error_ns / 64 + 1);
        }

        #[test]
        fn any_field_and_any_timestamp_is_read(field: u16, timestamp: u64) {
            let estimate = ErrorEstimate::decode(field);
            estimate.format.unix_ns(timestamp);
        }
    }
}
