//! The dense kernels at work: reads the chunks of a partition, adds them to the states of groups, and makes
//! columns of these.
//!
//! ```text
//!   zone maps, or chunks ─▶ a Reducer per variable ─▶ GroupStats per member ─▶ columns
//!                                                     └─▶ Contraction, if groups are weighed ─▶ columns
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt64Array};
use arrow::compute::take;
use datafusion::common::{internal_datafusion_err, internal_err};
use datafusion::error::Result;

use super::contract::Contraction;
use super::dense::{DenseCall, DensePlan, Input};
use super::extremes::Extremes;
use super::label_call::LabelGroups;
use super::reduction::Reduction;
use super::stream::PartitionReducer;
use crate::exec::pruning::zones::{ReadExtent, worthwhile_zones};
use crate::exec::yield_budget::YieldBudget;
use crate::format::Zone;
use crate::grid::ChunkTask;
use crate::plan::TaskNumber;
use crate::reduce::{CellTest, GroupStats, GroupTable, GroupedChunk, Reducer, rows_per_group};

impl PartitionReducer {
    /// Adds the stored statistics of chunks that need no reading to `reducers`, and returns the tasks
    /// whose chunks must be read. A chunk counts as answered only if all variables are: then nothing of
    /// it is read.
    async fn unanswered(
        &self,
        dense: &DensePlan,
        reducers: &mut [Box<dyn Reducer>],
    ) -> Result<Vec<TaskNumber>> {
        let (plan, tasks) = (&self.part.plan, self.tasks());
        let chunks = ReadExtent::from_plan(plan);
        let mut zones = Vec::with_capacity(dense.variables.len());
        for value in &dense.variables {
            match worthwhile_zones(&self.reduction.array, *value, chunks).await {
                Some(of_value) => zones.push(of_value),
                // Every variable needs its zone maps.
                None => return Ok(tasks.collect()),
            }
        }
        let mut unanswered = Vec::new();
        for task_number in tasks {
            let task = plan.task(task_number);
            let known: Option<Vec<Zone>> =
                zones.iter().map(|zones| zones.zone(task.chunk_number)).collect();
            let chunk = self.chunk(&task);
            let answered = known.filter(|known| {
                reducers.iter().zip(known).all(|(reducer, zone)| reducer.is_answered(chunk, zone))
            });
            let Some(known) = answered else {
                unanswered.push(task_number);
                continue;
            };
            for (reducer, zone) in reducers.iter_mut().zip(&known) {
                if zone.null_count < task.cells() {
                    reducer.add_zone(chunk, zone);
                }
            }
            self.metrics.chunks_answered.add(1);
        }
        Ok(unanswered)
    }

    /// Returns the table to which cells are added.
    fn cell_groups(&self) -> &GroupTable {
        self.fine.as_ref().unwrap_or(&self.table)
    }

    /// Returns the chunk of `task` together with the table to which its cells are added.
    fn chunk<'a>(&'a self, task: &'a ChunkTask) -> GroupedChunk<'a> {
        let (table, grid) = (self.cell_groups(), self.reduction.array.grid());
        GroupedChunk::new(table, grid, task)
    }

