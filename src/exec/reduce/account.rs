//! [`Account`]: reserves the memory of accumulators before they allocate it.
//!
//! Some accumulators hold all their input (`median`), or all distinct values of it (`count(DISTINCT …)`).
//! Their memory doubles each time it is full:
//!
//! ```text
//!   held    ▁▁▂▂▂▂▄▄▄▄▄▄▄▄████████████████      doubles when twice as much has been given
//!   given   ────────────────────────────▶
//! ```
//!
//! A reservation after a batch would come too late for such a doubling. So an account assumes that
//! accumulators double again once they have grown. A measurement of their memory visits every group, so an
//! account measures rarely, at a small cost beside that of the rows.

use std::ops::Range;

use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;

/// An estimate of the memory of accumulators, now and after the next batch.
#[derive(Debug, Default)]
pub(in crate::exec) struct Account {
    /// Bytes that the accumulators held at the last measurement.
    held: usize,
    /// Bytes of input before the last measurement.
    given: usize,
    /// Bytes of input since the last measurement.
    since: usize,
    /// The number of groups at the last measurement.
    groups: usize,
    growth: Growth,
}

/// The last measurement at which accumulators had grown by much.
#[derive(Debug, Default)]
struct Growth {
    /// Bytes that the accumulators held then.
    held: usize,
    /// Bytes of input at the previous measurement and at this one; the growth lies in between.
    given: Range<usize>,
}

impl Account {
    /// Reserves memory for the next `bytes` of input of accumulators, which have `groups` groups so far.
    /// `reservation` also holds `fixed` bytes for other uses. `held` measures the accumulators.
    pub(in crate::exec) fn admit(
        &mut self,
        reservation: &MemoryReservation,
        fixed: usize,
        bytes: usize,
        groups: usize,
        held: impl FnOnce() -> usize,
    ) -> Result<()> {
        if self.needs_measurement(bytes) || groups > self.groups + self.groups / 16 {
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

    /// Whether the accumulators may hold much more than at the last measurement, after `bytes` more of
    /// input.
    fn needs_measurement(&self, bytes: usize) -> bool {
        /// Less input is not worth a measurement.
        const LEAST: usize = 1 << 14;
        self.since + bytes > (self.held / 16).max(LEAST)
    }

    /// Takes in a measurement: the accumulators hold `held` bytes now.
    fn learn(&mut self, held: usize) {
        let given = self.given..self.given + self.since;
        (self.held, self.given, self.since) = (held, given.end, 0);
        if held > self.growth.held + self.growth.held / 4 {
            self.growth = Growth { held, given };
        }
    }

    /// Returns the bytes that the accumulators may hold after `bytes` more of input.
    fn expected(&self, bytes: usize) -> usize {
        let more = self.since + bytes;
        let given = self.given + more;
        // Accumulators that hold all values double within this range of input. If they have not grown by
        // its end, they do not hold all values.
        let doubles = given > 2 * self.growth.given.start && given <= 3 * self.growth.given.end;
        self.held + (2 * more).max(if doubles { self.held } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryConsumer, MemoryPool};

    use super::*;

    /// Feeds an accumulator four times the limit, or until the pool refuses; returns the bytes that it
    /// holds and its input.
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
