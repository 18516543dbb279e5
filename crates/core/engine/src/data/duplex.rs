//! Turns of a pump that reads and writes one connection.

use super::worker::{Ended, Scratch};

/// A connection with data in one direction and messages in both.
pub(crate) trait Duplex {
    /// The data goes out.
    fn is_sender(&self) -> bool;

    /// Bytes of both directions so far.
    fn moved_bytes(&self) -> u64;

    /// A sender reads when it was blocked, and not before this time.
    fn next_read_ns(&mut self) -> &mut u64;

    /// Reads once, at most `room` bytes; false when nothing has arrived.
    fn read(&mut self, scratch: &mut Scratch, room: usize) -> Result<bool, Ended>;

    /// Writes once; false when there is nothing to write, or no room.
    fn write(&mut self) -> Result<bool, Ended>;

    /// Reads and writes; false when both are blocked.
    fn take_turns(&mut self, now_ns: u64, scratch: &mut Scratch) -> Result<bool, Ended> {
        // A sender receives messages alone; a read for each write would be a system call for
        // nothing.
        let skips_read = self.is_sender() && now_ns < *self.next_read_ns();
        let mut may_read = !skips_read;
        let mut may_write = true;
        let room = scratch.room_bytes;
        let before = self.moved_bytes();

        for _ in 0..CALLS_PER_PUMP {
            let moved = usize::try_from(self.moved_bytes() - before).unwrap_or(usize::MAX);
            let left = room.saturating_sub(moved);
            if left == 0 {
                break;
            }

            may_read = may_read && self.read(scratch, left)?;
            may_write = self.write()?;
            if !may_read && !may_write {
                break;
            }
        }

        if skips_read && !may_write {
            // An event of before may have been for what has arrived.
            may_read = self.read(scratch, room)?;
        }
        *self.next_read_ns() = match (may_read, may_write) {
            (true, _) => now_ns,
            (false, true) => now_ns + READ_PERIOD_NS,
            // What makes the socket ready is not known: both are tried.
            (false, false) => 0,
        };
        Ok(may_read || may_write)
    }
}

/// Writes and reads per pump, so that a stop is seen soon.
const CALLS_PER_PUMP: u32 = 8;
/// Between two reads of a sender that is never blocked.
const READ_PERIOD_NS: u64 = 500_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Data to send and echoes to read, in calls.
    struct Line {
        writes: u32,
        reads: u32,
        next_read_ns: u64,
        is_sender: bool,
        calls: Vec<&'static str>,
    }

    impl Duplex for Line {
        fn is_sender(&self) -> bool {
            self.is_sender
        }

        fn moved_bytes(&self) -> u64 {
            self.calls.len() as u64
        }

        fn next_read_ns(&mut self) -> &mut u64 {
            &mut self.next_read_ns
        }

        fn read(&mut self, _: &mut Scratch, _: usize) -> Result<bool, Ended> {
            self.calls.push("read");
            let has_arrived = self.reads > 0;
            self.reads = self.reads.saturating_sub(1);
            Ok(has_arrived)
        }

        fn write(&mut self) -> Result<bool, Ended> {
            self.calls.push("write");
            let has_room = self.writes > 0;
            self.writes = self.writes.saturating_sub(1);
            Ok(has_room)
        }
    }

    fn turn(line: &mut Line, now_ns: u64) -> (bool, Vec<&'static str>) {
        let Ok(goes_again) = line.take_turns(now_ns, &mut Scratch::default()) else {
            panic!("the line has not ended");
        };
        (goes_again, std::mem::take(&mut line.calls))
    }

    #[test]
    fn sender_that_is_never_blocked_reads_now_and_then() {
        let mut line = Line {
            writes: 100,
            reads: 0,
            next_read_ns: 0,
            is_sender: true,
            calls: Vec::new(),
        };
        let (goes_again, first) = turn(&mut line, 1);
        assert!(goes_again && first.contains(&"read"));

        let (_, soon) = turn(&mut line, 2);
        assert_eq!(soon, ["write"; 8]);
        let (_, later) = turn(&mut line, 2 + READ_PERIOD_NS);
        assert!(later.contains(&"read"));
    }

    #[test]
    fn blocked_sender_reads_before_it_waits() {
        let mut line = Line {
            writes: 0,
            reads: 0,
            next_read_ns: 10,
            is_sender: true,
            calls: Vec::new(),
        };
        assert_eq!(turn(&mut line, 1), (false, vec!["write", "read"]));
        assert_eq!(line.next_read_ns, 0);
    }
}
