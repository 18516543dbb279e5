//! When the runs of a watch start: on a grid that is fixed by its name and its period, so that a
//! restart keeps it.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use linerate_model::fnv::fnv64;
use thiserror::Error;

use super::quiet::Quiet;

/// Part of a slot in which its run starts, as a divisor of the period.
const JITTER_DIVISOR: u64 = 10;

/// Start times of a watch.
#[derive(Debug, Clone)]
pub struct Schedule {
    seed: u64,
    period_ms: i64,
    run_ms: i64,
    quiet: Quiet,
    zone: TimeZone,
}

/// One slot of the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Its number; that of the next slot is one higher.
    pub number: i64,
    /// When its run starts.
    pub start: Timestamp,
}

/// A period that is shorter than a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "a run takes about {run:?} and starts up to {jitter:?} after the begin of its slot: {needed:?} \
     do not fit in a period of {period:?}"
)]
pub struct PeriodTooShort {
    run: Duration,
    jitter: Duration,
    needed: Duration,
    period: Duration,
}

impl Schedule {
    /// Runs of length `run` every `period`; `zone` is that of the quiet hours.
    ///
    /// # Errors
    /// When a run does not fit in a slot.
    pub fn new(
        name: &str,
        period: Duration,
        run: Duration,
        quiet: Quiet,
        zone: TimeZone,
    ) -> Result<Self, PeriodTooShort> {
        let jitter = period / JITTER_DIVISOR as u32;
        let needed = run.saturating_add(jitter);
        if needed > period || period < Duration::from_secs(1) {
            return Err(PeriodTooShort {
                run,
                jitter,
                needed,
                period,
            });
        }

        let period_ms = milliseconds(period);
        let run_ms = milliseconds(run);
        Ok(Self {
            seed: fnv64(name.as_bytes()),
            period_ms,
            run_ms,
            quiet,
            zone,
        })
    }

    /// The first slot whose run starts after this time and ends before the next quiet period;
    /// `None` where the quiet hours leave no time for a run.
    pub fn next(&self, after: Timestamp) -> Option<Slot> {
        const PERIODS_OF_A_WEEK_MAX: usize = 1000;

        let mut earliest_ms = after.as_millisecond() + 1;
        for _ in 0..PERIODS_OF_A_WEEK_MAX {
            let slot = self.first_from(earliest_ms)?;
            match self.quiet_end(slot.start) {
                None => return Some(slot),
                // The next candidate is the first slot after the quiet period.
                Some(quiet_end) => earliest_ms = quiet_end.as_millisecond(),
            }
        }

        None
    }

    /// True if a run that starts at this time overlaps a quiet period.
    pub fn is_quiet(&self, start: Timestamp) -> bool {
        self.quiet_end(start).is_some()
    }

    /// Slots that a run occupied beyond its own: those that started after `from` and not after
    /// `now`.
    pub fn overrun(&self, from: Slot, now: Timestamp) -> Vec<Slot> {
        let next = |slot: &Slot| self.next(slot.start).filter(|slot| slot.start <= now);
        std::iter::successors(next(&from), next).collect()
    }

    /// Half of a slot: the time in which a failed run is tried again.
    pub fn retry_time(&self) -> Duration {
        Duration::from_millis(self.period_ms.unsigned_abs() / 2)
    }

    fn quiet_end(&self, start: Timestamp) -> Option<Timestamp> {
        // A run without a length would overlap no period.
        let end = Timestamp::from_millisecond(start.as_millisecond() + self.run_ms.max(1)).ok()?;
        self.quiet.end_of_overlap(&self.zone, start, end)
    }

