//! Times of the local clock at which nothing is run.

use std::str::FromStr;

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan};

/// Quiet hours and days: `22:00-06:00,sat,sun`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quiet(Vec<Rule>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Every day, from one time to another; over midnight where the second is not later.
    Hours(Time, Time),
    /// A whole day of the week.
    Day(Weekday),
}

const DAYS: [(&str, Weekday); 7] = [
    ("mon", Weekday::Monday),
    ("tue", Weekday::Tuesday),
    ("wed", Weekday::Wednesday),
    ("thu", Weekday::Thursday),
    ("fri", Weekday::Friday),
    ("sat", Weekday::Saturday),
    ("sun", Weekday::Sunday),
];

impl FromStr for Quiet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',')
            .map(|part| rule(part.trim()))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl Quiet {
    /// End of the quiet period that a run from `start` to `end` would overlap; the latest one,
    /// where there are several.
    ///
    /// A quiet period begins when the clock shows its start for the first time and ends when it
    /// shows its end for the first time. So an hour that a change of summer time repeats is quiet
    /// once, and one that it leaves out never.
    pub(super) fn end_of_overlap(
        &self,
        zone: &TimeZone,
        start: Timestamp,
        end: Timestamp,
    ) -> Option<Timestamp> {
        // A period over midnight begins on the day before.
        let day_before = zone.to_datetime(start).date().yesterday().ok()?;
        let days = day_before
            .series(1.day())
            .take_while(|day| instant(zone, day.at(0, 0, 0, 0)) <= end);
        let periods =
            days.flat_map(|day| self.0.iter().filter_map(move |rule| rule.period_of(day)));
        let periods = periods.map(|(from, to)| (instant(zone, from), instant(zone, to)));

        periods
            .filter(|(from, to)| *from < end && start < *to)
            .map(|(_, to)| to)
            .max()
    }
}

impl Rule {
    /// The period that begins on a day.
    fn period_of(self, day: Date) -> Option<(DateTime, DateTime)> {
        let tomorrow = day.tomorrow().ok()?;
        match self {
            Self::Hours(from, to) if from < to => {
                Some((day.to_datetime(from), day.to_datetime(to)))
            }
            Self::Hours(from, to) => Some((day.to_datetime(from), tomorrow.to_datetime(to))),
            Self::Day(weekday) if day.weekday() == weekday => {
                Some((day.at(0, 0, 0, 0), tomorrow.at(0, 0, 0, 0)))
            }
            Self::Day(_) => None,
        }
    }
}

/// When the local clock shows a time for the first time, or passes it.
fn instant(zone: &TimeZone, shown: DateTime) -> Timestamp {
    let ambiguous = zone.to_ambiguous_timestamp(shown);
    let earlier = ambiguous.earlier().unwrap_or(Timestamp::MAX);

    match ambiguous.offset() {
        // A local time that the clock skips is the instant of the change.
        AmbiguousOffset::Gap { .. } => zone
            .following(earlier)
            .next()
            .map_or(earlier, |change| change.timestamp()),
        _ => earlier,
    }
}

fn rule(text: &str) -> Result<Rule, String> {
    if let Some((_, day)) = DAYS
        .iter()
        .find(|(name, _)| text.eq_ignore_ascii_case(name))
    {
        return Ok(Rule::Day(*day));
    }

    let wrong = || {
        format!(
            "{text:?} is neither a period such as 22:00-06:00 nor one of mon, tue, wed, thu, fri, \
             sat, sun"
        )
    };
    let (from, to) = text
        .split_once('-')
        .and_then(|(from, to)| Some((time(from)?, time(to)?)))
        .ok_or_else(wrong)?;
    if from == to {
        Err(format!("{text:?} is quiet all day or never"))
    } else {
        Ok(Rule::Hours(from, to))
    }
}

fn time(text: &str) -> Option<Time> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let (hours, minutes): (i8, i8) = (hours.parse().ok()?, minutes.parse().ok()?);
    match (hours, minutes) {
        // ISO 8601 allows 24:00 for the end of a day.
        (24, 0) => Some(Time::midnight()),
        _ => Time::new(hours, minutes, 0, 0).ok(),
    }
}
