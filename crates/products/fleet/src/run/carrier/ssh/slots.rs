//! Number of connections that are made at the same time.

use std::collections::BTreeMap;

/// Most connections in all that are being made.
const ALL_MAX: usize = 32;
/// Most of them over one jump host, whose server drops more (`MaxStartups` of sshd_config(5)).
const PER_JUMP_MAX: usize = 8;

/// Connections that are being made.
#[derive(Debug, Default)]
pub(super) struct Slots {
    all: usize,
    jumps: BTreeMap<String, usize>,
}

impl Slots {
    /// Takes a slot, if one is free.
    pub(super) fn take(&mut self, jump: Option<&str>) -> bool {
        let used = jump
            .and_then(|jump| self.jumps.get(jump))
            .copied()
            .unwrap_or(0);
        if self.all >= ALL_MAX || used >= PER_JUMP_MAX {
            return false;
        }

        self.all += 1;
        if let Some(jump) = jump {
            *self.jumps.entry(jump.to_owned()).or_default() += 1;
        }

        true
    }

    /// Gives a slot back.
    pub(super) fn free(&mut self, jump: Option<&str>) {
        self.all = self.all.saturating_sub(1);
        if let Some(used) = jump.and_then(|jump| self.jumps.get_mut(jump)) {
            *used = used.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_32_connections_and_8_of_a_jump_host_are_made_at_once() {
        let mut slots = Slots::default();
        let taken = (0..100).filter(|_| slots.take(Some("gate"))).count();
        assert_eq!(taken, PER_JUMP_MAX);

        let taken = (0..100).filter(|_| slots.take(None)).count();
        assert_eq!(taken, ALL_MAX - PER_JUMP_MAX);
        slots.free(Some("gate"));
        assert!(slots.take(Some("gate")) && !slots.take(None));
    }
}
