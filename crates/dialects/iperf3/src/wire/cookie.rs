//! The session name that opens the control connection and every TCP data connection.

use std::fmt;

/// Bytes of a cookie on the wire: 36 characters and a NUL.
pub const COOKIE_WIRE_LEN: usize = 37;

const TEXT_LEN: usize = COOKIE_WIRE_LEN - 1;

/// The characters real clients use; 32 of them, so that five random bits select one.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Name of one test, chosen by the client. Equality is that of C strings: what follows a NUL does
/// not count.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cookie([u8; TEXT_LEN]);

impl Cookie {
    /// Makes a cookie of 36 random bytes; the caller owns the source of randomness.
    pub fn from_random(bytes: [u8; 36]) -> Self {
        Self(bytes.map(|byte| ALPHABET[usize::from(byte % 32)]))
    }

    /// Reads the wire form. Bytes after the first NUL are dropped, the last byte is taken for the
    /// terminator.
    pub fn parse(wire: &[u8; COOKIE_WIRE_LEN]) -> Self {
        let mut text = [0; TEXT_LEN];
        for (to, from) in text
            .iter_mut()
            .zip(wire.iter().take_while(|byte| **byte != 0))
        {
            *to = *from;
        }

        Self(text)
    }

    /// True for 36 visible characters, as all releases send. Other programs begin with something
    /// else: iperf 2 with numbers, browsers with a request.
    pub fn is_text(&self) -> bool {
        self.0.iter().all(u8::is_ascii_graphic)
    }

    /// The bytes that open a connection.
    pub fn wire(&self) -> [u8; COOKIE_WIRE_LEN] {
        let mut wire = [0; COOKIE_WIRE_LEN];
        wire[..TEXT_LEN].copy_from_slice(&self.0);
        wire
    }
}

impl fmt::Display for Cookie {
    /// Text that is safe to print: anything but visible ASCII becomes `?`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;

        for byte in self.0.iter().take_while(|byte| **byte != 0) {
            f.write_char(if byte.is_ascii_graphic() {
                char::from(*byte)
            } else {
                '?'
            })?;
        }

        Ok(())
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cookie({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bytes_become_characters_of_the_alphabet() {
        let mut bytes = [0; 36];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = (index * 7) as u8;
        }

        let cookie = Cookie::from_random(bytes);
        let wire = cookie.wire();
        assert!(wire[..36].iter().all(|byte| ALPHABET.contains(byte)));
        assert_eq!(wire[36], 0);
        assert_eq!(Cookie::parse(&wire), cookie);
    }

    #[test]
    fn bytes_after_a_nul_do_not_count() {
        let mut one = [b'a'; COOKIE_WIRE_LEN];
        one[5] = 0;
        let mut other = one;
        other[10] = b'z';
        assert_eq!(Cookie::parse(&one), Cookie::parse(&other));
        assert_eq!(Cookie::parse(&one).to_string(), "aaaaa");
    }

    #[test]
    fn hostile_bytes_are_not_printed() {
        let mut wire = [b'a'; COOKIE_WIRE_LEN];
        wire[1] = 0x1b;
        wire[2] = 0xff;
        assert!(Cookie::parse(&wire).to_string().starts_with("a??a"));
    }
}
