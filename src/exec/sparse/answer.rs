//! [`SparseAnswerExec`]: aggregates whose result the statistics of some tiles give.
//!
//! ```text
//!   SELECT count(*), min(v), sum(v) … WHERE x < 50
//!
//!   tile   x         answer
//!   0      1..20     statistics: 100, 3, 4711      a row of states, as the first stage makes them
//!   1      21..49    statistics: 100, 1, 5022
//!   2      45..60    read: some of its cells are outside
//! ```
//!
//! Statistics describe all cells of a tile. They answer if the query sees all of them: the tile lies inside
//! the selected coordinates, shares none with other tiles, and no deletion, time window or filter over
//! variables hides a cell.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, UInt64Array};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column as PhysicalColumn, Literal};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{Count, MetricBuilder};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::stream::{self, StreamExt, TryStreamExt};

use super::plan::TileTask;
use super::planning::value_zones;
use super::scan::SparseScanExec;
use crate::array::{SparseArray, TileNumber, ValueColumn};
use crate::error::Error;
use crate::exec::matching::known_aggregate;
use crate::exec::operator::{Frame, Operator, operator_methods};
use crate::format::{Sum, Zone, ZoneBound};

/// An operator that returns states of aggregates: those of tiles that statistics answer, and those of its
/// input, the first stage of the aggregation, for all other tiles.
#[derive(Debug, Clone)]
pub struct SparseAnswerExec {
    input: Arc<dyn ExecutionPlan>,
    measures: Vec<Measure>,
    frame: Frame,
}

/// An aggregate that statistics can answer, over a column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    Cells,
    Values(usize),
    Least(usize),
    Greatest(usize),
    Sum(usize),
}

impl Measure {
    /// Returns the measures that are the states of an aggregate over output columns of `scan`; `None` if
    /// statistics cannot answer it.
    fn for_aggregate(
        aggregate: &AggregateFunctionExpr,
        scan: &SparseScanExec,
    ) -> Option<Vec<Self>> {
        let is_plain = !aggregate.is_distinct()
            && aggregate.order_bys().is_empty()
            && !aggregate.ignore_nulls();
        let [argument] = &aggregate.expressions()[..] else { return None };
        let name = known_aggregate(aggregate.fun())?;
        if let Some(literal) = argument.downcast_ref::<Literal>() {
            let counts = name == "count" && !literal.value().is_null();
            return (is_plain && counts).then(|| vec![Self::Cells]);
        }
        // A sum of narrow numbers is one of wider ones, and stored sums are wide.
        let cast = argument.downcast_ref::<CastExpr>();
        let widens = cast.is_some_and(|cast| is_wide(cast.cast_type()));
        let inner = cast.map_or(argument, |cast| cast.expr());
        let column = inner.downcast_ref::<PhysicalColumn>()?;
        let column = scan.table_column(column.index())?;
        let is_dimension = column < scan.array().rank();
        let is_number =
            |column: &ValueColumn| column.as_number().is_some() && column.is_as_stored();
        let is_stored = scan.array().column(column).is_some_and(|it| it.is_as_stored());
        let is_summed = scan.array().column(column).is_some_and(is_number);
        match name {
            _ if !is_plain || (cast.is_some() && !widens) => None,
            "count" if is_dimension => Some(vec![Self::Cells]),
            _ if is_dimension || !is_stored => None,
            "count" => Some(vec![Self::Values(column)]),
            "sum" if is_summed => Some(vec![Self::Sum(column)]),
            "avg" if is_summed => Some(vec![Self::Values(column), Self::Sum(column)]),
            _ if cast.is_some() => None,
            "min" => Some(vec![Self::Least(column)]),
            "max" => Some(vec![Self::Greatest(column)]),
            _ => None,
        }
    }

    /// Returns the variable whose statistics the measure needs.
    fn column(self) -> Option<usize> {
        match self {
            Self::Cells => None,
            Self::Values(column)
            | Self::Least(column)
            | Self::Greatest(column)
            | Self::Sum(column) => Some(column),
        }
    }

    /// Whether the statistics of a tile give the result.
    fn is_in(self, zone: Option<&Zone>) -> bool {
        match (self, zone) {
            (Self::Cells, _) => true,
            (_, None) => false,
            (Self::Sum(_), Some(zone)) => zone.bounds.is_none() || zone.sum.is_some(),
            (_, Some(_)) => true,
        }
    }
}

/// A tile that statistics answer: its number of cells and, per measure, the statistics that it needs.
type AnsweredTile = (u64, Vec<Option<Zone>>);

