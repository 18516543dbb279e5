//! Ports at which servers of one host listen.

use std::fmt;
use std::str::FromStr;

/// `N`, or `FIRST-LAST`: the first port whose server is free serves a test.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PortRange {
    /// The port that is tried first.
    pub first: u16,
    last: u16,
}

/// Most ports of a range: a longer one is a mistake.
const PORTS_MAX: u16 = 256;

impl PortRange {
    /// True for more than one port.
    pub fn is_range(&self) -> bool {
        self.first < self.last
    }

    /// The result for the first port that is not taken. `attempt` receives the port, and whether it
    /// is the last one; `is_taken` is true for an error that says nothing of the other ports.
    ///
    /// # Errors
    /// The first error of another kind, or that of the last port.
    pub fn first_free<T, E>(
        self,
        mut attempt: impl FnMut(u16, bool) -> Result<T, E>,
        is_taken: impl Fn(&E) -> bool,
    ) -> Result<T, E> {
        for port in self.first..self.last {
            match attempt(port, false) {
                Err(error) if is_taken(&error) => {}
                ended => return ended,
            }
        }

        attempt(self.last, true)
    }

    /// The remark on a port of this range that serves the test; `None` for the first one.
    pub fn remark(&self, port: u16) -> Option<String> {
        (port != self.first).then(|| format!("port {port} of {self} is the first free one"))
    }
}

impl From<u16> for PortRange {
    fn from(port: u16) -> Self {
        let first = port;
        let last = port;
        Self { first, last }
    }
}

impl FromStr for PortRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.parse::<u16>(), last.parse::<u16>()) {
            (Ok(first @ 1..), Ok(last))
                if last.checked_sub(first).is_some_and(|n| n < PORTS_MAX) =>
            {
                Ok(Self { first, last })
            }
            _ => Err(format!(
                "expected a port, 1 to 65535, or a range of at most {PORTS_MAX}: 5201-5210"
            )),
        }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_range() {
            write!(f, "{}-{}", self.first, self.last)
        } else {
            self.first.fmt(f)
        }
    }
}

/// As text: keys of records are made from specifications.
impl fmt::Debug for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_port_and_ranges_are_read_and_other_texts_refused() {
        for text in ["1", "65535", "5201-5210", "1-256", "65000-65535"] {
            let wide = text == "65000-65535";
            let read = text.parse::<PortRange>();
            assert_eq!(read.is_err(), wide, "{text}");
            assert!(wide || read.is_ok_and(|ports| ports.to_string() == text));
        }
        assert_eq!("65535-65535".parse(), Ok(PortRange::from(65535)));

        for text in [
            "",
            "0",
            "0-2",
            "65536",
            "5210-5201",
            "5201-",
            "-5201",
            "1-257",
            "a-b",
            "1-2-3",
        ] {
            assert!(text.parse::<PortRange>().is_err(), "{text}");
        }
    }

    #[test]
    fn ports_are_tried_until_one_is_free_or_another_error_ends_it() {
        let ports: PortRange = "5201-5204".parse().expect("a range");
        let found = |free: u16, broken: u16| {
            let mut tried = Vec::new();
            let result = ports.first_free(
                |port, is_last| {
                    tried.push((port, is_last));
                    match port {
                        _ if port == free => Ok(port),
                        _ if port == broken => Err("broken"),
                        _ => Err("taken"),
                    }
                },
                |error| *error == "taken",
            );
            (result, tried.len(), tried.last().copied())
        };

        assert_eq!(found(5201, 0), (Ok(5201), 1, Some((5201, false))));
        assert_eq!(found(5204, 0), (Ok(5204), 4, Some((5204, true))));
        assert_eq!(found(0, 0), (Err("taken"), 4, Some((5204, true))));
        assert_eq!(found(5204, 5202), (Err("broken"), 2, Some((5202, false))));
    }
}
