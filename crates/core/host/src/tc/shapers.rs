//! Rates of shapers: token buckets, cake, and hierarchies of classes (`linux/pkt_sched.h`).

use std::collections::BTreeMap;

use crate::prelude::*;

const OPTIONS: u16 = 2;

/// A shaper without classes.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Shaper {
    pub rate_bps: f64,
    limit_bytes: Option<u32>,
    burst_bytes: Option<f64>,
    /// It has no peak rate and adds nothing to the length of a packet.
    is_plain: bool,
}

/// The words of tc(8) that make a discipline with the same parameters; `None` where these numbers
/// do not describe it.
pub(crate) fn words(kind: &str, body: &[u8]) -> Option<String> {
    match kind {
        "pfifo" | "bfifo" => Some(format!("{kind} limit {}", limit(kind, body)?.0)),
        "pfifo_fast" => Some(kind.to_owned()),
        "tbf" => bucket(attribute(body, OPTIONS)?)?.words(),
        _ => None,
    }
}

impl Shaper {
    fn words(&self) -> Option<String> {
        let burst = self.burst_bytes.filter(|_| self.is_plain)?;
        let limit = self.limit_bytes?;
        Some(format!(
            "tbf rate {:.0}bit burst {burst:.0} limit {limit}",
            self.rate_bps
        ))
    }
}

/// Reads the options of a discipline that shapes by itself.
pub(crate) fn shaper(kind: &str, body: &[u8]) -> Option<Shaper> {
    let options = attribute(body, OPTIONS)?;
    match kind {
        "tbf" => bucket(options),
        "cake" => cake(options),
        _ => None,
    }
}

/// The longest queue of a discipline without classes, and its unit.
pub(crate) fn limit(kind: &str, body: &[u8]) -> Option<(u32, &'static str)> {
    const TBF_PARAMETERS: u16 = 1;
    const FQ_CODEL_LIMIT: u16 = 2;

    let options = attribute(body, OPTIONS)?;
    match kind {
        "pfifo" => Some((u32_at(options, 0)?, "packets")),
        "bfifo" => Some((u32_at(options, 0)?, "bytes")),
        "netem" => Some((u32_at(options, 4)?, "packets")),
        "tbf" => Some((u32_at(attribute(options, TBF_PARAMETERS)?, 24)?, "bytes")),
        "fq_codel" => Some((u32_of(options, FQ_CODEL_LIMIT)?, "packets")),
        _ => None,
    }
}

/// The rate is in bytes per second, in 64 bits where 32 are not enough.
fn bucket(options: &[u8]) -> Option<Shaper> {
    const PARAMETERS: u16 = 1;
    const RATE64: u16 = 4;
    // The burst is encoded as its duration, in the kernel's ticks of 64 ns.
    const TICK_S: f64 = 64e-9;

    let parameters = attribute(options, PARAMETERS)?;
    let rate = rate(options, RATE64, parameters, 8)?;
    // Overhead, alignment of cells and smallest packet; then the peak rate.
    let is_plain =
        u16_at(parameters, 2)? == 0 && u32_at(parameters, 4)? == 0 && u32_at(parameters, 20)? == 0;

    Some(Shaper {
        is_plain,
        rate_bps: rate * 8.0,
        limit_bytes: u32_at(parameters, 24),
        burst_bytes: u32_at(parameters, 28).map(|ticks| (f64::from(ticks) * TICK_S * rate).ceil()),
    })
}

/// Rate 0 is cake without a limit.
fn cake(options: &[u8]) -> Option<Shaper> {
    const BASE_RATE64: u16 = 2;

    let rate = u64_of(options, BASE_RATE64).filter(|rate| *rate > 0)?;
    Some(Shaper {
        rate_bps: to_f64(rate) * 8.0,
        ..Shaper::default()
    })
}

