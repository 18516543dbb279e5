//! One measured value of a trial and its direction.

use linerate_macros::stored;

use crate::measure::MeasureName;
use crate::stream::Flow;

/// One figure.
#[stored(Copy)]
pub struct Measure {
    /// Which.
    pub name: MeasureName,
    /// Its direction.
    pub way: Way,
    /// Its value in the unit of the measure.
    pub value: f64,
    /// Samples it was computed from, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u64>,
    /// The true value is this or higher.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_lower_bound: bool,
}

impl Measure {
    /// A single value in the unit of the measure.
    pub const fn new(name: MeasureName, way: Way, value: f64) -> Self {
        Self {
            name,
            way,
            value,
            n: None,
            is_lower_bound: false,
        }
    }
}

/// Direction of a figure.
#[stored(Copy, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// Client to server.
    Forward,
    /// Server to client.
    Reverse,
    /// Both, or a figure without a direction.
    Sum,
}

impl Way {
    /// The direction as text for people names it, seen from the client; `None` where there is none.
    #[must_use]
    pub const fn words(self) -> Option<&'static str> {
        match self {
            Self::Forward => Some("up"),
            Self::Reverse => Some("down"),
            Self::Sum => None,
        }
    }
}

impl From<Flow> for Way {
    fn from(flow: Flow) -> Self {
        match flow {
            Flow::Forward => Self::Forward,
            Flow::Reverse => Self::Reverse,
        }
    }
}
