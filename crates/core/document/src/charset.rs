//! Characters that a terminal can draw.

/// Characters of bars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Glyphs {
    /// Eighths of a block, where the locale is UTF-8.
    Blocks,
    /// Characters that every terminal has.
    Ascii,
}

const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

impl Glyphs {
    /// A bar of `share` of `width` characters; shares beyond 0 to 1 are cut.
    pub fn bar(self, share: f64, width: usize) -> String {
        let share = share.clamp(0.0, 1.0);
        match self {
            Self::Blocks => {
                // Blocks have eight widths, so that a bar has eight steps per character.
                let eighths = (share * (width * 8) as f64).round() as usize;
                format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
            }
            Self::Ascii => "#".repeat((share * width as f64).round() as usize),
        }
    }
}
