//! Stored values: deflated, with their size and a checksum.

pub(crate) mod series;

use std::io::{Read, Write};

use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::StoreError;
use crate::database::Row;

/// No stored value is larger: a record has at most this number of bytes.
const MAX_BYTES: u64 = 64 << 20;

/// A deflated value.
pub(crate) struct Packed {
    /// Bytes before deflating.
    pub size: i64,
    /// CRC-32 of `blob`.
    pub checksum: i64,
    pub blob: Vec<u8>,
}

impl Packed {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        let blob = encoder
            .write_all(bytes)
            .and_then(|()| encoder.finish())
            .expect("a vector takes every byte");
        Self {
            size: bytes.len().try_into().unwrap_or(i64::MAX),
            checksum: checksum(&blob),
            blob,
        }
    }

    pub(crate) fn json(value: &impl Serialize) -> Self {
        Self::new(&serde_json::to_vec(value).expect("records have text keys alone"))
    }

    /// Reads the columns `size`, `checksum` and the blob from `first` on.
    pub(crate) fn of(row: &Row, first: usize) -> Result<Self, StoreError> {
        Ok(Self {
            size: row.get(first)?,
            checksum: row.get(first + 1)?,
            blob: row.get(first + 2)?,
        })
    }

    /// The bytes, after the checksum is verified.
    pub(crate) fn bytes(&self, what: &dyn Fn() -> String) -> Result<Vec<u8>, StoreError> {
        // Over the deflated bytes, so that no damaged value is inflated.
        if checksum(&self.blob) != self.checksum {
            return Err(StoreError::damaged(what(), "wrong checksum"));
        }

        let size = u64::try_from(self.size)
            .ok()
            .filter(|size| *size <= MAX_BYTES);
        let Some(size) = size else {
            return Err(StoreError::damaged(what(), "larger than 64 MiB"));
        };
        // A byte beyond the size shows a longer value without inflating all of it.
        let mut bytes = Vec::new();
        let read = DeflateDecoder::new(&*self.blob)
            .take(size + 1)
            .read_to_end(&mut bytes);
        match read {
            Ok(length) if length as u64 == size => Ok(bytes),
            Ok(_) => Err(StoreError::damaged(what(), "another size than stored")),
            Err(error) => Err(StoreError::damaged(what(), error)),
        }
    }

    pub(crate) fn parse<T: DeserializeOwned>(
        &self,
        what: &dyn Fn() -> String,
    ) -> Result<T, StoreError> {
        let bytes = self.bytes(what)?;
        let text = str::from_utf8(&bytes).map_err(|error| StoreError::damaged(what(), error))?;
        serde_json::from_str(text).map_err(|error| StoreError::damaged(what(), error))
    }
}

fn checksum(bytes: &[u8]) -> i64 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum().into()
}

/// The variant that is stored under a name.
pub(crate) fn variant<T: DeserializeOwned>(name: String) -> Result<T, StoreError> {
    let named = serde_json::from_value(serde_json::Value::String(name));
    named.map_err(|error| StoreError::damaged("stored name", error))
}
