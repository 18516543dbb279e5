//! One row.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use linerate_model::metrics::Distribution;

/// Names of the columns after the rate, of the header line that was read last.
#[derive(Default)]
pub(super) struct Columns(Vec<String>);

const COMMON_NAMES: &str =
    "time,srcaddress,srcport,dstaddr,dstport,transferid,istart,iend,bytes,speed,";
const COMMON_COUNT: usize = 10;
/// The first columns of UDP rows without a header line.
const LOSS_NAMES: [&str; 5] = ["jitter", "errors", "datagrams", "errpercent", "outoforder"];

impl Columns {
    /// Reads a header line; returns whether it is one.
    pub(super) fn header(&mut self, line: &str) -> bool {
        let names = line.strip_prefix(COMMON_NAMES);
        if let Some(names) = names {
            self.0 = names.split(',').map(str::to_owned).collect();
        }
        names.is_some()
    }
}

/// An address and a port; `None` where the program does not know them.
pub(super) type End = Option<(String, u16)>;

/// One row: an interval or a total.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub text: String,
    /// Time of the row in ms since 1970.
    pub stamp_ms: Option<u64>,
    pub source: End,
    pub destination: End,
    /// -1 for a sum.
    pub id: i64,
    pub start_ns: u64,
    pub end_ns: u64,
    pub bytes: u64,
    bits_per_s: f64,
    /// Further columns that have a value.
    more: Vec<(String, f64)>,
    /// Columns of the row.
    pub count: usize,
}

impl Row {
    /// Reads a row: with a header line by its names, without one the columns that all releases
    /// have.
    pub(super) fn parse(
        line: &str,
        columns: &Columns,
        utc_offset_s: &dyn Fn(i64) -> i64,
    ) -> Option<Self> {
        let fields: Vec<&str> = line.split(',').collect();
        let (
            time,
            [
                source,
                source_port,
                destination,
                destination_port,
                id,
                rest @ ..,
            ],
        ) = fields.split_first()?
        else {
            return None;
        };

        let has_header = !columns.0.is_empty() && fields.len() == COMMON_COUNT + columns.0.len();
        let ((start, end), rest) = match rest {
            [start, end, rest @ ..] if has_header => ((*start, *end), rest),
            [range, rest @ ..] => (range.split_once('-')?, rest),
            [] => return None,
        };
        let [bytes, rate, values @ ..] = rest else {
            return None;
        };
        let names: Vec<&str> = match values.len() {
            _ if has_header => columns.0.iter().map(String::as_str).collect(),
            0 => Vec::new(),
            // Rows have no column after the rate, or at least five.
            5.. if is_loss(values) => LOSS_NAMES.to_vec(),
            5.. => Vec::new(),
            _ => return None,
        };

        if values.iter().any(|value| value.parse::<f64>().is_err()) {
            return None;
        }

        let known = |(name, value): (&str, &&str)| Some((name.to_owned(), number(value)?));
        Some(Self {
            text: line.to_owned(),
            stamp_ms: stamp_ms(time, utc_offset_s)?,
            source: end_of(source, source_port)?,
            destination: end_of(destination, destination_port)?,
            id: id.parse().ok()?,
            start_ns: ns(start)?,
            end_ns: ns(end)?,
            // Larger whole numbers are not exact in JSON everywhere (RFC 8259 section 6).
            bytes: bytes.parse().ok().filter(|bytes| *bytes < 1 << 53)?,
            bits_per_s: rate.parse().ok()?,
            more: names.into_iter().zip(values).filter_map(known).collect(),
            count: fields.len(),
        })
    }

    /// Its length as the printed rate shows it, because times are rounded to a tenth of a second;
    /// where the rate is not that of these times, the length of the range.
    pub(super) fn duration_ns(&self) -> u64 {
        const ROUNDED_NS: f64 = 1e8;

        let range_ns = self.end_ns.saturating_sub(self.start_ns);
        let exact_ns = self.bytes as f64 * 8e9 / self.bits_per_s;
        let is_of_range = (exact_ns - range_ns as f64).abs() <= ROUNDED_NS;

        // A float cast saturates.
        if is_of_range {
            exact_ns.round() as u64
        } else {
            range_ns
        }
    }

    /// A further column; `None` when the row has none or no value in it.
    pub(super) fn value(&self, name: &str) -> Option<f64> {
        self.more
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| *value)
    }

    pub(super) fn count_of(&self, name: &str) -> Option<u64> {
        self.value(name)
            .filter(|value| (0.0..9e15).contains(value))
            .map(|value| value as u64)
    }

    /// Times in ms as seconds: columns `avg`, `min`, `max`, and those given here.
    pub(super) fn distribution(&self, prefix: &str, deviation: &str) -> Option<Distribution> {
        let time_s = |name: &str| self.value(&format!("{prefix}{name}")).map(|ms| ms / 1e3);
        let distribution = Distribution {
            count: self
                .count_of(&format!("{prefix}cnt"))
                .filter(|count| *count > 0)?,
            mean: time_s("avg")?,
            min: time_s("min")?,
            max: time_s("max")?,
            deviation: time_s(deviation)?,
        };

        Some(distribution)
    }

    pub(super) fn is_udp(&self) -> bool {
        self.value("errors").is_some()
    }

    /// True if the last digits can be missing: of 9 columns, the rate is lower than that of the
    /// bytes.
    pub(super) fn is_cut(&self, is_line_whole: bool) -> bool {
        // Times have one digit after the point.
        let longest_s = self.end_ns.saturating_sub(self.start_ns) as f64 / 1e9 + 0.05;
        match self.count {
            9 => self.bits_per_s < self.bytes as f64 * 8.0 / longest_s * 0.99 - 1.0,
            14 => false,
            _ => !is_line_whole,
        }
    }
}

