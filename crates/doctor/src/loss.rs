//! Where the datagrams of a UDP test were lost.

use linerate_model::finding::LossSplit;

/// Splits `lost` datagrams, what sender and receiver disagree on, by counters over the same period.
///
/// `None` is a counter that was not read; its share is then attributed to the network, from which it cannot be
/// distinguished. Counters of a whole host may include other traffic, so no part exceeds what is left.
#[must_use]
pub fn split_loss(
    label: String,
    lost: u64,
    sender_drops: Option<u64>,
    nic_drops: Option<u64>,
    socket_drops: Option<u64>,
) -> LossSplit {
    let mut left = lost;
    let mut take = |drops: Option<u64>| {
        let part = drops?.min(left);
        left -= part;
        Some(part)
    };
    let socket = take(socket_drops);
    let nic = take(nic_drops);
    let sender = take(sender_drops);
    LossSplit { label, lost, sender, nic, socket, network: left }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lost_datagram_is_counted_once() {
        let parts = |lost, sender, nic, socket| {
            let split = split_loss(String::new(), lost, sender, nic, socket);
            (split.sender, split.nic, split.socket, split.network)
        };
        assert_eq!(parts(1000, Some(10), Some(200), Some(600)), (Some(10), Some(200), Some(600), 190));
        // Drops of other traffic do not count.
        assert_eq!(parts(100, None, Some(5000), Some(60)), (None, Some(40), Some(60), 0));
        assert_eq!(parts(7, None, None, None), (None, None, None, 7));
    }
}
