//! Makes the pump of each stream: what a test is to do, decided once before it starts.

use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_model::spec::SendPath;
use linerate_model::{StreamRole, Transport};
use linerate_sys::sendfile_source::SourceFile;
use linerate_sys::{PageBuffer, zerocopy};

use super::amount::Amount;
use super::open_stream::OpenStream;
use super::settings::{PumpInputs, RunSettings};
use crate::data::quota::Quota;
use crate::data::worker::{
    DatagramFormat, DatagramReceiver, DatagramSender, Datagrams, Metered, Pump, RepeatedBlock,
    SUBMISSION_BYTES, Sink, Source, StreamAssignment, StreamReceiver, StreamSender,
    blocks_per_memory, may_pause,
};
use crate::data::{files, payload};
use crate::error::{EngineError, Operation};

/// Resources that the pumps of one test share.
pub(super) struct PumpFactory<'a> {
    settings: &'a RunSettings,
    amount: &'a Amount,
    quota: &'a Quota,
    start_ns: u64,
    memory: Option<Arc<PageBuffer>>,
    pages: Option<Arc<SourceFile>>,
}

impl<'a> PumpFactory<'a> {
    pub(super) fn new(
        settings: &'a RunSettings,
        amount: &'a Amount,
        quota: &'a Quota,
        start_ns: u64,
    ) -> Self {
        Self {
            settings,
            amount,
            quota,
            start_ns,
            memory: None,
            pages: None,
        }
    }

    pub(super) fn assignment(
        &mut self,
        open: &mut OpenStream,
    ) -> Result<StreamAssignment, EngineError> {
        let pump = self.pump(open)?;
        let counters = Arc::clone(&open.counters);
        Ok(StreamAssignment {
            id: open.stream.id,
            fd: Arc::clone(&open.fd),
            role: open.stream.role,
            pump: if self.quota.is_empty() {
                pump
            } else {
                Box::new(Metered::new(pump, counters, self.quota.clone()))
            },
        })
    }

    fn pump(&mut self, open: &mut OpenStream) -> Result<Box<dyn Pump>, EngineError> {
        let fd = Arc::clone(&open.fd);
        let counters = Arc::clone(&open.counters);
        if let Some(build_pump) = open.build_pump.take() {
            let start_ns = self.start_ns;
            return build_pump(PumpInputs {
                fd,
                counters,
                start_ns,
            })
            .map_err(Operation::InitStream.failed());
        }

        let spec = &self.settings.spec;
        Ok(match (spec.transport, open.stream.role) {
            (Transport::Udp, StreamRole::Sender) => {
                let block = self.block(0)?;
                let budget = self.amount.budget.clone();
                let datagrams = Datagrams {
                    block: &block,
                    peer_coalesces: open.peer_coalesces,
                    sequence: (self.datagrams().writer)(spec),
                };
                let sender =
                    DatagramSender::new(fd, counters, datagrams, spec, self.start_ns, budget);
                Box::new(sender.map_err(Operation::InitStream.failed())?)
            }
            (Transport::Udp, StreamRole::Receiver) => {
                let sequence = (self.datagrams().reader)(spec);
                let receiver =
                    DatagramReceiver::new(fd, counters, sequence, self.amount.target.clone());
                Box::new(receiver.pausing(may_pause(spec)))
            }
            (_, StreamRole::Sender) => {
                let source = self.source(&fd)?;
                let budget = self.amount.budget.clone();
                Box::new(StreamSender::new(
                    fd,
                    counters,
                    source,
                    spec,
                    self.start_ns,
                    budget,
                ))
            }
            (_, StreamRole::Receiver) => {
                let sink = self.sink()?;
                let target = self.amount.target.clone();
                Box::new(StreamReceiver::new(
                    fd,
                    counters,
                    sink,
                    spec.block_len_bytes,
                    may_pause(spec),
                    target,
                ))
            }
        })
    }

    fn datagrams(&self) -> DatagramFormat {
        let format = self.settings.datagrams;
        format.expect("a dialect without a format builds the pumps of its flows")
    }

    /// A block of payload, with `more` bytes behind it.
    fn block(&self, more: usize) -> Result<PageBuffer, EngineError> {
        let block = payload::block(self.settings.spec.payload, self.block_len() + more);
        block.map_err(Operation::InitStream.failed())
    }

    fn block_len(&self) -> usize {
        (self.settings.spec.block_len_bytes as usize).max(1)
    }

    /// Memory that all senders of byte streams share: a block, or several if they may share a
    /// write.
    fn memory(&mut self, more: usize) -> Result<Arc<PageBuffer>, EngineError> {
        if let Some(memory) = &self.memory {
            return Ok(Arc::clone(memory));
        }

        let blocks = blocks_per_memory(&self.settings.spec);
        let mut memory = self.block(more)?;

        if blocks > 1 {
            memory =
                PageBuffer::repeated(&memory, blocks).map_err(Operation::InitStream.failed())?;
        }

        Ok(Arc::clone(self.memory.insert(Arc::new(memory))))
    }

    /// That memory, to send copies from. A single block has room for its shifts.
    fn repeated_block(&mut self) -> Result<RepeatedBlock, EngineError> {
        let is_single = blocks_per_memory(&self.settings.spec) == 1;
        let room = if is_single {
            RepeatedBlock::room_for_shifts(self.block_len())
        } else {
            0
        };
        let memory = self.memory(room)?;
        let len = memory.len() - room;

        Ok(RepeatedBlock::new(memory, len))
    }

    /// Source of a stream sender; `fd` is its socket.
    fn source(&mut self, fd: impl AsFd) -> Result<Source, EngineError> {
        let spec = &self.settings.spec;
        if let Some(path) = &self.settings.local.file {
            return files::source(path, spec.block_len_bytes as usize)
                .map_err(Operation::OpenFile.failed());
        }

        match spec.send_path {
            SendPath::ZeroCopy => {
                zerocopy::enable(&fd).map_err(Operation::InitStream.failed())?;
                Ok(Source::ZeroCopy(self.memory(0)?))
            }
            SendPath::SendFile => Ok(Source::Pages(self.pages()?)),
            _ => Ok(Source::Block(self.repeated_block()?)),
        }
    }

    fn pages(&mut self) -> Result<Arc<SourceFile>, EngineError> {
        if let Some(pages) = &self.pages {
            return Ok(Arc::clone(pages));
        }

        let block = self.memory(0)?;
        let copies = (SUBMISSION_BYTES / block.len()).max(1);
        let pages = SourceFile::filled("linerate-block", &block.repeat(copies));
        Ok(Arc::clone(self.pages.insert(Arc::new(
            pages.map_err(Operation::InitStream.failed())?,
        ))))
    }

    fn sink(&self) -> Result<Sink, EngineError> {
        match &self.settings.local.file {
            Some(path) => files::sink(path).map_err(Operation::OpenFile.failed()),
            None if self.settings.spec.skip_rx_copy => Ok(Sink::Discard),
            None => Ok(Sink::Memory),
        }
    }
}
