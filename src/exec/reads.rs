//! [`Reads`]: the objects that the partitions of a query have read, to be checked when partitions end.
//!
//! ```text
//!   partition 0  ├─ a ── b ─┤ ▶ check a, b
//!   partition 1      ├─ c ──────── d ─┤ ▶ check a, b, c, d
//! ```
//!
//! Only after the last read can a check show that all bytes are of one moment. If each partition checked its own objects, a
//! program could write `a` and `d` between the two ends.
//!
//! A query is known by its `TaskContext`, which DataFusion makes once and passes to all operators. So it does not matter
//! whether partitions have plans of their own, begin late, or belong to several operators over the same store.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use datafusion::execution::TaskContext;

use crate::array::GridArray;
use crate::error::Result;
use crate::plan::ScanPlan;

/// The most objects that a partition checks if others of its operator go on, and will check them too. More would take time,
/// because each partition may be such a one.
const SOME: usize = 4096;

/// The queries that run, by the addresses of their contexts.
static RUNNING: LazyLock<Mutex<HashMap<usize, Query>>> = LazyLock::new(Mutex::default);

fn running() -> MutexGuard<'static, HashMap<usize, Query>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The reads of a query.
#[derive(Debug)]
struct Query {
    /// As long as this exists, no other context has the address.
    context: Weak<TaskContext>,
    /// The partitions that have begun and not ended, by the address of the plan of their operator.
    open: HashMap<usize, usize>,
    /// The stores of each array of which something was read, by the address of the array.
    stores: HashMap<usize, Stores>,
    /// The objects that partitions have read that ended, by the number of their store.
    read: HashMap<u64, HashSet<Arc<str>>>,
}

/// The numbers of stores, each with a member of the array that has it.
type Stores = HashMap<u64, u32>;

/// The objects that one partition reads.
#[derive(Debug)]
pub(super) struct Reads {
    array: Arc<GridArray>,
    /// The plan of the operator, which tells it apart from others.
    operator: Arc<ScanPlan>,
    context: Arc<TaskContext>,
    /// The objects by the member of the array that has them.
    read: HashMap<u32, HashSet<Arc<str>>>,
    is_done: bool,
}

/// Objects to check, each with the member of the array that has them.
type ToCheck = Vec<(u32, Vec<Arc<str>>)>;

impl Reads {
    /// Begins to read chunks for a partition of the operator whose own plan is `operator`. All partitions of the operator
    /// pass the same one, even if they read by others.
    pub(super) fn begin(
        array: &Arc<GridArray>,
        operator: &Arc<ScanPlan>,
        context: &Arc<TaskContext>,
    ) -> Self {
        let (array, operator) = (Arc::clone(array), Arc::clone(operator));
        let mut this = Self {
            array,
            operator,
            context: Arc::clone(context),
            read: HashMap::new(),
            is_done: false,
        };
        // Coordinates may have been read for an earlier query, or while this one was planned.
        let known = this.array.known_objects();
        this.extend(known.into_iter());
        let mut all = running();
        // Queries that were dropped leave entries.
        all.retain(|_, it| it.context.strong_count() > 0);
        let query = all.entry(this.query()).or_insert_with(|| Query {
            context: Arc::downgrade(context),
            open: HashMap::new(),
            stores: HashMap::new(),
            read: HashMap::new(),
        });
        *query.open.entry(this.operator()).or_default() += 1;
        drop(all);
        this
    }

    /// Returns the array that is read.
    pub(super) fn array(&self) -> &Arc<GridArray> {
        &self.array
    }

    fn query(&self) -> usize {
        Arc::as_ptr(&self.context) as usize
    }

    fn operator(&self) -> usize {
        Arc::as_ptr(&self.operator) as usize
    }

    /// Notes objects that were read, or found absent.
    pub(super) fn extend(&mut self, objects: impl Iterator<Item = (u32, Arc<str>)>) {
        for (member, object) in objects {
            self.read.entry(member).or_default().insert(object);
        }
    }

    /// Ends the partition, and checks what the query has read of the array so far. While others of the operator go on, it
    /// checks only its own objects if there are many, and none in an object store.
    ///
    /// # Errors
    /// `Io` if an object is another one than when it was read.
    pub(super) async fn end(&mut self) -> Result<()> {
        for (member, objects) in self.close() {
            self.array.objects().check_read(member, &objects).await?;
        }
        Ok(())
    }

