//! Fingerprints of public keys.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

const PREFIX: &str = "sha256:";

/// SHA-256 of a public key in the form `SubjectPublicKeyInfo` (RFC 5280, 4.1), DER.
///
/// As text: `sha256:` and base64url without padding (RFC 4648, 5), 50 characters in all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

/// Why text is no fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint is `sha256:` and 43 characters of base64url")]
pub struct BadFingerprint;

impl Fingerprint {
    /// Fingerprint of a key in the form `SubjectPublicKeyInfo`.
    pub(crate) fn of(public_key_info: &[u8]) -> Self {
        let mut bytes = [0; 32];
        // A digest of SHA-256 has 32 bytes, so that the lengths are equal.
        bytes.copy_from_slice(digest::digest(&digest::SHA256, public_key_info).as_ref());
        Self(bytes)
    }

    /// From a digest.
    pub const fn new(digest: [u8; 32]) -> Self {
        Self(digest)
    }

    /// The digest.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl FromStr for Fingerprint {
    type Err = BadFingerprint;

    fn from_str(text: &str) -> Result<Self, BadFingerprint> {
        // 32 bytes are 43 characters of base64 without padding (RFC 4648, section 3.2).
        let digits = text
            .strip_prefix(PREFIX)
            .filter(|digits| digits.len() == 43)
            .ok_or(BadFingerprint)?;
        let bytes = URL_SAFE_NO_PAD.decode(digits).map_err(|_| BadFingerprint)?;
        bytes.try_into().map(Self).map_err(|_| BadFingerprint)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// SHA-256 of nothing (FIPS 180-4 examples), encoded by hand.
    const OF_NOTHING: &str = "sha256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";

    #[test]
    fn text_is_prefix_and_base64url() {
        assert_eq!(Fingerprint::of(b"").to_string(), OF_NOTHING);
        assert_eq!(OF_NOTHING.parse(), Ok(Fingerprint::of(b"")));
        assert_eq!(
            format!("{:?}", Fingerprint::of(b"")),
            format!("Fingerprint({OF_NOTHING})")
        );
    }

    #[test]
    fn near_misses_are_refused() {
        let bad = [
            "",
            "sha256:",
            &OF_NOTHING[7..],
            &OF_NOTHING[..49],
            &format!("{OF_NOTHING}="),
            &format!("{OF_NOTHING}A"),
            &format!(" {OF_NOTHING}"),
            &OF_NOTHING.replace("sha256", "SHA256"),
            &OF_NOTHING.replace('-', "+"),
            // Bits behind the last byte: the same digest would have two texts.
            &OF_NOTHING.replace("uFU", "uFV"),
            "sha256:\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}x",
        ];
        for text in bad {
            assert_eq!(text.parse::<Fingerprint>(), Err(BadFingerprint), "{text}");
        }
    }

    proptest! {
        #[test]
        fn text_survives(bytes: [u8; 32]) {
            let fingerprint = Fingerprint::new(bytes);
            prop_assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
        }
    }
}
