//! Grammar of `--over`: factors and their levels.
//!
//! ```text
//! over     = factor *("," factor)
//! factor   = name | name "=" low ".." high | name "=" level *("," level)
//! ```
//! A word behind a comma that is no factor's name is a further level of the factor before it, so
//! that lists need no other separator. A factor that was read is printed as text that is read as
//! the same factor.

mod amount;

use std::fmt;
use std::ops::RangeInclusive;

use linerate_model::words::joined;
use thiserror::Error;

pub use amount::{AmountError, UDP_LENGTH, budget, length, rate, volume, window, with_unit};
use amount::{BINARY, DECIMAL, RATE, TCP_LENGTH, WINDOW, amount};

/// A factor and its levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweptFactor {
    /// Its name.
    pub name: &'static str,
    /// Its levels.
    pub levels: Levels,
}

/// Levels of a factor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Levels {
    /// An amount between two.
    Range(u64, u64),
    /// These amounts, from the least to the most.
    List(Vec<u64>),
    /// Algorithms; none for all this host has.
    Congestion(Vec<String>),
    /// Placements; none for any and the first CPUs of this host.
    Affinity(Vec<CpuPinning>),
}

/// On which CPUs the ends run; `None` leaves it to the scheduler.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuPinning {
    /// CPU of the client.
    pub client: Option<u32>,
    /// CPU of the server.
    pub server: Option<u32>,
}

const NAMES: [&str; 6] = [
    "streams",
    "length",
    "window",
    "congestion",
    "rate",
    "affinity",
];

const STREAMS: RangeInclusive<u64> = 1..=128;
const CPUS: RangeInclusive<u64> = 0..=1023;
/// Choices of one factor.
const CHOICES_MAX: usize = 64;
/// Bytes of all that is typed: several times what every choice of every factor takes.
const TEXT_BYTES_MAX: usize = 8192;

