//! Scans of sparse arrays as messages, and back.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;

use super::converters::{Decoder, Encoder};
use super::declarations::{Declarations, schema_message, schema_of};
use super::messages::{Merge, Node, Origin, SparseAnswer, SparseScan, Tile, Tiles};
use super::origins::origin_message;
use super::recipe::Recipe;
use super::tables;
use super::travelled_exec::with_nodes_made;
use crate::array::{Contents, SparseArray, TileNumber};
use crate::error::Error;
use crate::exec::sparse::{
    KnownTiles, MergeTask, PartitionTasks, RowFilter, SparseFilters, TileTask,
};
use crate::exec::{SparseAnswerExec, SparsePlan, SparseScanExec, TileCounts};

/// How to make a scan of a sparse array.
#[derive(Debug, Clone)]
pub(super) struct SparseScanRecipe {
    origin: Arc<Origin>,
    /// The schema of the table.
    table: SchemaRef,
    projection: Vec<usize>,
    plan: Arc<SparsePlan>,
}

impl SparseScanRecipe {
    /// Returns how to make a scan again.
    ///
    /// # Errors
    /// As [`origin_message`].
    pub(super) fn try_new(scan: &SparseScanExec) -> Result<Self> {
        let array = scan.array();
        let origin = scan.origin().map(Arc::as_ref);
        let (projection, _) = scan.pushed_down();
        Ok(Self {
            origin: Arc::new(origin_message(
                array.name(),
                origin,
                array.versions(),
                &Contents::default(),
            )?),
            table: Arc::clone(array.schema()),
            projection: projection.to_vec(),
            plan: Arc::clone(scan.plan()),
        })
    }

    /// Returns the recipe of a message.
    pub(super) fn from_message(message: SparseScan, decoder: Decoder<'_>) -> Result<Self> {
        let table = schema_of(Some(&message.table))?;
        let filter = |node: Option<&_>| {
            node.map(|node| RowFilter::new(decoder.expr(node, &table)?, &table)).transpose()
        };
        let filters = SparseFilters {
            dimensions: filter(message.dimensions.as_ref())?,
            negated: decoder.exprs(&message.negated, &table)?,
            values: filter(message.values.as_ref())?,
        };
        let partitions = message.partitions.iter();
        let plan = SparsePlan {
            partitions: partitions
                .map(|tiles| tasks_of(tiles, &table, decoder))
                .collect::<Result<_>>()?,
            filters,
            // A scan reads rectangles and statistics again if dynamic filters need them.
            known: Arc::new(KnownTiles::default()),
            counts: counts_of(&message.counts)?,
            cells: message.cells,
            is_exact: message.is_exact,
            limit: message.limit.map(|rows| rows as usize),
        };
        Ok(Self {
            projection: message.projection.iter().map(|column| *column as usize).collect(),
            origin: Arc::new(message.origin),
            table,
            plan: Arc::new(plan),
        })
    }

    /// Returns the tiles that are merged.
    fn merged(&self) -> impl Iterator<Item = &TileTask> {
        let merges = self.plan.partitions.iter().flat_map(|tasks| &tasks.merges);
        merges.flat_map(|merge| &merge.tiles)
    }

    /// Returns the fragments of the tiles that are merged, ascending.
    fn merged_fragments(&self) -> Vec<usize> {
        let fragments: BTreeSet<usize> = self.merged().map(|task| task.tile.fragment).collect();
        fragments.into_iter().collect()
    }

    /// Fails unless the array has the columns and the tiles of the plan.
    fn check(&self, array: &SparseArray) -> Result<()> {
        let fragments = array.source().fragments();
        let alone = self.plan.partitions.iter().flat_map(|tasks| &tasks.tiles);
        let mut tiles = self.merged().chain(alone);
        let exists = |task: &TileTask| {
            fragments.get(task.tile.fragment).is_some_and(|it| task.tile.tile < it.tiles)
        };
        match array.schema() == &self.table && tiles.all(exists) {
            true => Ok(()),
            false => {
                let message = "it was made for an array with other columns or tiles";
                Err(Error::corrupt_region("plan", message).into())
            }
        }
    }
}

#[async_trait]
impl Recipe for SparseScanRecipe {
    fn message(&self, encoder: Encoder<'_>) -> Result<Node> {
        let plan = &self.plan;
        let predicate = |filter: &Option<RowFilter>| {
            filter.as_ref().map(|filter| encoder.expr(&filter.predicate)).transpose()
        };
        Ok(Node::SparseScan(SparseScan {
            origin: Origin::clone(&self.origin),
            table: schema_message(&self.table)?,
            projection: self.projection.iter().map(|column| *column as u64).collect(),
            partitions: plan
                .partitions
                .iter()
                .map(|tasks| tiles_message(tasks, encoder))
                .collect::<Result<_>>()?,
            dimensions: predicate(&plan.filters.dimensions)?,
            negated: encoder.exprs(&plan.filters.negated)?,
            values: predicate(&plan.filters.values)?,
            counts: counts_message(plan.counts).to_vec(),
            cells: plan.cells,
            is_exact: plan.is_exact,
            limit: plan.limit.map(|rows| rows as u64),
        }))
    }

