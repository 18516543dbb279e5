//! Limit of a cell.

use linerate_macros::stored;

use crate::finding::{Confidence, Evidence, evidence_texts};

/// Kinds of bottleneck, in the order in which they are checked.
#[stored(Copy, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictClass {
    /// The run is not valid.
    Invalid,
    /// The client's host was the limit.
    ClientLimit,
    /// A limit of the server's host or program: queues, descriptors, resets.
    ServerLimit,
    /// The link is full.
    NetworkBound,
    /// The path loses segments.
    NetworkLoss,
    /// Programs outside the test fill the CPUs.
    OtherPrograms,
    /// All CPUs of the server are busy.
    CpuBoundTotal,
    /// One CPU or one thread of the server is busy, others are not.
    CpuBoundCore,
    /// More connections only wait longer.
    QueueingBound,
    /// Too few requests in flight.
    ConcurrencyLimited,
    /// The server waits for itself: locks, disk, other hosts, a rate limit.
    ServerInternal,
    /// Nothing was at its limit; the offered rate was met.
    NotSaturated,
    /// The deciding facts are unknown.
    Unknown,
}

/// One class that fits.
#[stored]
pub struct Judgement {
    /// The class.
    pub class: VerdictClass,
    /// Evidence; in JSON one `text` each.
    #[serde(with = "evidence_texts")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<evidence_texts::Text>"))]
    pub evidence: Vec<Evidence>,
    /// Advice, or the reason why there is nothing to do.
    pub advice: String,
}

/// Limit of a cell: the first class that fits, and the later ones.
#[stored]
pub struct CellVerdict {
    /// The first that fits.
    pub primary: Judgement,
    /// Others that fit as well.
    pub contributing: Vec<Judgement>,
    /// Confidence of the first: [`Confidence::Low`] within 3 points of a threshold,
    /// [`Confidence::Medium`] within 10.
    pub confidence: Confidence,
}

impl CellVerdict {
    /// The only class that fits.
    pub const fn new(primary: Judgement, confidence: Confidence) -> Self {
        Self {
            primary,
            contributing: Vec::new(),
            confidence,
        }
    }

    /// All that fit, the first one first.
    pub fn judgements(&self) -> impl Iterator<Item = &Judgement> {
        std::iter::once(&self.primary).chain(&self.contributing)
    }
}