impl SparseAnswerExec {
    /// Makes an operator above the first stage of an aggregation. `None` if it has groups, is not over a sparse
    /// scan, or if statistics cannot answer it.
    pub fn over(partial: &Arc<dyn ExecutionPlan>) -> Option<Self> {
        let aggregate = partial.downcast_ref::<AggregateExec>()?;
        let scan = aggregate.input().downcast_ref::<SparseScanExec>()?;
        let has_groups = !aggregate.group_expr().is_empty() || aggregate.aggr_expr().is_empty();
        let has_filters = aggregate.filter_expr().iter().any(Option::is_some);
        let is_whole = scan.plan().filters.values.is_none() && scan.plan().limit.is_none();
        if has_groups || has_filters || !is_whole || !scan.has_answers() {
            return None;
        }
        let measures = aggregate.aggr_expr().iter().map(|it| Measure::for_aggregate(it, scan));
        let measures: Vec<Measure> = measures.collect::<Option<Vec<_>>>()?.concat();
        let fields = partial.schema();
        let fits = fields.fields().len() == measures.len()
            && measures
                .iter()
                .zip(fields.fields())
                .all(|(measure, field)| measure.fits(scan.array(), field.data_type()));
        let frame = Frame::new(Arc::clone(partial.properties()));
        fits.then(|| Self { input: Arc::clone(partial), measures, frame })
    }

    /// Returns the first stage of the aggregation.
    pub fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    /// Returns the scan below the first stage; `None` if other operators were put between.
    fn scan(&self) -> Option<(&AggregateExec, &SparseScanExec)> {
        let aggregate = self.input.downcast_ref::<AggregateExec>()?;
        Some((aggregate, aggregate.input().downcast_ref::<SparseScanExec>()?))
    }

    /// Returns the states of the tiles that statistics answer, followed by those of the other tiles.
    async fn states(
        self,
        partition: usize,
        context: Arc<TaskContext>,
        tiles_answered: Count,
    ) -> Result<SendableRecordBatchStream> {
        let schema = self.input.schema();
        let Some((aggregate, scan)) = self.scan() else {
            return self.input.execute(partition, context);
        };
        let (answered, left) = self.divide(scan, partition).await;
        if answered.is_empty() {
            return self.input.execute(partition, context);
        }
        tiles_answered.add(answered.len());
        let states = self.batch(scan.array(), &answered, &schema)?;
        let scan = Arc::new(scan.with_tiles(partition, left));
        let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        let rest = Arc::new(aggregate.clone()).replace_children(vec![scan], recompute)?;
        let rest = rest.execute(partition, context)?;
        let all = stream::once(async move { Ok(states) }).chain(rest);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, all)))
    }

    /// Divides the tiles of a partition into those that statistics answer and the others.
    async fn divide(
        &self,
        scan: &SparseScanExec,
        partition: usize,
    ) -> (Vec<AnsweredTile>, Vec<TileTask>) {
        let tasks = scan.plan().partitions.get(partition).map_or(&[][..], |it| &it.tiles);
        let fragments = scan.array().source().fragments();
        let may_answer = |task: &TileTask| {
            let fragment = &fragments[task.tile.fragment];
            task.is_inside && !fragment.may_be_deleted && !fragment.may_be_outside
        };
        let tiles: Vec<TileNumber> =
            tasks.iter().filter(|task| may_answer(task)).map(|task| task.tile).collect();
        let mut columns: Vec<usize> = self.measures.iter().filter_map(|it| it.column()).collect();
        columns.sort_unstable();
        columns.dedup();
        let known = value_zones(scan.array(), &columns, &tiles).await;
        let (mut answered, mut left) = (vec![], vec![]);
        for task in tasks {
            let TileNumber { fragment, tile } = task.tile;
            let zone = |measure: &Measure| {
                let of = known.iter().find(|it| Some(it.column) == measure.column())?;
                of.zones[fragment].as_ref()?.zone(tile)
            };
            let zones: Vec<Option<Zone>> = self.measures.iter().map(zone).collect();
            let is_answered = may_answer(task)
                && self.measures.iter().zip(&zones).all(|(it, zone)| it.is_in(zone.as_ref()));
            match is_answered {
                true => answered.push((fragments[fragment].cells_of(tile), zones)),
                false => left.push(*task),
            }
        }
        (answered, left)
    }

    /// Returns a row of states per answered tile.
    fn batch(
        &self,
        array: &SparseArray,
        answered: &[AnsweredTile],
        schema: &SchemaRef,
    ) -> Result<RecordBatch> {
        let columns = self.measures.iter().enumerate().map(|(at, measure)| {
            let zones = answered.iter().map(|(cells, zones)| (*cells, zones[at].as_ref()));
            measure.states(array, zones, schema.field(at).data_type())
        });
        let columns = columns.collect::<crate::Result<Vec<ArrayRef>>>()?;
        Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
    }
}

