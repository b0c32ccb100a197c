//! [`Reads`]: the objects that the partitions of a node have read, to be checked when the last of them ends.
//!
//! ```text
//!   partition 0  ├─ a ── b ─┤
//!   partition 1      ├─ c ──────── d ─┤ ▶ check a, b, c, d
//! ```
//!
//! Only after the last read can a check show that all bytes are of one moment. If each partition checked its own objects, a
//! program could write `a` and `d` between the two ends.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use crate::array::GridArray;
use crate::error::Result;
use crate::plan::ScanPlan;

/// Objects with the numbers of their members.
type Objects = HashSet<(u32, Arc<str>)>;

/// The reads of plans that run, by the address of the plan.
static RUNNING: LazyLock<Mutex<HashMap<usize, Running>>> = LazyLock::new(Mutex::default);

fn running() -> MutexGuard<'static, HashMap<usize, Running>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The objects that partitions of a plan have read.
#[derive(Debug, Default)]
struct Running {
    plan: Weak<ScanPlan>,
    /// The partitions that have begun and not ended.
    open: usize,
    /// The partitions that have begun.
    begun: usize,
    /// The objects of partitions that have ended.
    read: Objects,
}

/// The objects that one partition reads.
#[derive(Debug)]
pub(super) struct Reads {
    array: Arc<GridArray>,
    plan: Arc<ScanPlan>,
    partitions: usize,
    read: Objects,
    is_done: bool,
}

impl Reads {
    /// Begins a partition, one of `partitions` that read parts of a plan.
    pub(super) fn begin(array: &Arc<GridArray>, plan: &Arc<ScanPlan>, partitions: usize) -> Self {
        let mut all = running();
        // A plan that was dropped before all of its partitions began leaves an entry.
        all.retain(|_, it| it.plan.strong_count() > 0);
        let of_plan = all.entry(Arc::as_ptr(plan) as usize).or_default();
        of_plan.plan = Arc::downgrade(plan);
        of_plan.open += 1;
        of_plan.begun += 1;
        let (array, plan) = (Arc::clone(array), Arc::clone(plan));
        Self { array, plan, partitions, read: Objects::new(), is_done: false }
    }

    /// Notes objects that were read, or found absent.
    pub(super) fn extend(&mut self, objects: impl Iterator<Item = (u32, Arc<str>)>) {
        self.read.extend(objects);
    }

    /// Ends the partition. If no other one is open, checks all that were read.
    ///
    /// # Errors
    /// `Io` if an object is another one than when it was read.
    pub(super) async fn end(&mut self) -> Result<()> {
        match self.close() {
            Some(read) if self.array.objects().are_rewritten() => {
                self.array.objects().check_read(&read).await
            }
            _ => Ok(()),
        }
    }

    /// Ends the partition; returns all objects that were read if no other one is open.
    fn close(&mut self) -> Option<Objects> {
        if std::mem::replace(&mut self.is_done, true) {
            return None;
        }
        let mut all = running();
        let key = Arc::as_ptr(&self.plan) as usize;
        let of_plan = all.get_mut(&key)?;
        of_plan.open = of_plan.open.saturating_sub(1);
        of_plan.read.extend(self.read.drain());
        if of_plan.open > 0 {
            return None;
        }
        // Partitions may run one after the other, and the last one checks all.
        match of_plan.begun < self.partitions {
            true => Some(of_plan.read.clone()),
            false => all.remove(&key).map(|it| it.read),
        }
    }
}

impl Drop for Reads {
    fn drop(&mut self) {
        // A query that ends early has no last partition that could check.
        drop(self.close());
    }
}
