//! Values of options.

use linerate::http::Resolved;
use std::net::IpAddr;
use std::time::Duration;

/// `10s`, `500ms`, `2m`, or seconds without a unit.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let end = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let scale_s = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("the unit is none of ms, s, m, h".to_owned()),
    };

    let number: f64 = number
        .parse()
        .map_err(|_| "not a number with a unit, such as 10s".to_owned())?;
    let seconds = number * scale_s;
    // NaN is in no range, so it is refused here as well.
    if !(0.0..=DURATION_MAX_S).contains(&seconds) {
        return Err("not between 0 and 24h".to_owned());
    }

    Ok(Duration::from_secs_f64(seconds))
}

/// Connections per second: `2000` or `2000/s`, or `max` for no limit.
pub(super) fn ramp(text: &str) -> Result<Option<u32>, String> {
    match text.strip_suffix("/s").unwrap_or(text) {
        "max" => Ok(None),
        number => match number.parse() {
            Ok(rate) if rate > 0 => Ok(Some(rate)),
            _ => Err("neither connections per second nor max".to_owned()),
        },
    }
}

/// Requests per second, with an optional `/s` and a 1000-based `k` or `m`.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    let text = text.strip_suffix("/s").unwrap_or(text);
    let (number, scale) = match text.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1e3),
        None => text
            .strip_suffix(['m', 'M'])
            .map_or((text, 1.0), |number| (number, 1e6)),
    };
    match number.parse::<f64>().map(|number| number * scale) {
        Ok(rate) if (RATE_MIN_PER_S..=RATE_MAX_PER_S).contains(&rate) => Ok(rate),
        _ => Err("not requests per second between 0.001 and 100 million".to_owned()),
    }
}

/// `NAME: VALUE`.
pub(super) fn field(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("no colon between name and value")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// `HOST:PORT:ADDRESS` as in curl; an IPv6 address may be in brackets.
pub(super) fn resolve(text: &str) -> Result<Resolved, String> {
    // The address is the rest, because IPv6 addresses contain colons.
    let mut parts = text.splitn(3, ':');
    let host = parts.next();
    let port = parts.next();
    let address = parts.next();
    let address = address.map(|address| address.trim_start_matches('[').trim_end_matches(']'));

    match (
        host,
        port.and_then(|port| port.parse().ok()),
        address.and_then(|a| a.parse().ok()),
    ) {
        (Some(host), Some(port), Some(address)) if !host.is_empty() => Ok(Resolved {
            host: host.to_owned(),
            port,
            address,
        }),
        _ => Err("not HOST:PORT:ADDRESS".to_owned()),
    }
}

/// `10.0.0.10-20` or `10.0.0.10-10.0.0.20`: both ends included.
pub(super) fn address_range(text: &str) -> Result<Vec<IpAddr>, String> {
    let wrong = || "not a range of IPv4 addresses such as 10.0.0.10-20".to_owned();
    let (first, last) = text.split_once('-').ok_or_else(wrong)?;
    let first: std::net::Ipv4Addr = first.parse().map_err(|_| wrong())?;
    // A single number is the last octet.
    let last = match last.parse::<u8>() {
        Ok(last) => {
            let [a, b, c, _] = first.octets();
            std::net::Ipv4Addr::new(a, b, c, last)
        }
        Err(_) => last.parse().map_err(|_| wrong())?,
    };
    // The order is checked first, so the difference cannot be negative.
    if last < first || last.to_bits() - first.to_bits() >= SOURCES_MAX {
        return Err(format!("from low to high, at most {SOURCES_MAX} addresses"));
    }

    Ok((first.to_bits()..=last.to_bits())
        .map(|bits| IpAddr::V4(bits.into()))
        .collect())
}

const DURATION_MAX_S: f64 = 86_400.0;
const RATE_MIN_PER_S: f64 = 0.001;
const RATE_MAX_PER_S: f64 = 1e8;
const SOURCES_MAX: u32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));

        for text in ["", "s", "-1s", "1d", "nan", "inf", "1e9h"] {
            assert!(duration(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn rates_are_per_second() {
        assert_eq!(rate("5000/s"), Ok(5_000.0));
        assert_eq!(rate("2.5k"), Ok(2_500.0));
        assert!(rate("0").is_err() && rate("nan").is_err());
        assert_eq!(ramp("max"), Ok(None));
        assert_eq!(ramp("2000/s"), Ok(Some(2000)));
        assert!(ramp("0").is_err());
    }

    #[test]
    fn ranges_of_addresses_are_bounded() {
        let range = address_range("10.0.0.10-12").expect("a range");
        assert_eq!(range.len(), 3);
        assert!(address_range("10.0.0.12-10").is_err());
        assert!(address_range("10.0.0.0-10.255.0.0").is_err());
        assert!(address_range("::1-2").is_err());
    }

    #[test]
    fn resolving_by_hand_takes_both_families() {
        let v6 = resolve("h:80:[::1]").expect("an address");
        assert_eq!(
            (v6.port, v6.address),
            (80, "::1".parse().expect("an address"))
        );
        assert!(resolve("h:80").is_err());
    }
}
