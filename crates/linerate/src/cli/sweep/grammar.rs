//! What follows `--over`: factors and their levels.
//!
//! ```text
//! over     = factor *("," factor)
//! factor   = name | name "=" low ".." high | name "=" choice *("," choice)
//! ```
//! A word behind a comma that is no factor's name is a further choice of the factor before it, so that lists need no
//! other separator.

use std::ops::RangeInclusive;
use std::time::Duration;

/// A factor and its levels as typed; `None` stands for the levels that make sense for this test and host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Swept {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its levels.
    pub(crate) levels: Levels,
}

/// Levels of a factor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Levels {
    /// An amount between two.
    Range(u64, u64),
    /// Algorithms; none for all this host has.
    Congestion(Vec<String>),
    /// Placements; none for any and the first CPUs of this host.
    Affinity(Vec<Pinning>),
}

/// On which CPUs the ends run; `None` leaves it to the scheduler.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pinning {
    /// CPU of the client.
    pub(crate) client: Option<u32>,
    /// CPU of the server.
    pub(crate) server: Option<u32>,
}

const NAMES: [&str; 6] = ["streams", "length", "window", "congestion", "rate", "affinity"];

const STREAMS: RangeInclusive<u64> = 1..=128;
const TCP_LENGTH: RangeInclusive<u64> = 1..=1_048_576;
const UDP_LENGTH: RangeInclusive<u64> = 16..=65_507;
const WINDOW: RangeInclusive<u64> = 1024..=512 << 20;
const RATE: RangeInclusive<u64> = 1000..=1_000_000_000_000;
const CPUS: RangeInclusive<u64> = 0..=1023;
/// Choices of one factor.
const CHOICES_MAX: usize = 64;

/// Reads all of `--over`.
pub(super) fn factors(texts: &[String], is_udp: bool) -> Result<Vec<Swept>, String> {
    let mut typed: Vec<(&'static str, Vec<&str>)> = Vec::new();
    for word in texts.iter().flat_map(|text| text.split(',')) {
        let (name, levels) = word
            .split_once('=')
            .map_or((word, None), |(name, levels)| (name, Some(levels)));
        match (NAMES.iter().find(|known| **known == name), typed.last_mut()) {
            (Some(known), _) => typed.push((known, levels.into_iter().collect())),
            (None, Some((_, choices))) if levels.is_none() && !choices.is_empty() => choices.push(word),
            _ => return Err(format!("--over {word}: expected one of {}", NAMES.join(", "))),
        }
    }
    let mut factors: Vec<Swept> = Vec::new();
    for (name, words) in typed {
        if factors.iter().any(|known| known.name == name) {
            return Err(format!("--over {name} was given twice"));
        }
        let levels = levels(name, &words, is_udp).map_err(|text| format!("--over {name}: {text}"))?;
        factors.push(Swept { name, levels });
    }
    Ok(factors)
}

fn levels(name: &str, words: &[&str], is_udp: bool) -> Result<Levels, String> {
    match name {
        "streams" => range(words, 1..=64, STREAMS, 1),
        "length" if is_udp => range(words, 512..=8192, UDP_LENGTH, 1024),
        "length" => range(words, 4096..=1 << 20, TCP_LENGTH, 1024),
        "window" => range(words, 65_536..=16 << 20, WINDOW, 1024),
        "rate" => range(words, 100_000_000..=10_000_000_000, RATE, 1000),
        "congestion" if is_udp => Err("it is TCP that has congestion control: leave out -u".to_owned()),
        "congestion" => Ok(Levels::Congestion(choices(words, algorithm)?)),
        _ => Ok(Levels::Affinity(choices(words, pinning)?)),
    }
}

fn range(
    words: &[&str],
    default: RangeInclusive<u64>,
    limits: RangeInclusive<u64>,
    base: u64,
) -> Result<Levels, String> {
    let [word] = words else {
        return match words {
            [] => Ok(Levels::Range(*default.start(), *default.end())),
            _ => Err(format!("{}: expected one range, for example 1..8", words.join(","))),
        };
    };
    let (low, high) = word
        .split_once("..")
        .ok_or_else(|| format!("{word}: expected LOW..HIGH"))?;
    let base = if base == 1 { 1000 } else { base };
    let (low, high) = (amount(low, base, &limits)?, amount(high, base, &limits)?);
    if low >= high {
        return Err(format!("{word}: the first must be less than the second"));
    }
    Ok(Levels::Range(low, high))
}

fn choices<T: PartialEq>(words: &[&str], read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    if words.len() > CHOICES_MAX {
        return Err(format!("more than {CHOICES_MAX} choices"));
    }
    let mut choices = Vec::new();
    for word in words {
        let choice = read(word)?;
        if choices.contains(&choice) {
            return Err(format!("{word} was given twice"));
        }
        choices.push(choice);
    }
    if choices.len() == 1 {
        return Err("expected at least two choices".to_owned());
    }
    Ok(choices)
}

/// The name of an algorithm as the kernel allows it (`TCP_CA_NAME_MAX`, include/net/tcp.h).
fn algorithm(word: &str) -> Result<String, String> {
    let is_name = (1..=15).contains(&word.len())
        && word
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    is_name
        .then(|| word.to_owned())
        .ok_or_else(|| format!("{word:?} is no name of an algorithm"))
}

fn pinning(word: &str) -> Result<Pinning, String> {
    let cpu = |text: &str| match text {
        "any" => Ok(None),
        _ => amount(text, 1000, &CPUS).map(|cpu| u32::try_from(cpu).ok()),
    };
    match word.split_once('/') {
        None => Ok(Pinning {
            client: cpu(word)?,
            server: None,
        }),
        Some((client, server)) => Ok(Pinning {
            client: cpu(client)?,
            server: cpu(server)?,
        }),
    }
}

/// A whole number with K, M, G or T of this base, within limits.
fn amount(text: &str, base: u64, limits: &RangeInclusive<u64>) -> Result<u64, String> {
    let (digits, power) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 2),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 3),
        Some(b't' | b'T') => (&text[..text.len() - 1], 4),
        _ => (text, 0),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let number = digits.parse::<u64>().ok().filter(|_| is_number);
    let value = number
        .and_then(|number| number.checked_mul(base.checked_pow(power)?))
        .ok_or_else(|| format!("{text:?} is no amount, for example 4 or 64K"))?;
    if !limits.contains(&value) {
        return Err(format!("{text}: expected {} to {}", limits.start(), limits.end()));
    }
    Ok(value)
}