    /// Ends the partition, and adds its objects to those of the query. Returns what to check.
    fn close(&mut self) -> ToCheck {
        if std::mem::replace(&mut self.is_done, true) {
            return vec![];
        }
        let objects = self.array.objects();
        let own = std::mem::take(&mut self.read);
        let mut all = running();
        let Some(query) = all.get_mut(&self.query()) else { return vec![] };
        let is_last = query.leave(self.operator());
        if !objects.are_rewritten() {
            return vec![];
        }
        let stores = query.stores.entry(Arc::as_ptr(&self.array) as usize).or_default();
        for (&member, own) in &own {
            let Some(store) = objects.rewritten_store(member) else { continue };
            stores.insert(store, member);
            query.read.entry(store).or_default().extend(own.iter().cloned());
        }
        let read = |(store, member): (&u64, &u32)| Some((*member, query.read.get(store)?));
        let all_read: Vec<_> = stores.iter().filter_map(read).collect();
        match all_read.iter().map(|(_, read)| read.len()).sum::<usize>() {
            // Each check takes requests there.
            _ if objects.is_remote() && !is_last => vec![],
            // Labels are metadata, which all checks include.
            0 => vec![(0, vec![])],
            _ if is_last => to_check(all_read),
            count if count <= SOME => to_check(all_read),
            _ => to_check(own.iter().map(|(member, own)| (*member, own))),
        }
    }
}

fn to_check<'a>(read: impl IntoIterator<Item = (u32, &'a HashSet<Arc<str>>)>) -> ToCheck {
    read.into_iter().map(|(member, objects)| (member, objects.iter().cloned().collect())).collect()
}

impl Query {
    /// Ends a partition of an operator. Returns whether no other one of it is open.
    fn leave(&mut self, operator: usize) -> bool {
        match self.open.get_mut(&operator) {
            Some(open) if *open > 1 => {
                *open -= 1;
                false
            }
            _ => {
                self.open.remove(&operator);
                true
            }
        }
    }
}

impl Drop for Reads {
    fn drop(&mut self) {
        // A query that ends early has no last partition that could check.
        drop(self.close());
        // Then no other partition can begin.
        if Arc::strong_count(&self.context) == 1 {
            running().remove(&self.query());
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::array::{ChunkSource, Dimension, GridArrayBuilder, ReadOptions, Value};
    use crate::format::{ElementType, StoredChunk};
    use crate::grid::{ChunkGrid, ChunkTask};
    use crate::io::MemorySource;
    use crate::plan::ScanRequest;
    use crate::tile::Objects;

    #[derive(Debug)]
    struct Nothing(Arc<Objects>);

    #[async_trait]
    impl ChunkSource for Nothing {
        fn objects(&self) -> &Arc<Objects> {
            &self.0
        }

        async fn locate(&self, _: &[ChunkTask], _: &[usize]) -> Result<Vec<Vec<StoredChunk>>> {
            Ok(vec![])
        }
    }

    #[tokio::test]
    async fn a_query_leaves_nothing_behind() {
        let grid = ChunkGrid::new(&[4], &[1]).unwrap();
        let objects = Objects::one(Arc::new(MemorySource::new("memory", vec![])));
        let source = Arc::new(Nothing(Arc::new(objects)));
        let builder = GridArrayBuilder::new("a", source, grid.clone());
        let value = Value::numbers("value", ElementType::F32, None, &ReadOptions::default());
        let builder = builder.dimension(Dimension::indexed("x", 4)).value(value);
        let array = Arc::new(builder.build().unwrap());
        let request = ScanRequest::all(&grid);
        let plan = Arc::new(ScanPlan::new(grid, request).unwrap());
        let context = Arc::new(TaskContext::default());
        let key = Arc::as_ptr(&context) as usize;
        let is_known = || running().contains_key(&key);
        let mut first = Reads::begin(&array, &plan, &context);
        first.end().await.unwrap();
        drop(first);
        // Another partition may still begin.
        assert!(is_known());
        let second = Reads::begin(&array, &plan, &context);
        drop(context);
        assert!(is_known());
        drop(second);
        assert!(!is_known());
    }
}
