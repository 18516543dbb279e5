//! Layout of the data of a tracepoint: the file `format` of tracefs
//! (Documentation/trace/events.rst of the kernel).

use std::collections::BTreeMap;

/// Layout of one tracepoint's data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Format {
    /// Number of the tracepoint, which its data begin with.
    pub id: u16,
    fields: BTreeMap<String, Field>,
    /// Values that `print fmt` has a name for.
    names: BTreeMap<u64, String>,
}

/// Where a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    offset: usize,
    size: usize,
}

impl Format {
    /// Parses the text; `None` where it has no number or no field.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let lines = || text.lines().map(str::trim);
        let id = lines().find_map(|line| line.strip_prefix("ID:"))?;
        let fields: BTreeMap<String, Field> = lines().filter_map(field).collect();
        let printed = lines().find_map(|line| line.strip_prefix("print fmt:"));

        Some(Self {
            id: id.trim().parse().ok()?,
            names: printed.map(names).unwrap_or_default(),
            fields: (!fields.is_empty()).then_some(fields)?,
        })
    }

    /// Where a field is; `None` where this kernel has none of the name.
    pub(super) fn field(&self, name: &str) -> Option<Field> {
        self.fields.get(name).copied()
    }

    /// Name of a value in `print fmt`.
    pub(super) fn name(&self, value: u64) -> Option<&str> {
        self.names.get(&value).map(String::as_str)
    }
}

impl Field {
    /// The number in the data of an event; `None` where these are shorter, or it is no number.
    pub(super) fn number(self, data: &[u8]) -> Option<u64> {
        let bytes = data.get(self.offset..)?.get(..self.size)?;
        match self.size {
            2 => Some(u16::from_ne_bytes(bytes.try_into().ok()?).into()),
            4 => Some(u32::from_ne_bytes(bytes.try_into().ok()?).into()),
            8 => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
            _ => None,
        }
    }
}

/// `field:void * location; offset:16; size:8; signed:0;`
fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.strip_prefix("field:")?.split(';').map(str::trim);
    let declared = parts.next()?;
    let name = declared.rsplit([' ', '*']).next()?;
    let mut number = |key: &str| parts.next()?.strip_prefix(key)?.parse().ok();

    let offset = number("offset:")?;
    let size = number("size:")?;
    Some((name.to_owned(), Field { offset, size }))
}

/// `__print_symbolic(REC->reason, { 2, "NOT_SPECIFIED" }, { 3, "NO_SOCKET" })`. A value whose name
/// the kernel did not resolve is left out.
fn names(print_format: &str) -> BTreeMap<u64, String> {
    let pairs = print_format.split('{').skip(1).filter_map(|pair| {
        let (value, name) = pair.split_once('}')?.0.split_once(',')?;
        let name = name.trim().strip_prefix('"')?.strip_suffix('"')?;
        Some((value.trim().parse().ok()?, name.to_owned()))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Format {
        Format::parse(text).expect("a layout")
    }

    #[test]
    fn layouts_of_kernels_with_and_without_a_reason_are_read() {
        let new = of(include_str!("captures/kfree_skb-6.18.txt"));
        assert_eq!(new.id, 2310);
        assert_eq!(
            new.field("reason"),
            Some(Field {
                offset: 36,
                size: 4
            })
        );
        assert_eq!(
            new.field("location"),
            Some(Field {
                offset: 16,
                size: 8
            })
        );
        assert_eq!(
            new.field("protocol"),
            Some(Field {
                offset: 32,
                size: 2
            })
        );
        assert_eq!(new.name(6), Some("SOCKET_RCVBUFF"));
        assert_eq!((new.name(1), new.name(999)), (None, None));

        let first = of(include_str!("captures/kfree_skb-5.17.txt"));
        assert_eq!(
            first.field("reason"),
            Some(Field {
                offset: 28,
                size: 4
            })
        );
        assert_eq!(first.name(5), Some("UDP_CSUM"));
        assert_eq!(first.name(0), None, "its name was not resolved");

        let old = of(include_str!("captures/kfree_skb-5.10.txt"));
        assert_eq!(old.field("reason"), None);
        assert_eq!(
            old.field("protocol"),
            Some(Field {
                offset: 24,
                size: 2
            })
        );
    }

    #[test]
    fn numbers_are_read_within_the_data_alone() {
        let field = Field { offset: 2, size: 2 };
        assert_eq!(field.number(&[0, 0, 7, 0]), Some(7));
        for short in [&[][..], &[0, 0][..], &[0, 0, 7][..]] {
            assert_eq!(field.number(short), None);
        }
        let far = Field {
            offset: usize::MAX,
            size: 8,
        };
        assert_eq!(far.number(&[0; 64]), None);
        assert_eq!(
            Field {
                offset: 0,
                size: 28
            }
            .number(&[0; 64]),
            None
        );
    }

    #[test]
    fn texts_that_are_no_layout_are_refused() {
        for text in [
            "",
            "ID: 7",
            "ID: x\n\tfield:int a;\toffset:0;\tsize:4;",
            "{{{,,,}}}",
        ] {
            assert_eq!(Format::parse(text), None, "{text}");
        }
    }
}
