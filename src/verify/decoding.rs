//! Chunks or tiles that are decoded side by side, and what is found wrong with them.

use std::future::Future;

use super::pool::Pool;
use super::report::{Check, Finding, counted};
use crate::error::Result;

/// What is wrong with a chunk or a tile.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It cannot be decoded.
    Payload(Finding),
    /// What is noted about it is not so.
    Figures(Finding),
}

/// How many of a batch could be decoded, and what is wrong.
pub(crate) type Decoded = (u64, Vec<Fault>);

/// The two checks that decoding makes.
#[derive(Debug)]
pub(crate) struct Decoding {
    pool: Pool<Decoded>,
    decoded: u64,
    payloads: Check,
    figures: Check,
}

impl Decoding {
    /// The names are those of the checks.
    pub(crate) fn new(payloads: &'static str, figures: &'static str) -> Self {
        let (payloads, figures) = (Check::new(payloads), Check::new(figures));
        Self { pool: Pool::new(), decoded: 0, payloads, figures }
    }

    /// Decodes a batch beside others.
    pub(crate) async fn start(
        &mut self,
        batch: impl Future<Output = Decoded> + Send + 'static,
    ) -> Result<()> {
        let ended = self.pool.start(batch).await?;
        ended.into_iter().for_each(|ended| self.note(ended));
        Ok(())
    }

    fn note(&mut self, (decoded, faults): Decoded) {
        self.decoded += decoded;
        for fault in faults {
            match fault {
                Fault::Payload(finding) => self.payloads.add(finding),
                Fault::Figures(finding) => self.figures.add(finding),
            }
        }
    }

    /// The checks of payloads and of figures, when all batches have ended; `what` was decoded.
    pub(crate) async fn finish(mut self, what: &str) -> Result<(Check, Check)> {
        while let Some(ended) = self.pool.next().await? {
            self.note(ended);
        }
        Ok((self.payloads.with_detail(counted(self.decoded, what)), self.figures))
    }
}
