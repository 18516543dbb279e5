//! Treatment of new connections.

use linerate_model::service::RefusalReason;

/// Treatment of new connections by a dialect.
#[derive(PartialEq, Eq)]
pub(crate) enum Intake {
    /// It accepts them.
    Open,
    /// It leaves them in the backlog of its listeners.
    Paused,
    /// It refuses them unread.
    Refused(RefusalReason),
    /// It has closed its listeners for good; when it is idle as well it has ended.
    Closed,
}
