//! A factor that is varied, and its levels.

/// Something that is varied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Factor {
    /// Name of the factor.
    pub name: String,
    /// The levels it can take.
    pub scale: Scale,
    /// The level it has while other factors are explored. An amount of 0 leaves it to the system:
    /// it is run beside the ladder, is outside its order, and is advised whenever nothing on the
    /// ladder is better.
    pub start: u64,
}

/// The levels of a factor. A level is a number: an amount, or the place of a choice in its list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scale {
    /// An amount from `min` to `max`, both included, in multiples of `step` (and `min` itself).
    Amount {
        /// Least, above 0.
        min: u64,
        /// Most.
        max: u64,
        /// Amounts between are rounded to multiples of this.
        step: u64,
    },
    /// These amounts, from the least to the most.
    List(Vec<u64>),
    /// This number of unrelated choices, numbered from 0.
    Choices(u64),
}

/// The level of an amount that is left to the system.
pub const SYSTEM_CHOICE: u64 = 0;

impl Factor {
    /// The levels to begin with: a ladder that doubles or is given (and what the system chooses, if
    /// it starts there), or every choice.
    pub fn coarse(&self) -> Vec<u64> {
        let mut levels: Vec<u64> = match self.scale {
            Scale::Choices(count) => return (0..count).collect(),
            Scale::List(ref levels) => levels.clone(),
            Scale::Amount { min, max, .. } => {
                let doubled = |level: &u64| level.checked_mul(2).filter(|next| *next < max);
                std::iter::successors(Some(min.max(1)), doubled)
                    .chain([max])
                    .collect()
            }
        };
        // A range of one amount has it as both ends.
        levels.dedup();

        if self.start == SYSTEM_CHOICE {
            levels.insert(0, SYSTEM_CHOICE);
        }

        levels
    }

    /// The level that is kept unless another one is better: what the system chooses, the least
    /// amount, or the choice in use.
    pub fn default_level(&self) -> u64 {
        match self.scale {
            Scale::Choices(_) => self.start,
            Scale::Amount { .. } | Scale::List(_) => {
                self.coarse().first().copied().unwrap_or(self.start)
            }
        }
    }

    /// Levels of [`Self::coarse`] that are run before it is considered to end the ladder: three
    /// amounts allow to see the gain of doubling twice. All of them where it is no range.
    pub fn levels_before_stop(&self) -> usize {
        match self.scale {
            Scale::Amount { .. } => 3 + usize::from(self.start == SYSTEM_CHOICE),
            Scale::List(_) | Scale::Choices(_) => usize::MAX,
        }
    }

    /// True if its levels have an order.
    pub fn is_amount(&self) -> bool {
        !matches!(self.scale, Scale::Choices(_))
    }

    /// The level halfway between two neighbours on the ladder, if there is one: their geometric
    /// mean, because what a doubling does is what is being compared.
    pub fn between(&self, low: u64, high: u64) -> Option<u64> {
        let Scale::Amount { step, .. } = self.scale else {
            return None;
        };
        let step = step.max(1);
        let mean = (low as f64 * high as f64).sqrt();
        let rounded = (mean / step as f64).round() as u64 * step;
        (rounded > low && rounded < high).then_some(rounded)
    }

    /// Every level there is: what a full grid would run.
    pub fn count(&self) -> u64 {
        match self.scale {
            Scale::Choices(count) => count,
            Scale::List(ref levels) => levels.len() as u64,
            Scale::Amount { min, max, step } => max.saturating_sub(min) / step.max(1) + 1,
        }
    }
}

/// One level per factor, in the order of the plan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Setting(pub Vec<u64>);

impl Setting {
    /// This setting with another level of one factor.
    pub fn with(&self, factor: usize, level: u64) -> Self {
        let mut levels = self.0.clone();
        if let Some(own) = levels.get_mut(factor) {
            *own = level;
        }
        Self(levels)
    }

    /// The level of a factor; 0 beyond the last.
    pub fn level(&self, factor: usize) -> u64 {
        self.0.get(factor).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(min: u64, max: u64, step: u64) -> Factor {
        Factor {
            name: "streams".to_owned(),
            scale: Scale::Amount { min, max, step },
            start: min,
        }
    }

    #[test]
    fn a_ladder_doubles_and_ends_at_the_most() {
        assert_eq!(amount(1, 64, 1).coarse(), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(amount(1, 20, 1).coarse(), [1, 2, 4, 8, 16, 20]);
        assert_eq!(amount(5, 5, 1).coarse(), [5]);
        assert_eq!(amount(1, u64::MAX, 1).coarse().len(), 65);
    }

    #[test]
    fn what_the_system_chooses_stands_before_the_ladder() {
        let window = Factor {
            start: SYSTEM_CHOICE,
            ..amount(4096, 16384, 4096)
        };
        assert_eq!(window.coarse(), [0, 4096, 8192, 16384]);
    }

    #[test]
    fn halves_end_where_neighbours_touch() {
        let streams = amount(1, 64, 1);
        assert_eq!(streams.between(8, 16), Some(11));
        assert_eq!(streams.between(9, 11), Some(10));
        assert_eq!(streams.between(10, 11), None);
        assert_eq!(
            amount(4096, 1 << 20, 4096).between(65_536, 131_072),
            Some(94_208)
        );
    }
}