/// Bytes per second: in an attribute of its own, or within the parameters.
pub(crate) fn rate(options: &[u8], wide: u16, parameters: &[u8], at: usize) -> Option<f64> {
    match u64_of(options, wide) {
        Some(rate) => Some(to_f64(rate)),
        None => Some(f64::from(u32_at(parameters, at)?)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "rates are far below 2^53")]
const fn to_f64(rate: u64) -> f64 {
    rate as f64
}

/// The class of packets that match no filter.
pub(crate) fn default_class(kind: &str, handle: u32, body: &[u8]) -> Option<u32> {
    const INIT: u16 = 2;

    let options = attribute(body, OPTIONS)?;
    let minor = match kind {
        "htb" => u32_at(attribute(options, INIT)?, 8)?,
        "hfsc" => u16_at(options, 0)?.into(),
        _ => return None,
    };
    Some(handle & 0xffff_0000 | minor & 0xffff)
}

/// Classes of one interface: the one above, and how much each lets through at most, bit/s.
pub(crate) type Classes = BTreeMap<u32, (u32, Option<f64>)>;

/// Reads one class (RTM_GETTCLASS).
pub(crate) fn class(payload: &[u8]) -> Option<(u32, (u32, Option<f64>))> {
    const PARAMETERS: u16 = 1;
    const CEIL64: u16 = 7;
    const UPPER_CURVE: u16 = 3;

    let body = payload.get(20..)?;
    let options = attribute(body, OPTIONS).unwrap_or_default();
    let kind = crate::netlink::text(attribute(body, 1)?);
    let most = match kind.as_str() {
        // Two rates of 12 bytes each: what is guaranteed, and what may be borrowed.
        "htb" => rate(options, CEIL64, attribute(options, PARAMETERS)?, 20),
        "hfsc" => {
            attribute(options, UPPER_CURVE).and_then(|curve| Some(f64::from(u32_at(curve, 8)?)))
        }
        _ => return None,
    };

    Some((
        u32_at(payload, 8)?,
        (u32_at(payload, 12)?, most.map(|bytes| bytes * 8.0)),
    ))
}

/// Rate limit of a class and all above it, bit/s; `None` when nothing limits it, or it does not
/// exist.
pub(crate) fn ceiling(classes: &Classes, from: u32) -> Option<f64> {
    // The kernel allows eight levels.
    const LEVELS_MAX: usize = 16;

    let mut least: Option<f64> = None;
    let mut at = from;

    for _ in 0..LEVELS_MAX {
        let Some((parent, most)) = classes.get(&at) else {
            break;
        };
        least = match (least, *most) {
            (Some(least), Some(most)) => Some(least.min(most)),
            (least, most) => least.or(most),
        };
        at = *parent;
    }

    least
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::encoded;

    #[test]
    fn the_narrowest_class_above_decides() {
        let classes: Classes = [
            (0x1_0001, (0xffff_ffff, Some(1e9))),
            (0x1_0010, (0x1_0001, Some(2e9))),
            (0x1_0020, (0x1_0001, Some(5e8))),
            (0x1_0030, (0x1_0030, None)),
        ]
        .into();
        assert_eq!(ceiling(&classes, 0x1_0010), Some(1e9));
        assert_eq!(ceiling(&classes, 0x1_0020), Some(5e8));
        assert_eq!(ceiling(&classes, 0x1_0030), None, "a circle ends");
        assert_eq!(ceiling(&classes, 7), None);
    }

    #[test]
    fn limit_has_the_unit_of_its_discipline() {
        let numbers: Vec<u8> = (0..9_u32).flat_map(u32::to_ne_bytes).collect();
        let (bucket, codel) = (encoded(1, &numbers), encoded(2, &10_240_u32.to_ne_bytes()));

        for (kind, options, expected) in [
            ("pfifo", &numbers, Some((0, "packets"))),
            ("bfifo", &numbers, Some((0, "bytes"))),
            ("netem", &numbers, Some((1, "packets"))),
            ("tbf", &bucket, Some((6, "bytes"))),
            ("fq_codel", &codel, Some((10_240, "packets"))),
            ("noqueue", &numbers, None),
            ("pfifo", &Vec::new(), None),
        ] {
            assert_eq!(limit(kind, &encoded(OPTIONS, options)), expected, "{kind}");
        }
    }

    #[test]
    fn cake_without_a_rate_is_no_shaper() {
        let cake = |rate: u64| {
            let body = encoded(OPTIONS, &encoded(2, &rate.to_ne_bytes()));
            shaper("cake", &body).map(|shaper| shaper.rate_bps)
        };
        assert_eq!((cake(0), cake(12_500_000)), (None, Some(1e8)));
        assert_eq!(shaper("cake", &[]), None);
    }
}
