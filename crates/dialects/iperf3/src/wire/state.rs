//! The state byte of the control connection.

/// State byte of the control connection. Signed on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i8)]
pub enum State {
    /// Server: all streams are open, start the clock.
    TestStart = 1,
    /// Server: move data.
    TestRunning = 2,
    /// Client: the end condition is met.
    TestEnd = 4,
    /// Server: send the parameters.
    ParamExchange = 9,
    /// Server: open the data streams.
    CreateStreams = 10,
    /// Server: a signal ended it.
    ServerTerminate = 11,
    /// Client: a signal ended it.
    ClientTerminate = 12,
    /// Server: send the results.
    ExchangeResults = 13,
    /// Server: everything is exchanged.
    DisplayResults = 14,
    /// Client: finished, or given up.
    IperfDone = 16,
    /// Server: busy.
    AccessDenied = -1,
    /// Server: failed; an IE number and an error number follow, 32 bits each.
    ServerError = -2,
}

impl State {
    /// Every state that travels.
    pub const ALL: [Self; 12] = [
        Self::TestStart,
        Self::TestRunning,
        Self::TestEnd,
        Self::ParamExchange,
        Self::CreateStreams,
        Self::ServerTerminate,
        Self::ClientTerminate,
        Self::ExchangeResults,
        Self::DisplayResults,
        Self::IperfDone,
        Self::AccessDenied,
        Self::ServerError,
    ];

    /// The byte on the wire.
    pub const fn byte(self) -> u8 {
        (self as i8).cast_unsigned()
    }

    /// Reads the byte on the wire; `None` for values no peer sends.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.byte() == byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_states_are_signed_bytes() {
        assert_eq!(State::from_byte(0xff), Some(State::AccessDenied));
        assert_eq!(State::from_byte(0xfe), Some(State::ServerError));
        assert_eq!(State::from_byte(9), Some(State::ParamExchange));

        for unused in [0, 3, 5, 6, 7, 8, 15, 17, 0xfd] {
            assert_eq!(State::from_byte(unused), None, "{unused}");
        }
    }
}
