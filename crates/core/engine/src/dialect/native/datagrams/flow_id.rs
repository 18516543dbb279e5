//! Identity of a flow on the wire.

/// A flow that both ends opened.
#[derive(Debug, Clone, Copy)]
pub(in crate::dialect::native) struct FlowId {
    pub(in crate::dialect::native) flow: u32,
    pub(in crate::dialect::native) tag: u64,
}