/// Bytes per write or datagram.
pub(super) fn length(text: &str) -> Result<u64, String> {
    amount(text, 1024, &TCP_LENGTH)
}

/// Whether a datagram can be that long.
pub(super) fn check_length(length_bytes: Option<u64>, is_udp: bool) -> Result<(), String> {
    match length_bytes {
        Some(length) if is_udp && !UDP_LENGTH.contains(&length) => Err(format!(
            "-l {length}: a datagram has {} to {} bytes",
            UDP_LENGTH.start(),
            UDP_LENGTH.end()
        )),
        _ => Ok(()),
    }
}

/// Bytes of a socket buffer.
pub(super) fn window(text: &str) -> Result<u64, String> {
    amount(text, 1024, &WINDOW)
}

/// Bits per second; 0 for no limit.
pub(super) fn rate(text: &str) -> Result<u64, String> {
    if text == "0" {
        return Ok(0);
    }
    amount(text, 1000, &RATE)
}

/// A time budget: seconds, or a number with s, m or h.
pub(super) fn budget(text: &str) -> Result<Duration, String> {
    let (digits, factor) = match text.as_bytes().last() {
        Some(b's') => (&text[..text.len() - 1], 1),
        Some(b'm') => (&text[..text.len() - 1], 60),
        Some(b'h') => (&text[..text.len() - 1], 3600),
        _ => (text, 1),
    };
    let seconds = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    match seconds {
        Some(seconds @ 1..=WEEK_S) => Ok(Duration::from_secs(seconds)),
        _ => Err("expected 1s to 168h, for example 90s, 15m or 2h".to_owned()),
    }
}

const WEEK_S: u64 = 168 * 3600;

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<Vec<Swept>, String> {
        factors(&[text.to_owned()], false)
    }

    #[test]
    fn factors_with_and_without_levels() {
        let got = one("streams=1..8,congestion=cubic,bbr,window=64K..16M,rate=100M..10G,affinity=any,0,0/1,any/1")
            .expect("all");
        let levels: Vec<_> = got.iter().map(|swept| (swept.name, swept.levels.clone())).collect();
        let pin = |client, server| Pinning { client, server };
        assert_eq!(
            levels,
            [
                ("streams", Levels::Range(1, 8)),
                (
                    "congestion",
                    Levels::Congestion(vec!["cubic".to_owned(), "bbr".to_owned()])
                ),
                ("window", Levels::Range(65_536, 16 << 20)),
                ("rate", Levels::Range(100_000_000, 10_000_000_000)),
                (
                    "affinity",
                    Levels::Affinity(vec![
                        pin(None, None),
                        pin(Some(0), None),
                        pin(Some(0), Some(1)),
                        pin(None, Some(1))
                    ])
                ),
            ]
        );
        let repeated = factors(&["streams".to_owned(), "length=1..4K".to_owned()], false).expect("two");
        assert_eq!(repeated[0].levels, Levels::Range(1, 64));
        assert_eq!(repeated[1].levels, Levels::Range(1, 4096));
        assert_eq!(
            one("congestion").expect("all of the host")[0].levels,
            Levels::Congestion(vec![])
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for text in [
            "",
            ",",
            "x",
            "streams=",
            "streams=4",
            "streams=0..4",
            "streams=1..129",
            "streams=8..8",
            "streams=1..2,3",
            "streams=1...4",
            "streams=-1..4",
            "streams=+1..4",
            "length=1..2M",
            "window=1..2K",
            "rate=1..10G",
            "rate=99999999999999999999..1",
            "rate=1G..99999999T",
            "congestion=cubic",
            "congestion=cubic,cubic",
            "congestion=a b,c",
            "affinity=x,1",
            "affinity=0,1024",
            "affinity=0/,1",
            "cubic,congestion",
            "congestion,cubic",
            "window=64K..é",
        ] {
            assert!(one(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_have_units_and_limits() {
        assert_eq!(budget("90"), Ok(Duration::from_secs(90)));
        assert_eq!(budget("15m"), Ok(Duration::from_secs(900)));
        assert_eq!(budget("2h"), Ok(Duration::from_secs(7200)));
        for bad in ["", "s", "0", "-1", "1.5h", "99999999999999999999s", "169h", "é"] {
            assert!(budget(bad).is_err(), "{bad}");
        }
    }
}
