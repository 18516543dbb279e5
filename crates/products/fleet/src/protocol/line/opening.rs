//! The begin of an agent's output on a byte stream: what a login shell printed, then the first line
//! of the agent.

use thiserror::Error;

use super::LineReader;
use crate::protocol::message::PREAMBLE;

/// Most bytes before the agent's first line. They are kept for display.
pub const NOISE_MAX_BYTES: usize = 64 << 10;

/// Begin of the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// An agent of this version of the protocol.
    Agent,
    /// The host has no usable agent and names its system and machine, as `uname -sm` does.
    /// Untrusted text.
    Need(String),
}

/// The output is not that of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OpeningError {
    /// Too many bytes before the first line.
    #[error("more than {NOISE_MAX_BYTES} bytes before the agent's first line")]
    Noise,
    /// An agent of another version. Untrusted text.
    #[error("the agent begins with {0:?}, this end expects {PREAMBLE:?}")]
    Version(String),
}

/// Skips what a login shell prints until the first line of the agent.
#[derive(Debug, Default)]
pub struct OpeningReader {
    line: LineReader,
    noise: Vec<u8>,
}

const NEED: &str = "LRFLEET need ";
const ANY_VERSION: &str = "LRFLEET/";
/// Longest first line in bytes.
const FIRST_MAX_BYTES: usize = 128;

impl OpeningReader {
    /// Takes bytes from the front of `input` up to the end of the first line; the rest belongs to a
    /// [`LineReader`].
    ///
    /// # Errors
    /// When the output cannot be that of an agent of this version.
    pub fn read(&mut self, input: &mut &[u8]) -> Result<Option<Opening>, OpeningError> {
        loop {
            // A line of this length is no first line of an agent.
            let line = self.line.read(input).map_err(|_| OpeningError::Noise)?;
            let Some(line) = line else { break };
            if let Some(opening) = opening_of(&line)? {
                return Ok(Some(opening));
            }
            if self.noise.len() + line.len() >= NOISE_MAX_BYTES {
                return Err(OpeningError::Noise);
            }

            self.noise.extend_from_slice(&line);
            self.noise.push(b'\n');
        }

        let pending = self.noise.len() + self.line.buffered_bytes();
        if pending > NOISE_MAX_BYTES {
            Err(OpeningError::Noise)
        } else {
            Ok(None)
        }
    }

    /// Bytes before the first line, at most [`NOISE_MAX_BYTES`]. Untrusted text.
    pub fn noise(&self) -> &[u8] {
        &self.noise
    }
}

/// The first line may follow output of a shell that has no end of its own.
fn opening_of(line: &[u8]) -> Result<Option<Opening>, OpeningError> {
    let tail = line
        .get(line.len().saturating_sub(FIRST_MAX_BYTES)..)
        .unwrap_or_default();
    // Pseudo-terminals end lines with CR LF.
    let text = String::from_utf8_lossy(tail.strip_suffix(b"\r").unwrap_or(tail)).into_owned();
    if let Some((_, machine)) = text.split_once(NEED) {
        return Ok(Some(Opening::Need(machine.trim().to_owned())));
    }

    // The last occurrence: a banner may contain the name as well.
    let Some(at) = text.rfind(ANY_VERSION) else {
        return Ok(None);
    };
    let first = text.get(at..).unwrap_or_default();
    let version = first.get(ANY_VERSION.len()..).unwrap_or_default();

    if first == PREAMBLE {
        Ok(Some(Opening::Agent))
    } else if !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit()) {
        Err(OpeningError::Version(first.to_owned()))
    } else {
        // Any other text after the slash is output of the shell that happens to contain the name.
        Ok(None)
    }
}
