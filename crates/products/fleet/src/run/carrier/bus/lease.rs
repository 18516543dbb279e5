//! The lease of a site: one coordinator at a time. The revision at which it was taken is the epoch.

use std::time::{Duration, Instant};

use async_nats::jetstream::kv::{CreateErrorKind, Store, UpdateErrorKind};
use bytes::Bytes;
use linerate_model::outcome::Error;
use tokio::time::sleep;

use super::refused;

/// Time after which a lease that is not renewed ends.
pub(super) const TTL: Duration = Duration::from_secs(10);
/// Period of its renewal.
const RENEWAL: Duration = Duration::from_secs(3);
/// Time between two attempts to take or renew it.
const RETRY: Duration = Duration::from_millis(500);
/// Name of the lease in its bucket.
const KEY: &str = "coordinator";

/// The lease of a site, taken.
#[derive(Clone)]
pub(super) struct Lease {
    store: Store,
    /// A text that no other coordinator has.
    holder: Bytes,
    /// The epoch.
    pub epoch: u64,
}

impl Lease {
    /// Takes the lease; `None` while another coordinator has it.
    pub(super) async fn take(store: &Store, holder: &str) -> Result<Option<Self>, Error> {
        let holder = Bytes::copy_from_slice(holder.as_bytes());
        match store.create(KEY, holder.clone()).await {
            // The first revision of the key is higher than those of all earlier leases.
            Ok(epoch) => Ok(Some(Self {
                store: store.clone(),
                holder,
                epoch,
            })),
            Err(error) if error.kind() == CreateErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(refused(&store.name, &error)),
        }
    }

    /// Takes the lease once no other coordinator has it.
    pub(super) async fn wait(store: &Store, holder: &str) -> Self {
        loop {
            sleep(RETRY).await;
            // A broker that is away is waited for as well.
            if let Ok(Some(lease)) = Self::take(store, holder).await {
                return lease;
            }
        }
    }

    /// Renews the lease until it is lost.
    pub(super) async fn keep(self) {
        let mut revision = self.epoch;
        let mut renewed = Instant::now();
        loop {
            sleep(if renewed.elapsed() < RENEWAL {
                RENEWAL
            } else {
                RETRY
            })
            .await;
            // Counted from the begin of the request: the broker's time ends no earlier.
            let begun = Instant::now();

            match self.store.update(KEY, self.holder.clone(), revision).await {
                Ok(next) => (revision, renewed) = (next, begun),
                Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => {
                    match self.own_revision().await {
                        // A renewal whose reply was lost.
                        Some(own) => revision = own,
                        None => return,
                    }
                }
                // The broker is away: the lease holds until its time has passed.
                Err(_) => {}
            }

            // Another coordinator may have the lease from now on.
            if renewed.elapsed() >= TTL {
                return;
            }
        }
    }

    /// Ends the lease, so that the next coordinator need not wait.
    pub(super) async fn release(self) {
        if let Some(revision) = self.own_revision().await {
            // It ends by itself otherwise.
            let _ = self.store.delete_expect_revision(KEY, Some(revision)).await;
        }
    }

    async fn own_revision(&self) -> Option<u64> {
        let entry = self.store.entry(KEY).await.ok()??;
        (entry.value == self.holder).then_some(entry.revision)
    }
}
