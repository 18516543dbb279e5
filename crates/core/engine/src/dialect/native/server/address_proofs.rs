//! Proofs of those that open a flow from another address than that of the control connection. The
//! server keeps none of them.

use std::time::{Duration, Instant};

use linerate_trust::{FlowOpener, address_proof};

/// Issues and compares proofs.
pub(super) struct AddressProofs {
    secret: [u8; 32],
    started: Instant,
}

/// A proof is valid in the period in which it was issued and in the next one, hence for 5 to 10 s:
/// an address that has lost its receiver since then gets no data.
const PERIOD: Duration = Duration::from_secs(5);

impl AddressProofs {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            secret: linerate_trust::random(),
            started: now,
        }
    }

    /// Value that the opener has to send back.
    pub(super) fn issue(&self, opener: &FlowOpener, now: Instant) -> u64 {
        address_proof(&self.secret, opener, self.period(now))
    }

    /// The opener has received a proof that was issued for it.
    pub(super) fn is_valid(&self, proof: u64, opener: &FlowOpener, now: Instant) -> bool {
        let present = self.period(now);
        let former = present.checked_sub(1);
        [Some(present), former]
            .into_iter()
            .flatten()
            .any(|period| address_proof(&self.secret, opener, period) == proof)
    }

    fn period(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.started).as_secs() / PERIOD.as_secs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proof_is_valid_for_its_opener_and_ten_seconds_at_most() {
        let started = Instant::now();
        let proofs = AddressProofs::new(started);
        let address = "192.0.2.1:5000".parse().expect("an address");
        let opener = FlowOpener {
            session: 3,
            flow: 7,
            address,
        };

        for issued_s in [0, 4, 5, 13] {
            let issued = started + Duration::from_secs(issued_s);
            let proof = proofs.issue(&opener, issued);
            let is_valid =
                |after_s| proofs.is_valid(proof, &opener, issued + Duration::from_secs(after_s));
            assert!(is_valid(0) && is_valid(5), "issued after {issued_s} s");
            assert!(!is_valid(10) && !is_valid(60), "issued after {issued_s} s");

            for other in [
                FlowOpener {
                    session: 4,
                    ..opener
                },
                FlowOpener { flow: 8, ..opener },
            ] {
                assert!(!proofs.is_valid(proof, &other, issued), "{other:?}");
            }
        }

        let other_server = AddressProofs::new(started);
        assert!(!other_server.is_valid(proofs.issue(&opener, started), &opener, started));
    }
}
