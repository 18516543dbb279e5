//! Packets that the kernels of the hosts dropped, by reason.

use linerate_document::blocks::Block;
use linerate_model::finding::{Diagnosis, KernelDrop};

use super::{COLUMN, wrapped};

/// Reasons in the short report.
const SHOWN: usize = 2;

/// `197 SOCKET_RCVBUFF in udp_queue_rcv_one_skb (socket buffer), 50 NO_SOCKET in __udp4_lib_rcv (no
/// socket)`; `None` without a loss.
pub(super) fn line(diagnosis: &Diagnosis) -> Option<String> {
    let lost: Vec<&KernelDrop> = losses(&diagnosis.drops).collect();
    let shown: Vec<String> = lost
        .iter()
        .take(SHOWN)
        .map(|drop| text(drop, diagnosis))
        .collect();
    let more = match lost.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("; {more} more with -v"),
    };
    (!shown.is_empty()).then(|| shown.join(", ") + &more)
}

/// Every reason with its meaning and the next step, in the long report.
pub(super) fn list(diagnosis: &Diagnosis) -> Vec<Block> {
    let mut blocks = Vec::new();
    for drop in losses(&diagnosis.drops) {
        let meaning = format!("{}: {}", text(drop, diagnosis), drop.meaning);
        blocks.push(wrapped("Drops", meaning));
        blocks.extend(drop.next.as_ref().map(|next| wrapped("  next", next)));
    }

    let others = diagnosis.drops.iter().filter(|drop| drop.place.is_none());
    let others = others.map(|drop| format!("{}: {}", text(drop, diagnosis), drop.meaning));
    blocks.extend(Block::entries("No loss", COLUMN, others));
    blocks
}

/// Those that are a loss.
pub(super) fn losses(drops: &[KernelDrop]) -> impl Iterator<Item = &KernelDrop> {
    drops.iter().filter(|drop| drop.place.is_some())
}

/// `server: 197 SOCKET_RCVBUFF in udp_queue_rcv_one_skb (socket buffer)`, with the host where there
/// are several.
fn text(drop: &KernelDrop, diagnosis: &Diagnosis) -> String {
    let host = match diagnosis.hosts.len() {
        0 | 1 => String::new(),
        _ => format!("{}: ", drop.host),
    };
    let number = match drop.error {
        Some(error) => format!("about {} (+- {error})", drop.packets),
        None => drop.packets.to_string(),
    };
    let reason = drop.reason.as_deref().unwrap_or("drops");
    let function = drop.function.as_ref().map(|name| format!(" in {name}"));
    let place = drop.place.as_ref().map(|place| format!(" ({place})"));
    format!(
        "{host}{number} {reason}{}{}",
        function.unwrap_or_default(),
        place.unwrap_or_default()
    )
}