/// True if values begin with jitter, lost datagrams, datagrams and the percentage that these two
/// are. Values that are no numbers, and -1, are not known.
fn is_loss(values: &[&str]) -> bool {
    let [_, lost, datagrams, percent, _, ..] = values else {
        return false;
    };
    match (number(lost), number(datagrams), number(percent)) {
        (Some(lost), Some(datagrams), Some(percent)) => {
            lost <= datagrams && (percent - 100.0 * lost / datagrams.max(1.0)).abs() < 0.01
        }
        // A client that does not know its server's count.
        (Some(lost), None, _) => lost == 0.0,
        _ => false,
    }
}

/// -1, -0.000 and what is no number mean "not known".
fn number(text: &str) -> Option<f64> {
    let is_known = |value: &f64| value.is_finite() && !value.is_sign_negative();
    text.parse().ok().filter(is_known)
}

fn ns(seconds: &str) -> Option<u64> {
    let seconds: f64 = seconds.parse().ok()?;
    (0.0..1e9)
        .contains(&seconds)
        .then(|| (seconds * 1e9).round() as u64)
}

/// The outer `None` is no address.
fn end_of(address: &str, port: &str) -> Option<End> {
    let port: u16 = port.parse().ok()?;
    let is_address = address.is_empty() || address.contains(['.', ':']);
    is_address.then(|| (port > 0).then(|| (address.to_owned(), port)))
}

/// `20261121184558`, with `.764` or `.337261` behind and `+0000:` before it. The outer `None` is no
/// time, the inner one a time that the program did not set.
fn stamp_ms(text: &str, utc_offset_s: &dyn Fn(i64) -> i64) -> Option<Option<u64>> {
    let (zone, time) = text
        .split_once(':')
        .map_or((None, text), |(zone, time)| (Some(zone), time));
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    if time.len() != 14
        || !time
            .bytes()
            .chain(fraction.bytes())
            .all(|byte| byte.is_ascii_digit())
    {
        return None;
    }

    let local = DateTime::strptime("%Y%m%d%H%M%S", time).ok()?;
    let local_s = local.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second();
    // 2.1.8 stamps the rows of a test without `-i` with the start of 1970.
    if local_s <= 86_400 {
        return Some(None);
    }

    let offset_s = match zone {
        Some(zone) => offset_s(zone)?,
        None => utc_offset_s(local_s),
    };
    // The fraction has any number of digits, of which the first three are ms.
    let ms: i64 = format!("{fraction:0<3}")[..3].parse().ok()?;
    Some(u64::try_from((local_s - offset_s) * 1000 + ms).ok())
}

/// `+0130` or `-0800`.
fn offset_s(zone: &str) -> Option<i64> {
    let (sign, digits) = zone
        .strip_prefix('-')
        .map_or((1, zone.strip_prefix('+')), |digits| (-1, Some(digits)));
    let digits = digits
        .filter(|digits| digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    let (hours, minutes): (i64, i64) = (digits[..2].parse().ok()?, digits[2..].parse().ok()?);
    Some(sign * (hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_local_unless_they_have_an_offset() {
        let an_hour_east = |_: i64| 3600;
        let rows = [
            ("20261121184558", Some(Some(1_795_286_758_000 - 3_600_000))),
            (
                "20261121184614.801",
                Some(Some(1_795_286_774_801 - 3_600_000)),
            ),
            ("+0000:20261121185053.828738", Some(Some(1_795_287_053_828))),
            (
                "-0130:20240229000000.5",
                Some(Some(1_709_164_800_500 + 5_400_000)),
            ),
            ("19700101000000", Some(None)),
            ("2026112118455", None),
            ("Sat", None),
        ];
        for (text, expected) in rows {
            assert_eq!(stamp_ms(text, &an_hour_east), expected, "{text}");
        }
    }

    #[test]
    fn a_row_without_its_last_digits_is_cut() {
        let row = |line: &str| Row::parse(line, &Columns::default(), &|_| 0).expect(line);
        let whole = "20261121184559,10.77.0.1,55070,10.77.0.2,5001,1,0.0-2.1,5242940,20198539";
        assert!(!row(whole).is_cut(false));
        assert!(row(&whole[..whole.len() - 1]).is_cut(true));
    }

    #[test]
    fn minus_one_and_no_numbers_are_absent() {
        let line = "20261121185257,10.77.0.1,42134,10.77.0.2,5001,1,0.0-2.0,266070,1054277,-nan,0,-1,-0.000,0";
        let row = Row::parse(line, &Columns::default(), &|_| 0).expect("14 columns");
        let known = LOSS_NAMES.map(|name| row.value(name));
        assert_eq!(known, [None, Some(0.0), None, None, Some(0.0)]);
        assert!(row.is_udp());
    }
}
