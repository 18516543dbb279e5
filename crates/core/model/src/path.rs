//! The examination of a path: what is asked for, how it is measured phase by phase, and what was
//! found.
//!
//! Directions are seen from the client: down is from the server to the client, up from the client
//! to the server.

pub mod absent;
mod arrivals;
mod clock;
mod delay;
mod drops;
mod event;
mod hops;
mod kind;
mod load;
mod load_phase;
mod other_phases;
mod packets;
mod phase;
mod report;
mod samples;
mod spec;
mod stamp;
mod target;
mod transferred;

pub use arrivals::{gaps, jitter_ns, longest_train};
pub use clock::{ClockEstimate, ClockMethod};
pub use delay::{Delay, percentile, trimmed_mean};
pub use drops::{HostDrops, HostDropsReader};
pub use event::{EVENT_SCHEMA, FinishedPhase, LoadInterval, PathEvent};
pub use hops::{Hop, HopAnswers, HopQueue, HopRtt, PathHops};
pub use kind::{PathDirection, PhaseKind};
pub use load::{
    CapacityFeedback, LoadControl, LoadDecision, LoadEnd, LoadOutcome, LoadWindow, RateControl,
};
pub use load_phase::{Confidence, LoadPhase, RateCeiling};
pub use other_phases::{Datagrams, RateLadder, Transactions};
pub use packets::{EcnTreatment, Marks, PathMtu};
pub use phase::{
    ConcurrentProbes, EndpointPhase, LossByPlace, PhaseResult, PhaseSpec, PhaseTransport,
    ProbeSample, SizeResult, SizeSignal, TransactionSpec,
};
pub use report::{CallQuality, Grade, IdleDelays, PATH_SCHEMA, PathReport, PathState, ProbeKind};
pub use samples::{SampleKind, SampleSeries};
pub use spec::{PathSpec, Profile};
pub use stamp::StampResult;
pub use target::{Dialect, Identity, PathTarget};
pub use transferred::{LoadSample, StreamTotals, SubflowRow};
