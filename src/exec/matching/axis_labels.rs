//! Keys over one axis as numbers: each key is evaluated once over the labels of its axis.
//!
//! If the key is the dimension itself and no label repeats, each label is a group. Otherwise DataFusion's `GroupValues`
//! determine equality (NULL, zeros, collation), once per run of equal keys. Some expressions follow the order of their
//! labels, such as `date_trunc` of ascending times. They are evaluated on every 64th label, and on all labels between two
//! of these with different results.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::compute::{partition, take};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result;
use datafusion::logical_expr::EmitTo;
use datafusion::logical_expr::sort_properties::SortProperties;
use datafusion::physical_expr::equivalence::EquivalenceProperties;
use datafusion::physical_expr::expressions::{CastExpr, Column as PhysicalColumn};
use datafusion::physical_expr::{PhysicalExprRef, PhysicalSortExpr};
use datafusion::physical_plan::aggregates::group_values::new_group_values;
use datafusion::physical_plan::aggregates::order::GroupOrdering;

use super::axis_keys::Over;
use crate::array::{ColumnSource, LabelOrder, Labels};
use crate::exec::GridScanExec;
use crate::exec::columns::{columns_of, over_columns};
use crate::exec::coordinates::known_cells;
use crate::reduce::AxisGroups;

/// The greatest number of labels to evaluate per axis. Longer axes are grouped row by row, so that
/// planning stays short.
const MAX_LABELS: u64 = 1 << 24;

/// Returns the group numbers of the selected labels of `axis`, and per expression its values by group number.
/// Groups have equal values of all `exprs`. `None` if the axis is too long, or an expression fails on a label.
pub(in crate::exec) fn number_axis(
    scan: &GridScanExec,
    axis: usize,
    exprs: &[PhysicalExprRef],
) -> Option<(AxisGroups, Vec<ArrayRef>)> {
    AxisLabels::new(scan, axis, exprs).ok()??.number().ok()
}

/// Returns the axis that a column of the scan is along, and its selected labels. `None` if it is along none or several, or the axis is too
/// long.
pub(in crate::exec) fn selected_labels(
    scan: &GridScanExec,
    column: usize,
) -> Option<(usize, ArrayRef)> {
    let name = scan.schema_ref().field(column).name();
    let expr: PhysicalExprRef = Arc::new(PhysicalColumn::new(name, column));
    let Over::Axis(axis) = Over::new(&expr, scan) else { return None };
    let labels = AxisLabels::new(scan, axis, &[expr]).ok()??;
    Some((axis, Arc::clone(labels.columns.first()?)))
}

/// Returns the values of `exprs` for each selected label of `axis`. `None` as [`number_axis`].
pub(in crate::exec) fn values_of_labels(
    scan: &GridScanExec,
    axis: usize,
    exprs: &[PhysicalExprRef],
) -> Option<Vec<ArrayRef>> {
    AxisLabels::new(scan, axis, exprs).ok()??.evaluate(None).ok()
}

/// Whether zeros of both signs may be one group. They are two partitions of a window, and differ in an order.
pub(in crate::exec) fn has_merged_zeros(groups: &AxisGroups, values: &[ArrayRef]) -> bool {
    *groups != AxisGroups::Each && values.iter().any(|it| it.data_type().is_floating())
}

/// Returns the labels that a column shows along an axis: those of a dimension, or the cells of a coordinate.
fn labels_of(scan: &GridScanExec, column: ColumnSource, axis: usize) -> Result<Option<Labels>> {
    let array = scan.array();
    let ColumnSource::Value(value) = column else { return Ok(array.labels_of(column).cloned()) };
    let cells = known_cells(array, value, scan.plan().selection())?;
    if array.axes_of(value).is_empty() {
        // One value for all labels.
        let first = UInt64Array::from(vec![0; array.grid().shape()[axis] as usize]);
        return Ok(Some(Labels::from_array(take(&cells, &first, None)?)?));
    }
    Ok(Some(Labels::from_array(cells)?))
}

