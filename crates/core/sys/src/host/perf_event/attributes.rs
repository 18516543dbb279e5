//! `struct perf_event_attr` of `linux/perf_event.h`, as far as these events need it.

/// What an event observes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A tracepoint by its number (`events/*/*/id` of tracefs). A record has its data.
    Tracepoint(u64),
    /// The clock of the CPU, this often a second, in kernel and user space. A record has the stack.
    CpuClock {
        /// Samples per second.
        hz: u64,
    },
}

/// The structure as of Linux 4.8. The kernel takes a newer one as 0 in what is missing, and refuses
/// fields that it does not know unless they are 0.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    /// Events per record, or records per second with [`FREQUENCY`].
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

const SIZE: u32 = 112;
const _: () = assert!(size_of::<Attributes>() == SIZE as usize);

/// `PERF_TYPE_SOFTWARE` with `PERF_COUNT_SW_CPU_CLOCK`, and `PERF_TYPE_TRACEPOINT`.
const SOFTWARE: u32 = 1;
const CPU_CLOCK: u64 = 0;
const TRACEPOINT: u32 = 2;

/// Parts of a record, which are written in this order: `PERF_SAMPLE_TID`, `PERF_SAMPLE_CALLCHAIN`,
/// `PERF_SAMPLE_RAW`.
const PROCESS: u64 = 1 << 1;
const CALL_CHAIN: u64 = 1 << 5;
const RAW: u64 = 1 << 10;

/// The bits `freq` and `exclude_callchain_user`.
const FREQUENCY: u64 = 1 << 10;
const WITHOUT_USER_FRAMES: u64 = 1 << 22;

/// Frames of a stack. A segment that loopback delivers takes some fifty.
const FRAMES_MAX: u16 = 96;

impl Attributes {
    pub(super) fn of(source: Source) -> Self {
        match source {
            Source::Tracepoint(id) => Self {
                kind: TRACEPOINT,
                size: SIZE,
                config: id,
                sample_period: 1,
                sample_type: RAW,
                ..Self::default()
            },
            Source::CpuClock { hz } => Self {
                kind: SOFTWARE,
                size: SIZE,
                config: CPU_CLOCK,
                sample_period: hz,
                sample_type: PROCESS | CALL_CHAIN,
                flags: FREQUENCY | WITHOUT_USER_FRAMES,
                sample_max_stack: FRAMES_MAX,
                ..Self::default()
            },
        }
    }
}
