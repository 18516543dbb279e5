//! Records of a ring: bytes that the kernel writes in the order of `perf_event_open(2)`.

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record<'a> {
    /// Data of a tracepoint, in the layout of its `format` file.
    Tracepoint(&'a [u8]),
    /// A stack of the clock.
    Stack(Stack),
    /// Records that did not fit into the ring.
    Lost(u64),
}

/// A running thread with its stack, the innermost function first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    /// Number of the process; 0 is the idle CPU.
    pub process: u32,
    /// Addresses in the kernel; none where the program itself ran.
    pub kernel: Vec<u64>,
}

/// `struct perf_event_header`: kind, flags and size, of which the size includes the header.
pub(super) const HEADER_BYTES: usize = 8;
/// `PERF_RECORD_LOST` and `PERF_RECORD_SAMPLE`.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;

/// `PERF_CONTEXT_MAX`: addresses from here on mark whose frames follow.
const CONTEXT_MIN: u64 = -4095_i64 as u64;
/// `PERF_CONTEXT_KERNEL`.
const CONTEXT_KERNEL: u64 = -128_i64 as u64;

impl<'a> Record<'a> {
    /// The record behind a header of this kind; `None` for other kinds and for one that is cut off.
    pub(super) fn parse(kind: u32, body: &'a [u8], has_stacks: bool) -> Option<Self> {
        match (kind, has_stacks) {
            // The first number is that of the event.
            (LOST, _) => Some(Self::Lost(number(body, 8)?)),
            (SAMPLE, true) => stack(body).map(Self::Stack),
            (SAMPLE, false) => {
                let length = u32::from_ne_bytes(*body.first_chunk()?);
                let end = usize::try_from(length).ok()?.checked_add(4)?;
                body.get(4..end).map(Self::Tracepoint)
            }
            _ => None,
        }
    }
}

fn stack(body: &[u8]) -> Option<Stack> {
    let mut stack = Stack {
        process: u32::from_ne_bytes(*body.first_chunk()?),
        kernel: Vec::new(),
    };
    let frames = usize::try_from(number(body, 8)?).ok()?;
    let mut context = CONTEXT_KERNEL;

    for frame in 0..frames {
        let address = number(body, frame.checked_mul(8)?.checked_add(16)?)?;
        match (address >= CONTEXT_MIN, context) {
            (true, _) => context = address,
            (false, CONTEXT_KERNEL) => stack.kernel.push(address),
            // Frames of a program, a guest or a hypervisor.
            (false, _) => {}
        }
    }

    Some(stack)
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(numbers: &[u64]) -> Vec<u8> {
        numbers.iter().flat_map(|one| one.to_ne_bytes()).collect()
    }

    #[test]
    fn frames_of_the_kernel_are_read() {
        let ids = u64::from_ne_bytes([7, 0, 0, 0, 8, 0, 0, 0]);
        let body = bytes(&[
            ids,
            6,
            CONTEXT_KERNEL,
            0xffff_0001,
            -512_i64 as u64,
            0x40,
            -2048_i64 as u64,
            0x50,
        ]);
        let expected = Stack {
            process: 7,
            kernel: vec![0xffff_0001],
        };
        assert_eq!(
            Record::parse(SAMPLE, &body, true),
            Some(Record::Stack(expected))
        );
        assert_eq!(
            Record::parse(SAMPLE, &body[..body.len() - 1], true),
            None,
            "a stack that is cut off"
        );
    }

    #[test]
    fn tracepoint_data_has_its_length_and_losses_have_their_number() {
        let mut body = 12_u32.to_ne_bytes().to_vec();
        body.extend(0..12_u8);
        assert_eq!(
            Record::parse(SAMPLE, &body, false),
            Some(Record::Tracepoint(&body[4..]))
        );
        assert_eq!(Record::parse(SAMPLE, &body[..15], false), None);
        assert_eq!(
            Record::parse(LOST, &bytes(&[1, 9]), false),
            Some(Record::Lost(9))
        );

        for cut_off in [&[][..], &[1][..], &[255; 4][..]] {
            for kind in [LOST, SAMPLE, 77] {
                assert_eq!(Record::parse(kind, cut_off, false), None);
                assert_eq!(Record::parse(kind, cut_off, true), None);
            }
        }
    }
}