/// The selected labels and coordinates of an axis, and the keys over them.
struct AxisLabels {
    /// The number of selected labels.
    len: u64,
    /// The fields of `columns`.
    schema: SchemaRef,
    /// The columns that the keys use, such as labels and indices of the axis, over the selected indices.
    columns: Vec<ArrayRef>,
    /// The order of each column along the whole axis.
    orders: Vec<LabelOrder>,
    /// The key expressions, over `columns`.
    keys: Vec<PhysicalExprRef>,
}

impl AxisLabels {
    /// Reads the labels that `keys` use; `None` if there are too many.
    fn new(scan: &GridScanExec, axis: usize, keys: &[PhysicalExprRef]) -> Result<Option<Self>> {
        let selection = &scan.plan().selection().axes()[axis];
        if selection.count() > MAX_LABELS {
            return Ok(None);
        }
        let needed = columns_of(keys);
        let scanned: Vec<ColumnSource> = scan.columns();
        let (mut fields, mut columns, mut orders) = (vec![], vec![], vec![]);
        for &at in &needed {
            let Some(labels) = labels_of(scan, scanned[at], axis)? else { return Ok(None) };
            fields.push(Arc::clone(&scan.schema_ref().fields()[at]));
            columns.push(labels.select(selection, 0)?);
            orders.push(labels.order());
        }
        let keys = keys.iter().map(|key| over_columns(key, &needed)).collect::<Result<_>>()?;
        let schema = Arc::new(Schema::new(fields));
        Ok(Some(Self { len: selection.count(), schema, columns, orders, keys }))
    }

    /// Returns the group numbers of the labels, and per key its values by group number. Groups are
    /// numbered in the order in which they first occur along the axis.
    fn number(&self) -> Result<(AxisGroups, Vec<ArrayRef>)> {
        if self.keys.iter().any(|key| self.is_distinct(key)) {
            return Ok((AxisGroups::Each, self.evaluate(None)?));
        }
        // Equal keys mostly follow one another, so runs are grouped, not labels.
        let (starts, keys) = self.runs()?;
        let field = |key: &ArrayRef| Field::new("", key.data_type().clone(), true);
        let schema = Arc::new(Schema::new(keys.iter().map(field).collect::<Vec<_>>()));
        // DataFusion's own grouping decides which keys are equal, also for NULL and signed zeros.
        let mut distinct = new_group_values(schema, &GroupOrdering::None)?;
        let mut group_of_run = Vec::new();
        distinct.intern(&keys, &mut group_of_run)?;
        let mut numbers = Vec::with_capacity(self.len as usize);
        for (run, (&start, &group)) in starts.iter().zip(&group_of_run).enumerate() {
            // Every label of a run has the number of the run.
            let end = starts.get(run + 1).copied().unwrap_or(self.len);
            numbers.resize(numbers.len() + (end - start) as usize, group as u32);
        }
        let groups = distinct.len() as u32;
        let values = distinct.emit(EmitTo::All)?;
        if u64::from(groups) == self.len {
            return Ok((AxisGroups::Each, values));
        }
        Ok((AxisGroups::Numbered { numbers: numbers.into(), groups }, values))
    }

    /// Whether `key` is a column of labels that never repeat. Floats do not qualify, because zeros of both
    /// signs are one group.
    fn is_distinct(&self, key: &PhysicalExprRef) -> bool {
        key.downcast_ref::<PhysicalColumn>().is_some_and(|column| {
            self.orders[column.index()] != LabelOrder::Unsorted
                && !self.columns[column.index()].data_type().is_floating()
        })
    }

