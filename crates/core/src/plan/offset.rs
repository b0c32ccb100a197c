//! Plans without the chunks of rows that an `OFFSET` skips.
//!
//! ```text
//!   OFFSET 25        chunks of 10 rows   0..10  10..20  20..30  30..40 …
//!                                        └─ left out ─┘ └ 5 rows are left to skip
//! ```

use super::partitions::first_tasks;
use super::pruned_chunks::{Account, PrunedChunks};
use super::scan_plan::ScanPlan;
use super::task::TaskRange;

impl ScanPlan {
    /// Leaves out the first chunks, or slabs of chunks, as long as they have no more than `skip` rows together. Returns how many
    /// rows that are, too. The plan keeps the rows that are left to skip and `fetch` more, or all of them. A limit of this
    /// plan is replaced.
    #[must_use = "the plan is not changed in place"]
    pub fn skipping(&self, skip: u64, fetch: Option<u64>) -> (Self, u64) {
        let (tasks, rows) = first_tasks(&self.chunks, skip, self.division().places_per_slab);
        let left = TaskRange::new(tasks..self.chunks.tasks());
        let plan = Self {
            chunks: self.chunks.only(&left),
            limit: fetch.map(|fetch| fetch.saturating_add(skip - rows)),
            max_partitions: self.partition_count(),
            ..self.clone()
        };
        let plan = plan.divided();
        let account = self.pruned().map(|pruned| {
            let by_limit = self.chunks.tasks() - plan.chunks();
            Account::OfAll(PrunedChunks { by_limit, ..pruned })
        });
        (Self { account: account.unwrap_or(Account::Elsewhere), ..plan }, rows)
    }
}
