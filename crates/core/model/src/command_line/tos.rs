//! Names of type-of-service bytes that both dialects know.

/// The byte that a name in lower case denotes: the classes of RFC 2474, RFC 2597 and RFC 3246, and
/// the bits of the old type of service (RFC 1349).
pub fn tos_by_name(name: &str) -> Option<u8> {
    match (name, name.as_bytes()) {
        ("ef", _) => Some(46 << 2),
        ("lowdelay", _) => Some(0x10),
        ("throughput", _) => Some(0x08),
        ("reliability", _) => Some(0x04),
        (_, [b'c', b's', class @ b'0'..=b'7']) => Some((class - b'0') << 5),
        (_, [b'a', b'f', class @ b'1'..=b'4', drop @ b'1'..=b'3']) => {
            Some((class - b'0') << 5 | (drop - b'0') << 3)
        }
        _ => None,
    }
}
