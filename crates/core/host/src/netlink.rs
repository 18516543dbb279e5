//! Messages of netlink: headers and nested attributes (`netlink(7)`, `linux/netlink.h`). Only bytes
//! in, only bytes out.

pub(crate) mod client;

/// Type of the message that ends a response with an error number.
pub(crate) const ERROR: u16 = 2;
/// Type of the message that ends a dump.
const DONE: u16 = 3;
/// A response is requested.
const REQUEST: u16 = 1;
/// The sender wants all objects.
const DUMP: u16 = 0x300;

const HEADER_BYTES: usize = 16;
const ATTRIBUTE_HEADER_BYTES: usize = 4;
/// The two highest bits of an attribute's type are flags.
const TYPE_MASK: u16 = 0x3fff;

/// One message of a response.
pub(crate) struct Message<'a> {
    /// Type of the message; below 16 the types of netlink itself.
    pub kind: u16,
    /// Number of its request.
    pub sequence: u32,
    /// Payload after the header.
    pub payload: &'a [u8],
}

/// The messages of a datagram. A message that claims more bytes than there are ends it.
pub(crate) fn messages(datagram: &[u8]) -> impl Iterator<Item = Message<'_>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let length = usize::try_from(u32_at(rest, 0)?)
            .ok()
            // A length below that of the header would never advance.
            .filter(|length| *length >= HEADER_BYTES)?;
        let message = Message {
            kind: u16_at(rest, 4)?,
            sequence: u32_at(rest, 8)?,
            payload: rest.get(HEADER_BYTES..length)?,
        };

        rest = rest.get(aligned(length)..).unwrap_or_default();
        Some(message)
    })
}

/// The attributes of a message or of another attribute: type without its flags, and content.
pub(crate) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(rest, 0)?);
        // A length below that of the header is no range, which ends the list.
        let content = rest.get(ATTRIBUTE_HEADER_BYTES..length)?;
        // Nested attributes and those in network byte order have a flag in the type (netlink(7),
        // `NLA_F_NESTED`).
        let kind = u16_at(rest, 2)? & TYPE_MASK;
        rest = rest.get(aligned(length)..).unwrap_or_default();
        Some((kind, content))
    })
}

/// The first attribute of a type.
pub(crate) fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes)
        .find(|(kind, _)| *kind == wanted)
        .map(|(_, content)| content)
}

/// The number of two bytes in the first attribute of a type.
pub(crate) fn u16_of(bytes: &[u8], wanted: u16) -> Option<u16> {
    u16_at(attribute(bytes, wanted)?, 0)
}

/// The number of four bytes in the first attribute of a type.
pub(crate) fn u32_of(bytes: &[u8], wanted: u16) -> Option<u32> {
    u32_at(attribute(bytes, wanted)?, 0)
}

/// The number of eight bytes in the first attribute of a type.
pub(crate) fn u64_of(bytes: &[u8], wanted: u16) -> Option<u64> {
    u64_at(attribute(bytes, wanted)?, 0)
}

/// A number of four bytes at a position.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    bytes.try_into().ok().map(u32::from_ne_bytes)
}

/// A number of two bytes at a position.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at.checked_add(2)?)?;
    bytes.try_into().ok().map(u16::from_ne_bytes)
}

/// A number of eight bytes at a position.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    bytes.try_into().ok().map(u64::from_ne_bytes)
}

/// Text up to the first zero.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

/// Error number of an [`ERROR`] message; 0 is an acknowledgement.
pub(crate) fn errno(payload: &[u8]) -> i32 {
    // netlink(7): the kernel sends a negative error number.
    u32_at(payload, 0).map_or(0, |code| code.cast_signed().checked_neg().unwrap_or(0))
}

/// A request: header and body.
pub(crate) fn request(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER_BYTES + body.len()).unwrap_or(u32::MAX);
    let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend((REQUEST | flags).to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend(body);

    bytes
}

/// Appends an attribute.
pub(crate) fn push(bytes: &mut Vec<u8>, kind: u16, content: &[u8]) {
    let length = u16::try_from(ATTRIBUTE_HEADER_BYTES + content.len()).unwrap_or(u16::MAX);
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(content);
    bytes.resize(aligned(bytes.len()), 0);
}

/// One attribute.
pub(crate) fn encoded(kind: u16, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    push(&mut bytes, kind, content);
    bytes
}

/// Everything in netlink begins at a multiple of four.
const fn aligned(length: usize) -> usize {
    (length + 3) & !3
}

/// A set of named bits as ethtool sends it (`ETHTOOL_A_BITSET`).
#[derive(Default)]
pub(crate) struct Bitset {
    /// Names, each with whether it is set. Without a mask, only those that are set.
    pub bits: Vec<(String, bool)>,
}

/// The kernel has a few hundred names; more are an error.
const BITS_MAX: usize = 4096;

impl Bitset {
    /// Reads a set that lists its bits by name.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        const NO_MASK: u16 = 1;
        const BITS: u16 = 3;
        const NAME: u16 = 2;
        const VALUE: u16 = 3;

        let all_set = attribute(bytes, NO_MASK).is_some();
        let listed = attribute(bytes, BITS).unwrap_or_default();
        let bits = attributes(listed).take(BITS_MAX).filter_map(|(_, bit)| {
            let name = Some(text(attribute(bit, NAME)?)).filter(|name| !name.is_empty())?;
            Some((name, all_set || attribute(bit, VALUE).is_some()))
        });

        Self {
            bits: bits.collect(),
        }
    }

    /// True if a name is set.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.bits.iter().any(|(known, set)| *set && known == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_messages_are_parsed() {
        let mut body = vec![7, 1, 0, 0];
        push(&mut body, 2, b"eth0\0");
        push(&mut body, 3 | 0x8000, &5_u32.to_ne_bytes());

        let bytes = request(18, DUMP, 9, &body);
        let found: Vec<_> = messages(&bytes).collect();
        let [message] = found.as_slice() else {
            panic!("one message")
        };
        assert_eq!((message.kind, message.sequence), (18, 9));

        let inner = &message.payload[4..];
        assert_eq!(attribute(inner, 2).map(text).as_deref(), Some("eth0"));
        assert_eq!(
            attribute(inner, 3).and_then(|bytes| u32_at(bytes, 0)),
            Some(5)
        );
        assert_eq!(attribute(inner, 9), None);
    }

    #[test]
    fn wrong_lengths_end_parsing() {
        for bytes in [
            &[][..],
            &[255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0; 64],
            &[20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0],
        ] {
            assert_eq!(messages(bytes).count(), 0, "{bytes:?}");
        }

        assert_eq!(attributes(&[3, 0, 1, 0, 9]).count(), 0);
        assert_eq!(errno(&i32::MIN.to_ne_bytes()), 0);
    }

    #[test]
    fn bits_with_and_without_a_mask() {
        let bit = |name: &str, set: bool| {
            let mut bit = encoded(2, format!("{name}\0").as_bytes());
            if set {
                push(&mut bit, 3, &[]);
            }
            bit
        };
        let list = [encoded(1, &bit("a", true)), encoded(1, &bit("b", false))].concat();
        let masked = encoded(3, &list);
        let set = Bitset::parse(&masked);
        assert!(set.has("a") && !set.has("b") && set.bits.len() == 2);
        assert!(Bitset::parse(&[encoded(1, &[]), masked].concat()).has("b"));
    }
}