    async fn make(
        &self,
        declared: &Declarations,
        context: &Arc<TaskContext>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let table = tables::open(&self.origin, context).await?;
        let Some(table) = table.as_sparse() else {
            let message = "it was made for a sparse array, and the array is dense";
            return Err(Error::corrupt_region("plan", message).into());
        };
        let array = table.array();
        self.check(array)?;
        let source = array.source();
        let mut known =
            KnownTiles { rectangles: vec![None; source.fragments().len()], values: vec![] };
        // Merging compares tiles by their rectangles, which planning has read where the plan was made.
        let merged = self.merged_fragments();
        for (&fragment, bounds) in merged.iter().zip(source.tile_bounds(&merged).await?) {
            known.rectangles[fragment] = Some(bounds);
        }
        let plan = SparsePlan { known: Arc::new(known), ..SparsePlan::clone(&self.plan) };
        let scan = SparseScanExec::try_new(Arc::clone(array), plan, self.projection.clone())?;
        Ok(Arc::new(scan.with_filters(declared.frame.filters().to_vec())))
    }
}

/// How to answer an aggregation from statistics.
#[derive(Debug, Clone)]
pub(super) struct AnswerRecipe {
    /// The first stage of the aggregation. Its scan may be one that travelled.
    input: Arc<dyn ExecutionPlan>,
}

impl AnswerRecipe {
    /// Returns how to make the operator again.
    pub(super) fn new(answer: &SparseAnswerExec) -> Self {
        Self { input: Arc::clone(answer.input()) }
    }

    /// Returns how to make the operator over its inputs, which travelled on their own.
    ///
    /// # Errors
    /// `Corrupt` unless there is one input.
    pub(super) fn over(inputs: &[Arc<dyn ExecutionPlan>]) -> Result<Self> {
        match inputs {
            [input] => Ok(Self { input: Arc::clone(input) }),
            _ => Err(Error::corrupt_region("plan", "an operator of one input has others").into()),
        }
    }
}

#[async_trait]
impl Recipe for AnswerRecipe {
    fn message(&self, _: Encoder<'_>) -> Result<Node> {
        Ok(Node::SparseAnswer(SparseAnswer {}))
    }

    async fn make(
        &self,
        _: &Declarations,
        context: &Arc<TaskContext>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = with_nodes_made(Arc::clone(&self.input), context).await?;
        let answer = SparseAnswerExec::over(&input).ok_or_else(|| {
            Error::corrupt_region("plan", "statistics cannot answer the aggregation")
        })?;
        Ok(Arc::new(answer))
    }

    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_inputs(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> Option<Arc<dyn Recipe>> {
        Self::over(inputs).ok().map(|it| Arc::new(it) as _)
    }
}

fn tile_message(task: &TileTask) -> Tile {
    let TileTask { tile, is_inside, is_cut } = *task;
    Tile { fragment: tile.fragment as u64, tile: tile.tile, is_inside, is_cut }
}

fn task_of(tile: &Tile) -> TileTask {
    let number = TileNumber { fragment: tile.fragment as usize, tile: tile.tile };
    TileTask { tile: number, is_inside: tile.is_inside, is_cut: tile.is_cut }
}

fn tiles_message(tasks: &PartitionTasks, encoder: Encoder<'_>) -> Result<Tiles> {
    let merge = |merge: &MergeTask| {
        let range = merge.range.as_ref().map(|range| encoder.expr(&range.predicate)).transpose()?;
        Ok(Merge { tiles: merge.tiles.iter().map(tile_message).collect(), range })
    };
    Ok(Tiles {
        merges: tasks.merges.iter().map(merge).collect::<Result<_>>()?,
        tiles: tasks.tiles.iter().map(tile_message).collect(),
    })
}

fn tasks_of(tiles: &Tiles, table: &SchemaRef, decoder: Decoder<'_>) -> Result<PartitionTasks> {
    let merge = |merge: &Merge| {
        let range = merge.range.as_ref();
        let range = range.map(|range| RowFilter::new(decoder.expr(range, table)?, table));
        let tiles = merge.tiles.iter().map(task_of).collect();
        Ok(MergeTask { tiles, range: range.transpose()? })
    };
    Ok(PartitionTasks {
        merges: tiles.merges.iter().map(merge).collect::<Result<_>>()?,
        tiles: tiles.tiles.iter().map(task_of).collect(),
    })
}

fn counts_message(counts: TileCounts) -> [u64; 9] {
    let TileCounts {
        fragments,
        fragments_read,
        tiles,
        outside_domain,
        outside_rectangle,
        outside_statistics,
        merged,
        elsewhere,
        is_reported_elsewhere,
    } = counts;
    [
        fragments,
        fragments_read,
        tiles,
        outside_domain,
        outside_rectangle,
        outside_statistics,
        merged,
        elsewhere,
        u64::from(is_reported_elsewhere),
    ]
}

fn counts_of(counts: &[u64]) -> Result<TileCounts> {
    let &[
        fragments,
        fragments_read,
        tiles,
        outside_domain,
        outside_rectangle,
        outside_statistics,
        merged,
        elsewhere,
        is_reported_elsewhere,
    ] = counts
    else {
        return Err(Error::corrupt_region("plan", "other counts of tiles").into());
    };
    Ok(TileCounts {
        fragments,
        fragments_read,
        tiles,
        outside_domain,
        outside_rectangle,
        outside_statistics,
        merged,
        elsewhere,
        is_reported_elsewhere: is_reported_elsewhere != 0,
    })
}