impl Measure {
    /// Whether the state of the measure has this type.
    fn fits(self, array: &SparseArray, data_type: &DataType) -> bool {
        let column = self.column().and_then(|column| array.column(column));
        match self {
            Self::Cells => *data_type == DataType::Int64,
            Self::Values(_) => matches!(data_type, DataType::Int64 | DataType::UInt64),
            Self::Least(_) | Self::Greatest(_) => {
                column.is_some_and(|column| column.data_type() == *data_type)
            }
            // Stored sums of floats are doubles, and those of whole numbers keep their sign.
            Self::Sum(_) => column.and_then(|column| column.as_number()).is_some_and(|number| {
                let element = number.element();
                match data_type {
                    DataType::Int64 => element.is_integer() && !element.is_unsigned(),
                    DataType::UInt64 => element.is_unsigned(),
                    data_type => *data_type == DataType::Float64,
                }
            }),
        }
    }

    /// Returns the states of some tiles, of which each has a number of cells and statistics.
    fn states<'a>(
        self,
        array: &SparseArray,
        tiles: impl Iterator<Item = (u64, Option<&'a Zone>)>,
        data_type: &DataType,
    ) -> crate::Result<ArrayRef> {
        Ok(match self {
            Self::Cells => {
                Arc::new(tiles.map(|(cells, _)| Some(cells as i64)).collect::<Int64Array>())
            }
            Self::Values(_) => {
                let values = tiles.map(|(cells, zone)| Some(cells - zone?.null_count));
                counts(values, data_type)
            }
            Self::Least(column) => bounds(array, column, tiles, |it| it.0)?,
            Self::Greatest(column) => bounds(array, column, tiles, |it| it.1)?,
            Self::Sum(_) => sums(tiles.map(|(_, zone)| zone.and_then(|zone| zone.sum)), data_type),
        })
    }
}

/// Returns the least or the greatest values of some tiles; NULL for tiles without values.
fn bounds<'a>(
    array: &SparseArray,
    column: usize,
    tiles: impl Iterator<Item = (u64, Option<&'a Zone>)>,
    end: impl Fn((ZoneBound, ZoneBound)) -> ZoneBound,
) -> crate::Result<ArrayRef> {
    let column = array.column(column);
    let column = column.ok_or_else(|| Error::internal("statistics of no column"))?;
    column.bounds(tiles.map(|(_, zone)| zone?.bounds.map(&end)))
}

/// Returns counts as an array of the type of their state.
fn counts(counts: impl Iterator<Item = Option<u64>>, data_type: &DataType) -> ArrayRef {
    match data_type {
        DataType::UInt64 => Arc::new(counts.collect::<UInt64Array>()),
        _ => Arc::new(counts.map(|count| count.map(|it| it as i64)).collect::<Int64Array>()),
    }
}

/// Returns sums as an array of the type of their state.
fn sums(sums: impl Iterator<Item = Option<Sum>>, data_type: &DataType) -> ArrayRef {
    match data_type {
        DataType::Int64 => Arc::new(
            sums.map(|sum| match sum? {
                Sum::Signed(sum) => Some(sum),
                _ => None,
            })
            .collect::<Int64Array>(),
        ),
        DataType::UInt64 => Arc::new(
            sums.map(|sum| match sum? {
                Sum::Unsigned(sum) => Some(sum),
                _ => None,
            })
            .collect::<UInt64Array>(),
        ),
        _ => Arc::new(sums.map(|sum| sum.map(Sum::to_f64)).collect::<Float64Array>()),
    }
}

/// Whether sums have this type.
fn is_wide(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Int64 | DataType::UInt64 | DataType::Float64)
}

impl DisplayAs for SparseAnswerExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => writeln!(f, "statistics of tiles"),
            _ => write!(f, "SparseAnswerExec: by statistics of tiles"),
        }
    }
}

impl Operator for SparseAnswerExec {
    fn frame(&self) -> &Frame {
        &self.frame
    }

    fn with_frame(&self, frame: Frame) -> Self {
        Self { frame, ..self.clone() }
    }

    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn over(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> Result<Self> {
        let [input] = inputs else { return internal_err!("an answer without a first stage") };
        let frame = Frame::new(Arc::clone(input.properties()));
        Ok(Self { input: Arc::clone(input), frame, ..self.clone() })
    }

    fn stream(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let answered =
            MetricBuilder::new(self.frame.metrics()).counter("tiles_answered", partition);
        let states = self.clone().states(partition, context, answered);
        let stream = stream::once(states).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.input.schema(), Box::pin(stream))))
    }
}

impl ExecutionPlan for SparseAnswerExec {
    operator_methods!();
}