    /// The first slot that starts at or after this time, quiet or not.
    fn first_from(&self, earliest_ms: i64) -> Option<Slot> {
        // A period is at least a second, so that the divisor is not 0.
        let phase_ms = (mix(self.seed) % self.period_ms.unsigned_abs()) as i64;
        let number = (earliest_ms - phase_ms).div_euclid(self.period_ms);
        let slots = (number..).map(|number| {
            (
                number,
                phase_ms + number * self.period_ms + self.jitter_ms(number),
            )
        });
        let (number, start_ms) = slots
            // The jitter may put this slot before the time; the next one starts after it.
            .take(3)
            .find(|(_, start_ms)| *start_ms >= earliest_ms)?;

        Some(Slot {
            number,
            start: Timestamp::from_millisecond(start_ms).ok()?,
        })
    }

    fn jitter_ms(&self, number: i64) -> i64 {
        let range_ms = self.period_ms.unsigned_abs() / JITTER_DIVISOR;
        (mix(self.seed ^ mix(number as u64)) % (range_ms + 1)) as i64
    }
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// The output function of SplitMix64, which spreads neighbouring numbers.
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ number >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn schedule(every: Duration, run: Duration, quiet: &str) -> Schedule {
        let quiet = if quiet.is_empty() {
            Quiet::default()
        } else {
            quiet.parse().expect("quiet hours")
        };
        // The rules of Berlin: forward on 29 March 2026 at 02:00, back on 25 October at 03:00.
        let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a zone");
        Schedule::new("uplink", every, run, quiet, berlin).expect("a run fits")
    }

    /// Starts in a period, as minutes of the local clock with its offset.
    fn starts(schedule: &Schedule, from: &str, until: &str) -> Vec<String> {
        let [from, until]: [Timestamp; 2] = [from, until].map(|time| time.parse().expect("a time"));
        let slots = std::iter::successors(schedule.next(from), |slot| schedule.next(slot.start));
        let slots = slots.take_while(|slot| slot.start <= until);
        slots
            .map(|slot| {
                slot.start
                    .to_zoned(schedule.zone.clone())
                    .strftime("%a %H:%M%:::z")
                    .to_string()
            })
            .collect()
    }

    #[test]
    fn starts_keep_to_a_grid_with_jitter_wherever_the_clock_is() {
        let schedule = schedule(5 * MINUTE, MINUTE, "");
        let from: Timestamp = "2026-06-01T00:00:00Z".parse().expect("a time");
        let slots: Vec<Slot> =
            std::iter::successors(schedule.next(from), |slot| schedule.next(slot.start))
                .take(1000)
                .collect();
        let offsets: Vec<i64> = slots
            .iter()
            .map(|s| s.start.as_millisecond() - s.number * 300_000)
            .collect();
        let (least, most) = (
            offsets.iter().min().expect("slots"),
            offsets.iter().max().expect("slots"),
        );
        assert!(
            most - least <= 30_000 && most - least > 29_000,
            "jitter {least}..{most} ms"
        );

        for (earlier, later) in slots.iter().zip(&slots[1..]) {
            assert_eq!(later.number, earlier.number + 1);
            // A restart at any time between two starts finds the same next one.
            let between =
                Timestamp::from_millisecond(later.start.as_millisecond() - 1).expect("a time");
            assert_eq!(schedule.next(between), Some(*later));
        }

        let other = Schedule {
            seed: fnv64(b"downlink"),
            ..schedule
        };
        assert_ne!(
            other.next(from).map(|slot| slot.start),
            slots.first().map(|slot| slot.start)
        );
    }

    #[test]
    fn slots_that_an_earlier_run_occupies_are_counted_and_not_made_up() {
        let schedule = schedule(5 * MINUTE, MINUTE, "");
        let first = schedule
            .next("2026-06-01T00:00:00Z".parse().expect("a time"))
            .expect("a slot");
        let now = first.start + 14 * MINUTE;
        let skipped = schedule.overrun(first, now);
        assert_eq!(
            skipped
                .iter()
                .map(|slot| slot.number - first.number)
                .collect::<Vec<_>>(),
            [1, 2]
        );
        assert_eq!(
            schedule.next(now).map(|slot| slot.number - first.number),
            Some(3)
        );
        assert!(schedule.overrun(first, first.start + MINUTE).is_empty());
    }