/// Why factors are refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FactorError {
    /// Longer than any list of factors.
    #[error("more than {TEXT_BYTES_MAX} bytes")]
    TooLong,
    /// No name of a factor.
    #[error("{0}: expected one of {names}", names = NAMES.join(", "))]
    Unknown(String),
    /// A factor that was given before.
    #[error("{0} was given twice")]
    Duplicate(&'static str),
    /// The levels of a factor.
    #[error("{0}: {1}")]
    Levels(&'static str, #[source] LevelError),
}

/// Why levels of a factor are refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LevelError {
    /// An amount.
    #[error(transparent)]
    Amount(#[from] AmountError),
    /// No range.
    #[error("{0}: expected LOW..HIGH, or several levels")]
    NoRange(String),
    /// A range without a second level.
    #[error("{0}: the first must be less than the second")]
    EmptyRange(String),
    /// More choices than allowed.
    #[error("more than {CHOICES_MAX} choices")]
    TooManyChoices,
    /// Nothing to compare with.
    #[error("expected at least two choices")]
    SingleChoice,
    /// A choice that was given before.
    #[error("{0} was given twice")]
    Duplicate(String),
    /// No name of a congestion control.
    #[error("{0:?} is no name of an algorithm")]
    Algorithm(String),
}

/// Reads factors; lengths have the limits of datagrams or of TCP.
///
/// # Errors
/// The first that is wrong.
pub fn factors(texts: &[String], is_udp: bool) -> Result<Vec<SweptFactor>, FactorError> {
    if texts.iter().map(String::len).sum::<usize>() > TEXT_BYTES_MAX {
        return Err(FactorError::TooLong);
    }

    let read = |(name, words): (&'static str, Vec<&str>)| {
        let levels =
            levels(name, &words, is_udp).map_err(|error| FactorError::Levels(name, error))?;
        Ok(SweptFactor { name, levels })
    };
    words(texts)?.into_iter().map(read).collect()
}

/// The names, each with what follows it.
fn words(texts: &[String]) -> Result<Vec<(&'static str, Vec<&str>)>, FactorError> {
    let mut typed: Vec<(&'static str, Vec<&str>)> = Vec::new();
    for word in texts.iter().flat_map(|text| text.split(',')) {
        let (name, levels) = word
            .split_once('=')
            .map_or((word, None), |(name, levels)| (name, Some(levels)));
        if let Some(name) = NAMES.into_iter().find(|known| *known == name) {
            if typed.iter().any(|(known, _)| *known == name) {
                return Err(FactorError::Duplicate(name));
            }
            typed.push((name, levels.into_iter().collect()));
            continue;
        }

        match typed.last_mut() {
            Some((name, choices)) if choices.len() == CHOICES_MAX => {
                return Err(FactorError::Levels(name, LevelError::TooManyChoices));
            }
            // Only a factor that has a level takes further ones: `streams,4` is refused.
            Some((_, choices)) if levels.is_none() && !choices.is_empty() => choices.push(word),
            _ => return Err(FactorError::Unknown(word.to_owned())),
        }
    }

    Ok(typed)
}

fn levels(name: &str, words: &[&str], is_udp: bool) -> Result<Levels, LevelError> {
    match name {
        "streams" => range(words, 1..=64, STREAMS, DECIMAL),
        "length" if is_udp => range(words, 512..=8192, UDP_LENGTH, BINARY),
        "length" => range(words, 4096..=1 << 20, TCP_LENGTH, BINARY),
        "window" => range(words, 65_536..=16 << 20, WINDOW, BINARY),
        "rate" => range(words, 100_000_000..=10_000_000_000, RATE, DECIMAL),
        "congestion" => Ok(Levels::Congestion(choices(words, algorithm)?)),
        _ => Ok(Levels::Affinity(choices(words, |word| Ok(pinning(word)?))?)),
    }
}

fn range(
    words: &[&str],
    default: RangeInclusive<u64>,
    limits: RangeInclusive<u64>,
    base: u64,
) -> Result<Levels, LevelError> {
    let [word] = words else {
        if words.is_empty() {
            return Ok(Levels::Range(*default.start(), *default.end()));
        }

        let mut levels = choices(words, |word| Ok(amount(word, base, &limits)?))?;
        // A ladder climbs from the least level, whatever the order on the command line.
        levels.sort_unstable();
        return Ok(Levels::List(levels));
    };
    let (low, high) = word
        .split_once("..")
        .ok_or_else(|| LevelError::NoRange((*word).to_owned()))?;
    let low = amount(low, base, &limits)?;
    let high = amount(high, base, &limits)?;
    if low >= high {
        return Err(LevelError::EmptyRange((*word).to_owned()));
    }

    Ok(Levels::Range(low, high))
}

fn choices<T: PartialEq>(
    words: &[&str],
    read: impl Fn(&str) -> Result<T, LevelError>,
) -> Result<Vec<T>, LevelError> {
    let mut choices = Vec::with_capacity(words.len());
    for word in words {
        let choice = read(word)?;
        if choices.contains(&choice) {
            return Err(LevelError::Duplicate((*word).to_owned()));
        }
        choices.push(choice);
    }

    if choices.len() == 1 {
        return Err(LevelError::SingleChoice);
    }

    Ok(choices)
}

/// The name of an algorithm as the kernel allows it (`TCP_CA_NAME_MAX`, include/net/tcp.h).
fn algorithm(word: &str) -> Result<String, LevelError> {
    let is_name = (1..=15).contains(&word.len())
        && word
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    is_name
        .then(|| word.to_owned())
        .ok_or_else(|| LevelError::Algorithm(word.to_owned()))
}

fn pinning(word: &str) -> Result<CpuPinning, AmountError> {
    let cpu = |text: &str| match text {
        "any" => Ok(None),
        _ => amount(text, DECIMAL, &CPUS).map(|cpu| u32::try_from(cpu).ok()),
    };
    match word.split_once('/') {
        None => Ok(CpuPinning {
            client: cpu(word)?,
            server: None,
        }),
        Some((client, server)) => Ok(CpuPinning {
            client: cpu(client)?,
            server: cpu(server)?,
        }),
    }
}

impl SweptFactor {
    /// Its levels without its name; empty for those that this host offers.
    pub fn levels_text(&self) -> String {
        match &self.levels {
            Levels::Range(low, high) => format!(
                "{}..{}",
                with_unit(self.name, *low),
                with_unit(self.name, *high)
            ),
            Levels::List(levels) => {
                joined(levels.iter().map(|level| with_unit(self.name, *level)), ",")
            }
            Levels::Congestion(names) => names.join(","),
            Levels::Affinity(places) => joined(places, ","),
        }
    }
}

impl fmt::Display for SweptFactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let levels = self.levels_text();
        let equals = if levels.is_empty() { "" } else { "=" };
        write!(f, "{}{equals}{levels}", self.name)
    }
}

impl fmt::Display for CpuPinning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpu = |cpu: Option<u32>| cpu.map_or_else(|| "any".to_owned(), |cpu| cpu.to_string());
        match self.server {
            None => f.write_str(&cpu(self.client)),
            server => write!(f, "{}/{}", cpu(self.client), cpu(server)),
        }
    }
}

#[cfg(test)]
mod tests;
