//! Files of known hosts from arbitrary bytes. For tests and fuzzing.

use crate::fingerprint::Fingerprint;
use crate::known_hosts::{HostList, HostName};

/// Any file can be read, keeps its lines when it is written, and remembers and forgets a host
/// without a change to others. Returns the number of damaged lines.
///
/// # Panics
/// When one of these promises is broken.
pub fn known_hosts(bytes: &[u8]) -> usize {
    let mut list = HostList::parse(bytes);
    let damages = list.damages();
    let is_terminated = bytes.is_empty() || bytes.ends_with(b"\n");
    let lines = [bytes, if is_terminated { b"" } else { b"\n" }].concat();
    assert_eq!(list.to_bytes(), lines, "lines are kept");

    let host = HostName::new("2001:db8::7", 5201).expect("an address");
    let other = HostName::new("lab", 5201).expect("a name");
    let of_other = list.get(&other);
    let fingerprint = Fingerprint::new([7; 32]);
    list.set(&host, fingerprint);

    let again = HostList::parse(&list.to_bytes());
    assert_eq!(again, list, "what was written is read alike");
    assert_eq!(
        (again.get(&host), again.get(&other)),
        (Some(fingerprint), of_other)
    );
    assert!(list.remove(&host) && !list.remove(&host));
    assert_eq!((list.get(&host), list.get(&other)), (None, of_other));

    damages.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn damaged_lines_are_counted() {
        let good = "lab:5201 sha256:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE\n";
        for (text, expected) in [
            ("", 0),
            (good, 0),
            ("\n\n#", 0),
            ("x", 1),
            ("lab:5201 x\n\0\n", 2),
        ] {
            assert_eq!(known_hosts(text.as_bytes()), expected, "{text}");
            assert_eq!(
                known_hosts([good, text].concat().as_bytes()),
                expected,
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_file(bytes: Vec<u8>) {
            let _ = known_hosts(&bytes);
        }

        #[test]
        fn any_lines_are_a_file(
            text in "(((lab|LAB\\.|\\[2001:db8:0::7\\]|::1|x):(5201|0|99999)|#)?[ \
                     \t]*(sha256:(AQEB){10}AQE|sha256:x)?\r?\n?){0,8}",
        ) {
            let _ = known_hosts(text.as_bytes());
        }
    }
}
