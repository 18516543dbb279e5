//! Kinds of phases and directions of a path.

use linerate_macros::stored;

/// Subject of a phase.
#[stored(Copy, Default, Eq, PartialOrd, Ord, Hash)]
pub enum PhaseKind {
    /// MTU of each direction, and what becomes of DSCP and ECN.
    Size,
    /// Hops of the path from both ends, without load.
    Hops,
    /// Delays without load.
    #[default]
    Idle,
    /// Load from the server to the client.
    Down,
    /// Load from the client to the server.
    Up,
    /// Load in both directions at the same time.
    Both,
    /// Datagrams at a rate below that of the load.
    Datagrams,
    /// Requests and responses on open connections, one at a time each.
    Rr,
    /// The same with a new connection for each request.
    Crr,
    /// Connections per second.
    Cps,
    /// Datagrams per second.
    Pps,
    /// Datagrams on a schedule.
    Pace,
    /// IP-layer capacity, RFC 9097.
    Capacity,
    /// Packets of STAMP to a session reflector, RFC 8762.
    Stamp,
}

impl PhaseKind {
    /// All of them, in the order in which they are run.
    pub const ALL: [Self; 14] = [
        Self::Size,
        Self::Hops,
        Self::Idle,
        Self::Down,
        Self::Up,
        Self::Both,
        Self::Datagrams,
        Self::Rr,
        Self::Crr,
        Self::Cps,
        Self::Pps,
        Self::Pace,
        Self::Capacity,
        Self::Stamp,
    ];

    /// It consists of requests and responses, each connection of which has one at a time.
    pub fn has_transactions(self) -> bool {
        matches!(self, Self::Rr | Self::Crr | Self::Cps)
    }

    /// It sends datagrams and nothing else.
    pub fn is_udp(self) -> bool {
        matches!(
            self,
            Self::Size | Self::Datagrams | Self::Pps | Self::Pace | Self::Capacity
        )
    }

    /// Probes run while it lasts.
    pub fn has_probes(self) -> bool {
        self == Self::Idle || !self.load_directions().is_empty()
    }

    /// Directions of its load of streams; none of a phase without one.
    pub const fn load_directions(self) -> &'static [PathDirection] {
        match self {
            Self::Down => &[PathDirection::Down],
            Self::Up => &[PathDirection::Up],
            Self::Both => &[PathDirection::Down, PathDirection::Up],
            _ => &[],
        }
    }

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Hops => "hops",
            Self::Idle => "idle",
            Self::Down => "down",
            Self::Up => "up",
            Self::Both => "both",
            Self::Datagrams => "datagrams",
            Self::Rr => "rr",
            Self::Crr => "crr",
            Self::Cps => "cps",
            Self::Pps => "pps",
            Self::Pace => "pace",
            Self::Capacity => "capacity",
            Self::Stamp => "stamp",
        }
    }
}

/// Direction of data on a path, seen from the client.
#[stored(Copy, Eq, PartialOrd, Ord, Hash)]
pub enum PathDirection {
    /// From the server to the client.
    Down,
    /// From the client to the server.
    Up,
}

impl PathDirection {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Up => "up",
        }
    }
}
