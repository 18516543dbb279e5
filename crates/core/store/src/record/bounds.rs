//! Bounds of a record, checked while its text is read and before anything is allocated.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// Longest text of a record.
pub const FILE_MAX_BYTES: usize = 64 << 20;
/// Longest text in it.
pub(crate) const TEXT_MAX_BYTES: usize = 64 << 10;
const NESTING_MAX: usize = 64;
const TRIALS_MAX: usize = 100_000;
const ITEMS_MAX: usize = 1_000_000;
const NAME_MAX_BYTES: usize = 256;

/// Content of a text, as far as it was read.
#[derive(Default)]
pub(crate) struct Scan {
    /// Value of the member `schema`.
    pub schema: Option<String>,
    /// The member that was being read.
    pub member: String,
    /// The member that was entered last.
    pub entered: String,
    /// The bound that was exceeded.
    pub exceeded: Option<String>,
}

/// Reads a text to its end, its first fault, or the first bound it exceeds.
pub(crate) fn scan(text: &str) -> (Scan, Result<(), serde_json::Error>) {
    let state = RefCell::new(Scan::default());
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let walk = Walk {
        state: &state,
        depth: 0,
    };
    let outcome = walk
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end());

    (state.into_inner(), outcome)
}

#[derive(Clone, Copy)]
struct Walk<'a> {
    state: &'a RefCell<Scan>,
    depth: usize,
}

impl Walk<'_> {
    fn exceeded<E: serde::de::Error>(self, bound: String) -> E {
        let error = E::custom(&bound);
        self.state.borrow_mut().exceeded = Some(bound);
        error
    }

    fn inner<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth == NESTING_MAX {
            return Err(self.exceeded(format!("nested deeper than {NESTING_MAX}")));
        }

        Ok(Self {
            depth: self.depth + 1,
            ..self
        })
    }

    /// Enters a member; `leave` restores the member around it.
    fn enter(self, name: fmt::Arguments<'_>) -> usize {
        use fmt::Write as _;

        let state = &mut *self.state.borrow_mut();
        let length = state.member.len();
        // Writing to a text does not fail.
        let _ = state.member.write_fmt(name);

        state.entered.clone_from(&state.member);
        length
    }

    fn leave(self, length: usize) {
        self.state.borrow_mut().member.truncate(length);
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        if text.len() > TEXT_MAX_BYTES {
            return Err(self.exceeded(format!("longer than {TEXT_MAX_BYTES} bytes")));
        }

        let mut state = self.state.borrow_mut();
        if state.member == "schema" {
            state.schema = Some(text.to_owned());
        }

        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let inner = self.inner()?;
        let (what, max) = match self.state.borrow().member.as_str() {
            "trials" => ("trials", TRIALS_MAX),
            _ => ("items", ITEMS_MAX),
        };

        for at in 0.. {
            let length = self.enter(format_args!("[{at}]"));
            if items.next_element_seed(inner)?.is_none() {
                self.leave(length);
                return Ok(());
            }

            self.leave(length);
            // The element beyond the limit exists: a list of exactly this length passes.
            if at == max {
                return Err(self.exceeded(format!("more than {max} {what}")));
            }
        }

        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let inner = self.inner()?;
        while let Some(name) = members.next_key::<String>()? {
            if name.len() > NAME_MAX_BYTES {
                return Err(self.exceeded(format!("a name longer than {NAME_MAX_BYTES} bytes")));
            }

            let dot = if self.depth == 0 { "" } else { "." };
            let length = self.enter(format_args!("{dot}{name}"));
            members.next_value_seed(inner)?;
            self.leave(length);
        }

        Ok(())
    }
}
