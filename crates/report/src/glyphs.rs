//! What a terminal can draw with.

/// What bars and small curves are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Glyphs {
    /// Eighths of a block, where the locale is UTF-8.
    Blocks,
    /// Characters that every terminal has.
    Ascii,
}

const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
/// Heights of one character, from low to high.
const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_STEPS: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];

impl Glyphs {
    /// A bar of `share` of `width` characters; shares beyond 0 to 1 are cut.
    pub(crate) fn bar(self, share: f64, width: usize) -> String {
        let share = share.clamp(0.0, 1.0);
        match self {
            Self::Blocks => {
                let eighths = (share * (width * 8) as f64).round() as usize;
                format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
            }
            Self::Ascii => "#".repeat((share * width as f64).round() as usize),
        }
    }

    /// One character per share; a blank where there is none.
    pub(crate) fn curve(self, shares: impl IntoIterator<Item = Option<f64>>) -> String {
        let steps = match self {
            Self::Blocks => STEPS,
            Self::Ascii => ASCII_STEPS,
        };
        let step = |share: f64| steps[((share.clamp(0.0, 1.0) * 8.0) as usize).min(7)];
        shares.into_iter().map(|share| share.filter(|share| share.is_finite()).map_or(' ', step)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_goes_from_the_lowest_step_to_the_highest() {
        let shares = [Some(0.0), Some(0.5), Some(1.0), None, Some(7.0), Some(f64::NAN)];
        assert_eq!(Glyphs::Blocks.curve(shares), "▁▅█ █ ");
        assert_eq!(Glyphs::Ascii.curve(shares), "_=# # ");
    }
}