    /// Returns where each run of equal keys starts, and the keys of each run.
    fn runs(&self) -> Result<(Vec<u64>, Vec<ArrayRef>)> {
        let candidates = if self.is_monotonic() { self.possible_starts()? } else { None };
        let keys = self.evaluate(candidates.as_ref())?;
        let len = candidates.as_ref().map_or(self.len, |at| at.len() as u64);
        if len == 0 {
            return Ok((vec![], keys));
        }
        // A run of equal keys begins at a candidate, so runs among the candidates are the runs of all
        // labels.
        let runs: Vec<u64> =
            partition(&keys)?.ranges().iter().map(|range| range.start as u64).collect();
        let at = UInt64Array::from(runs.clone());
        let keys = keys.iter().map(|key| Ok(take(key, &at, None)?)).collect::<Result<_>>()?;
        let starts = match candidates {
            Some(candidates) => runs.iter().map(|&at| candidates.value(at as usize)).collect(),
            None => runs,
        };
        Ok((starts, keys))
    }

    /// Whether the labels are sorted and every key follows their order. All labels between two with the
    /// same key then have that key too.
    fn is_monotonic(&self) -> bool {
        let mut orderings = Vec::new();
        for (at, (field, order)) in self.schema.fields().iter().zip(&self.orders).enumerate() {
            let descending = match order {
                LabelOrder::Ascending => false,
                LabelOrder::Descending => true,
                LabelOrder::Unsorted => return false,
            };
            let options = arrow::compute::SortOptions { descending, nulls_first: false };
            let column = Arc::new(PhysicalColumn::new(field.name(), at));
            orderings.push([PhysicalSortExpr::new(column, options)]);
        }
        let known = EquivalenceProperties::new_with_orderings(Arc::clone(&self.schema), orderings);
        self.keys.iter().all(|key| {
            let order = known.get_expr_properties(Arc::clone(key)).sort_properties;
            order != SortProperties::Unordered && self.casts_keep_order(key)
        })
    }

    /// Whether all casts in `key` keep the order. DataFusion assumes this of every cast between temporal
    /// types. But the time of day restarts each day, and local time is set back each autumn.
    fn casts_keep_order(&self, key: &PhysicalExprRef) -> bool {
        let is_linear = |data_type: &DataType| {
            data_type.is_numeric()
                || matches!(
                    data_type,
                    DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64
                )
        };
        let goes_round = key.exists(|node| {
            let Some(cast) = node.downcast_ref::<CastExpr>() else { return Ok(false) };
            let from = cast.expr().data_type(&self.schema)?;
            Ok(!is_linear(&from) || !is_linear(cast.cast_type()))
        });
        matches!(goes_round, Ok(false))
    }

    /// Returns positions that include the start of every run of monotonic keys: all positions between two
    /// successive samples whose keys differ. `None` if the axis is short.
    ///
    /// A year of hours by month has 8760 labels. 137 samples show 12 months, so at most 12 × 64 more
    /// positions are evaluated.
    fn possible_starts(&self) -> Result<Option<UInt64Array>> {
        const STEP: u64 = 64;
        if self.len < 16 * STEP {
            return Ok(None);
        }
        let samples = UInt64Array::from_iter_values((0..self.len).step_by(STEP as usize));
        let keys = self.evaluate(Some(&samples))?;
        let mut starts: Vec<u64> = vec![0];
        for run in partition(&keys)?.ranges() {
            // The next run starts after this sample, and no later than at the next one.
            let last = samples.value(run.end - 1);
            starts.extend(last + 1..(last + STEP + 1).min(self.len));
        }
        Ok(Some(UInt64Array::from(starts)))
    }

    /// Evaluates the keys at the positions `at`, or at all positions.
    fn evaluate(&self, at: Option<&UInt64Array>) -> Result<Vec<ArrayRef>> {
        let columns: Vec<ArrayRef> = match at {
            None => self.columns.clone(),
            Some(at) => self
                .columns
                .iter()
                .map(|column| Ok(take(column, at, None)?))
                .collect::<Result<_>>()?,
        };
        let rows = at.map_or(self.len as usize, Array::len);
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        self.keys.iter().map(|key| key.evaluate(&batch)?.into_array(rows)).collect()
    }
}
