//! Memory of accumulators, accounted for before they take it.
//!
//! Some accumulators hold all values that they are given (`median`), or all that differ
//! (`count(DISTINCT …)`), in memory that doubles each time it is full:
//!
//! ```text
//!   held    ▁▁▂▂▂▂▄▄▄▄▄▄▄▄████████████████      doubles when twice as much has been given
//!   given   ────────────────────────────▶
//! ```
//!
//! Asking after a batch whether its memory may be had is too late by that doubling. So an account expects,
//! of accumulators that have grown, that they double again; and it asks them what they hold so rarely that
//! asking, which looks at every group, costs nothing beside the rows.

use std::ops::Range;

use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;

/// Estimates the memory of accumulators now and after the next batch.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// Bytes that they held when they were asked last.
    held: usize,
    /// Bytes that they had been given by then.
    given: usize,
    /// Bytes that they have been given since.
    since: usize,
    /// Groups that there were by then.
    groups: usize,
    growth: Growth,
}

/// The last time that accumulators were found to have grown by much.
#[derive(Debug, Default)]
struct Growth {
    /// Bytes that they held then.
    held: usize,
    /// Bytes that they had been given before and after: they grew somewhere in between.
    given: Range<usize>,
}

impl Account {
    /// Makes room in `reservation`, beside the `fixed` bytes there, for accumulators that are about to be
    /// given `bytes`, and have met so many `groups`; `held` asks them how much they hold.
    pub(super) fn admit(
        &mut self,
        reservation: &MemoryReservation,
        fixed: usize,
        bytes: usize,
        groups: usize,
        held: impl FnOnce() -> usize,
    ) -> Result<()> {
        if self.is_news(bytes) || groups > self.groups + self.groups / 16 {
            self.groups = groups;
            self.learn(held());
        }
        let needed = fixed.saturating_add(self.expected(bytes));
        if needed > reservation.size() {
            reservation.try_resize(needed)?;
        }
        self.since += bytes;
        Ok(())
    }

    /// Whether so much has been given that the accumulators may hold much more than is known.
    fn is_news(&self, bytes: usize) -> bool {
        /// Less is not worth asking for.
        const LEAST: usize = 1 << 14;
        self.since + bytes > (self.held / 16).max(LEAST)
    }

    fn learn(&mut self, held: usize) {
        let given = self.given..self.given + self.since;
        (self.held, self.given, self.since) = (held, given.end, 0);
        if held > self.growth.held + self.growth.held / 4 {
            self.growth = Growth { held, given };
        }
    }

    /// What they may hold after `bytes` more.
    fn expected(&self, bytes: usize) -> usize {
        let more = self.since + bytes;
        let given = self.given + more;
        // Those that hold all values have doubled by then; if nothing has happened long after, they do not.
        let doubles = given > 2 * self.growth.given.start && given <= 3 * self.growth.given.end;
        self.held + (2 * more).max(if doubles { self.held } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryConsumer, MemoryPool};

    use super::*;

    /// Feeds an accumulator that holds all that it is given; returns what it held at most.
    fn peak(limit: usize, batch: usize, mut grow: impl FnMut(usize) -> usize) -> (usize, usize) {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(limit));
        let reservation = MemoryConsumer::new("test").register(&pool);
        let mut account = Account::default();
        let (mut held, mut given) = (0, 0);
        while given < 4 * limit {
            if account.admit(&reservation, 0, batch, 1, || held).is_err() {
                break;
            }
            given += batch;
            held = grow(given);
        }
        (held, given)
    }

    #[test]
    fn a_vector_never_outgrows_the_pool() {
        for limit in [100_000, 1_000_000, 123_456_789] {
            for batch in [1_000, 32_768] {
                let (held, given) = peak(limit, batch, usize::next_power_of_two);
                assert!(held <= limit, "{held} of {limit}");
                assert!(given >= limit / 5, "{given} of {limit}");
            }
        }
    }

    #[test]
    fn a_hash_table_never_outgrows_the_pool() {
        let table = |given: usize| (given / 4 * 8 / 7).next_power_of_two() * 24;
        let (held, _) = peak(50_000_000, 32_768, table);
        assert!(held <= 50_000_000, "{held}");
    }

    #[test]
    fn what_does_not_grow_is_left_alone() {
        let (_, given) = peak(1_000_000, 32_768, |_| 400_000);
        assert!(given >= 4_000_000, "{given}");
    }

    #[test]
    fn accumulators_are_asked_rarely() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(usize::MAX));
        let reservation = MemoryConsumer::new("test").register(&pool);
        let (mut account, mut asked) = (Account::default(), 0);
        for batch in 0..100_000_usize {
            let held = || {
                asked += 1;
                (batch * 32_768).next_power_of_two()
            };
            account.admit(&reservation, 0, 32_768, 1, held).unwrap();
        }
        assert!(asked < 1_000, "{asked}");
    }
}
