//! Goal: no packet of a peer breaks a promise of the protocol. Method: the check of the fuzz target
//! on random input.

use proptest::collection::vec;
use proptest::prelude::*;

#[path = "../../../../tests/fuzz/src/stamp.rs"]
pub mod stamp;

proptest! {
    #[test]
    fn packets_are_answered_or_refused(bytes in vec(any::<u8>(), 0..80)) {
        stamp::packet(&bytes);
    }
}