    /// Aggregates with the kernels. Returns the columns of the aggregates, and the places of the groups;
    /// `None` if they are all groups of the table.
    pub(super) async fn dense(
        &mut self,
        plan: &DensePlan,
    ) -> Result<(Vec<ArrayRef>, Option<Vec<usize>>)> {
        // A group is in the result if it has a row. With a predicate, rows are the values that pass it, so a
        // member counts them. Without one, extents do, and if the whole selection is visited, no group of the
        // final result is without rows.
        let is_whole = self.part.plan.is_selection() && self.reduction.keys.plane.is_none();
        let every_group_has_rows = plan.rows.is_none() && is_whole;
        let needs_rows = plan.rows.is_none() && (plan.counts_rows() || !every_group_has_rows);
        let part = &self.part;
        let rows = match needs_rows {
            true => rows_per_group(self.cell_groups(), &part.plan, part.partition),
            false => vec![],
        };
        let stats = self.fold(plan).await?;
        let (columns, rows) = match (&plan.refinement, &self.fine) {
            (Some(refinement), Some(fine)) => {
                let weighed = Contraction::new(refinement, fine, &self.table, rows, stats);
                let mut columns = Vec::new();
                for call in &plan.calls {
                    columns.extend(match self.of_labels(call)? {
                        Some(of_labels) => of_labels,
                        None => weighed.columns(call, self.reduction.whole)?,
                    });
                }
                (columns, weighed.rows(plan.rows))
            }
            _ => self.columns(plan, stats, rows)?,
        };
        if self.reduction.keys.columns.is_empty() || every_group_has_rows {
            return Ok((columns, None));
        }
        // Leaves out the groups without rows.
        let places: Vec<usize> = (0..self.table.len()).filter(|&place| rows[place] > 0).collect();
        let at = UInt64Array::from_iter_values(places.iter().map(|&place| place as u64));
        let columns = columns.iter().map(|column| Ok(take(column, &at, None)?));
        Ok((columns.collect::<Result<_>>()?, Some(places)))
    }

    /// Returns the columns of a call that is computed of labels alone; `None` for other calls.
    fn of_labels(&self, call: &DenseCall) -> Result<Option<Vec<ArrayRef>>> {
        let Input::Labels(labels) = &call.input else { return Ok(None) };
        let Reduction { plan, keys, whole, .. } = self.reduction.as_ref();
        let groups = LabelGroups {
            table: &self.table,
            axes: &keys.axes,
            selection: plan.selection().axes(),
            has_keys: !keys.columns.is_empty(),
        };
        // Accumulators hold the labels at most, each a few times.
        let bytes = 4 * labels.bytes();
        self.reservation.try_grow(bytes)?;
        let columns = labels.columns(&groups, *whole);
        self.reservation.shrink(bytes);
        columns.map(Some)
    }

    /// Returns the columns of calls whose statistics need no weights, and the rows of each group, if they are
    /// known.
    fn columns(
        &self,
        plan: &DensePlan,
        mut stats: Vec<GroupStats>,
        rows: Vec<u64>,
    ) -> Result<(Vec<ArrayRef>, Vec<u64>)> {
        let mut columns: Vec<ArrayRef> = Vec::new();
        let mut nothing = GroupStats::default();
        for (at, dense) in plan.calls.iter().enumerate() {
            if let Some(of_labels) = self.of_labels(dense)? {
                columns.extend(of_labels);
                continue;
            }
            let DenseCall { call, input, first, .. } = dense;
            let member = match input {
                Input::Member(member) => Some(*member),
                Input::Rows | Input::Labels(_) => None,
                Input::Linear(_) => return internal_err!("an argument without groups to weigh"),
            };
            let stats = member.map_or(&mut nothing, |member| &mut stats[member]);
            if let Some(first) = first {
                columns.extend(first.columns(stats, self.reduction.whole)?);
                continue;
            }
            if self.reduction.whole {
                // Averages are computed in the memory of the sums, if no later call needs these.
                let same = |later: &DenseCall| {
                    matches!(later.input, Input::Member(of) if Some(of) == member)
                        && later.call.needs_sums()
                };
                let last = !plan.calls[at + 1..].iter().any(same);
                columns.push(call.value(stats, &rows, last)?);
            } else {
                columns.extend(call.state(stats, &rows)?);
            }
        }
        let rows = match plan.rows {
            Some(member) => std::mem::take(&mut stats[member].counts),
            None => rows,
        };
        Ok((columns, rows))
    }