    #[test]
    fn period_shorter_than_a_run_is_refused_with_the_arithmetic() {
        let new = |period, run| Schedule::new("x", period, run, Quiet::default(), TimeZone::UTC);
        let refused = new(10 * MINUTE, 10 * MINUTE).expect_err("it does not fit");
        let text = "a run takes about 600s and starts up to 60s after the begin of its slot: 660s \
                    do not fit in a period of 600s";
        assert_eq!(refused.to_string(), text);
        assert!(new(10 * MINUTE, 9 * MINUTE).is_ok());
    }

    #[test]
    fn quiet_hours_hold_over_midnight_and_no_run_reaches_into_them() {
        let hourly = schedule(60 * MINUTE, 10 * MINUTE, "22:00-06:00,sun");
        let found = starts(&hourly, "2026-06-05T17:00:00Z", "2026-06-08T06:00:00Z");

        let expected = [
            "Fri 19:20+02",
            "Fri 20:20+02",
            "Fri 21:22+02",
            "Sat 06:23+02",
            "Sat 07:21+02",
        ];
        assert_eq!(found[..5], expected);
        let longer = schedule(60 * MINUTE, 40 * MINUTE, "22:00-06:00");
        let last = starts(&longer, "2026-06-05T17:00:00Z", "2026-06-05T22:00:00Z");
        assert_eq!(
            last,
            ["Fri 19:20+02", "Fri 20:20+02"],
            "a run from 21:22 would last until 22:02"
        );
    }

    #[test]
    fn hour_that_a_change_of_summer_time_repeats_is_quiet_once_and_one_left_out_never() {
        let half_hours = |quiet| schedule(30 * MINUTE, MINUTE, quiet);
        let starts = |quiet, from, until| starts(&half_hours(quiet), from, until).join(", ");
        // The clock shows 02:00 to 03:00 twice.
        let autumn = |quiet| starts(quiet, "2026-10-24T23:30:00Z", "2026-10-25T02:00:00Z");
        assert_eq!(
            autumn("12:00-13:00"),
            "Sun 01:50+02, Sun 02:18+02, Sun 02:49+02, Sun 02:19+01, Sun 02:49+01"
        );
        assert_eq!(
            autumn("02:00-02:30"),
            "Sun 01:50+02, Sun 02:49+02, Sun 02:19+01, Sun 02:49+01"
        );

        let night = starts(
            "22:00-06:00",
            "2026-10-24T19:30:00Z",
            "2026-10-25T05:30:00Z",
        );
        assert_eq!(night, "Sat 21:49+02, Sun 06:20+01");

        // It goes from 02:00 to 03:00.
        let spring = |quiet| starts(quiet, "2026-03-29T00:30:00Z", "2026-03-29T02:00:00Z");
        assert_eq!(
            spring("12:00-13:00"),
            "Sun 01:50+01, Sun 03:20+02, Sun 03:50+02"
        );
        assert_eq!(spring("02:10-02:50"), spring("12:00-13:00"));

        let night = starts(
            "22:00-06:00",
            "2026-03-28T20:30:00Z",
            "2026-03-29T04:30:00Z",
        );
        assert_eq!(night, "Sat 21:49+01, Sun 06:19+02");
    }

    #[test]
    fn quiet_hours_are_checked() {
        for wrong in [
            "",
            "22-6",
            "22:00",
            "25:00-06:00",
            "22:00-22:00",
            "caturday",
            "22:00-06:00,",
        ] {
            assert!(wrong.parse::<Quiet>().is_err(), "{wrong}");
        }

        let always = schedule(5 * MINUTE, MINUTE, "00:00-12:00,12:00-24:00");
        assert_eq!(always.next(Timestamp::UNIX_EPOCH), None);
    }
}
