//! The examination of a path: what is asked for, how it is measured phase by phase, and what was
//! found.
//!
//! Directions are seen from the client: down is from the server to the client, up from the client
//! to the server.

pub mod absent;
mod arrivals;
mod delay;
mod drops;
mod event;
mod load;
mod phase;
mod report;
mod samples;
mod spec;

pub use arrivals::{gaps, jitter_ns, longest_train};
pub use delay::{Delay, percentile, trimmed_mean};
pub use drops::{HostDrops, HostDropsReader};
pub use event::{EVENT_SCHEMA, FinishedPhase, LoadInterval, PathEvent};
pub use load::{
    CapacityFeedback, LoadControl, LoadDecision, LoadEnd, LoadOutcome, LoadWindow, RateControl,
};
pub use phase::{
    ConcurrentProbes, EndpointPhase, LoadSample, LossByPlace, PathDirection, PhaseKind,
    PhaseResult, PhaseSpec, PhaseTransport, ProbeSample, SizeResult, SizeSignal, StreamTotals,
    TransactionSpec,
};
pub use report::{
    ClockEstimate, ClockMethod, Confidence, Datagrams, Dialect, EcnTreatment, Grade, Identity,
    IdleDelays, LoadPhase, Marks, PATH_SCHEMA, PathMtu, PathReport, PathState, PathTarget,
    ProbeKind, RateCeiling, RateLadder, SubflowRow, Transactions, Voice,
};
pub use samples::{SampleKind, SampleSeries};
pub use spec::{PathSpec, Profile};