    /// Aggregates all chunks, and returns the statistics of each member of `plan`.
    async fn fold(&mut self, plan: &DensePlan) -> Result<Vec<GroupStats>> {
        let array = Arc::clone(&self.reduction.array);
        let groups = self.cell_groups().len();
        let of_value = |value: &usize| plan.reducer(&array, *value, groups);
        let reducers: Option<Vec<_>> = plan.variables.iter().map(of_value).collect();
        let (Some(mut reducers), Some(mut tests)) = (reducers, plan.cell_tests(&array)) else {
            return internal_err!("the dense kernels do not support a variable of the plan");
        };
        if reducers.is_empty() {
            if plan.is_of_labels() {
                self.check_labels().await?;
            }
            return Ok(vec![]);
        }
        let table_bytes = self.reservation.size();
        // Chunks answered by zone maps come first, so that extremes start with good values.
        let tasks = self.unanswered(plan, &mut reducers).await?;
        let mut extremes = match self.reduction.keys.columns.as_slice() {
            [] => Extremes::try_new(plan, &array)?,
            _ => None,
        };
        let mut reader = self.reader(tasks.clone().into_iter(), plan.read());
        if plan.members.iter().all(|it| it.member.takes_repeated()) {
            reader = reader.repeating_fill();
        }
        if let Some(extremes) = &mut extremes {
            extremes.update(&reducers)?;
            // Without keys and with extremes alone, a chunk that cannot improve any of them is skipped.
            reader = reader.filtered(extremes.filters());
            reader = reader.prioritized(extremes.priorities(), tasks);
        }
        /// The work on a chunk without its cells, as a number of cells.
        const CHUNK: u64 = 1 << 12;
        let mut yields = YieldBudget::default();
        while let Some(open) = reader.next(&self.metrics).await? {
            let timer = self.metrics.baseline.elapsed_compute().timer();
            let (mut cells, mut tested) = (0, Vec::with_capacity(tests.len()));
            for (test, (value, _)) in tests.iter_mut().zip(&plan.tests) {
                let of = open.tile(*value)?;
                tested.push(test.of_tile(&of.tile, of.may_hold_nulls)?);
            }
            for (value, reducer) in plan.variables.iter().zip(&mut reducers) {
                let of = open.tile(*value)?;
                cells += match of.tile.is_repeated() {
                    true => open.task.cells().min(groups as u64),
                    false => of.tile.cells() as u64,
                };
                reducer.add(self.chunk(&open.task), &of.tile, of.may_hold_nulls, &tested)?;
            }
            drop(tested);
            if let Some(extremes) = &mut extremes {
                extremes.update(&reducers)?;
            }
            timer.done();
            let of_reducers: usize = reducers.iter().map(|reducer| reducer.scratch_bytes()).sum();
            let scratch = of_reducers + tests.iter().map(CellTest::scratch_bytes).sum::<usize>();
            // Converted tiles take memory that was not planned.
            self.reservation.try_resize(table_bytes + scratch)?;
            yields.spend((cells * plan.members.len() as u64).max(CHUNK)).await;
            reader.release(open)?;
        }
        finished(plan, reducers)
    }

    /// Reads nothing, and checks that the labels are still those of the store.
    async fn check_labels(&self) -> Result<()> {
        let mut reader = self.reader(std::iter::empty(), vec![]);
        match reader.next(&self.metrics).await? {
            Some(_) => internal_err!("a chunk that was not asked for"),
            None => Ok(()),
        }
    }
}

/// Returns the statistics of each member of `plan` from the reducers of its variables.
fn finished(plan: &DensePlan, reducers: Vec<Box<dyn Reducer>>) -> Result<Vec<GroupStats>> {
    // Members are in the order of the plan within each variable.
    let mut finished = HashMap::new();
    for (value, reducer) in plan.variables.iter().zip(reducers) {
        finished.insert(*value, reducer.finish()?.into_iter());
    }
    let stats = plan.members.iter().map(|member| {
        let of_value = finished.get_mut(&member.value).and_then(Iterator::next);
        of_value.ok_or_else(|| internal_datafusion_err!("a member is missing"))
    });
    stats.collect()
}
