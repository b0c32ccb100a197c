//! Group keys as numbers: each key expression is evaluated once over the labels of its axis.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::compute::{partition, take};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result;
use datafusion::logical_expr::EmitTo;
use datafusion::logical_expr::sort_properties::SortProperties;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_expr::equivalence::EquivalenceProperties;
use datafusion::physical_expr::expressions::{CastExpr, Column as PhysicalColumn};
use datafusion::physical_plan::aggregates::group_values::new_group_values;
use datafusion::physical_plan::aggregates::order::GroupOrdering;

use super::query::Query;
use crate::array::{Column, LabelOrder};
use crate::exec::columns::{Expr, columns_of, over_columns};
use crate::exec::{GridScanExec, to_datafusion};
use crate::reduce::AxisGroups;

/// Longer axes are grouped row by row: planning must stay short.
const MAX_LABELS: u64 = 1 << 24;

/// The keys of a query, numbered.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    /// Per axis of the array, the numbering of its groups over the scan's selection.
    pub(super) axes: Vec<AxisGroups>,
    /// In the order of the query's keys.
    pub(super) columns: Vec<KeyColumn>,
    /// How many groups there are at most: the product over the axes.
    pub(super) groups: u64,
}

/// The values of one key.
#[derive(Debug, Clone)]
pub(super) struct KeyColumn {
    /// The axis that the key is over.
    pub(super) axis: usize,
    /// One value per group number of that axis.
    pub(super) values: ArrayRef,
}

impl Keys {
    /// Numbers the keys of `query`, or `None` if one is not over a single dimension. Errors of the
    /// expressions are `None` too: over rows, they may never be evaluated.
    pub(super) fn number(query: &Query, scan: &GridScanExec) -> Option<Self> {
        let rank = scan.array().grid().rank();
        let columns = scan.columns();
        let mut of_axis: Vec<Vec<usize>> = vec![vec![]; rank];
        for (at, key) in query.keys.iter().enumerate() {
            let axes: Option<Vec<usize>> =
                columns_of([key]).iter().map(|&column| columns[column].axis()).collect();
            let mut axes = axes?;
            axes.dedup();
            match axes.as_slice() {
                [] => of_axis[0].push(at), // a constant
                [axis] => of_axis[*axis].push(at),
                _ => return None,
            }
        }
        let mut axes = vec![AxisGroups::One; rank];
        let mut values: Vec<Option<KeyColumn>> = vec![None; query.keys.len()];
        let mut groups: u64 = 1;
        for (axis, keys) in of_axis.iter().enumerate().filter(|(_, keys)| !keys.is_empty()) {
            let exprs: Vec<Expr> = keys.iter().map(|&key| Arc::clone(&query.keys[key])).collect();
            let labels = AxisLabels::new(scan, axis, &exprs).ok()??;
            let (numbered, columns) = labels.number().ok()?;
            groups = groups.checked_mul(numbered.count(labels.len))?;
            axes[axis] = numbered;
            for (&key, column) in keys.iter().zip(columns) {
                values[key] = Some(KeyColumn { axis, values: column });
            }
        }
        Some(Self { axes, columns: values.into_iter().collect::<Option<_>>()?, groups })
    }
}

/// The selected labels of an axis and the keys over them.
struct AxisLabels {
    len: u64,
    schema: SchemaRef,
    columns: Vec<ArrayRef>,
    orders: Vec<LabelOrder>,
    /// Over `columns`.
    keys: Vec<Expr>,
}

impl AxisLabels {
    fn new(scan: &GridScanExec, axis: usize, keys: &[Expr]) -> Result<Option<Self>> {
        let array = scan.array();
        let selection = &scan.plan().selection().axes()[axis];
        if selection.count() > MAX_LABELS {
            return Ok(None);
        }
        let needed = columns_of(keys);
        let scanned: Vec<Column> = scan.columns();
        let (mut fields, mut columns, mut orders) = (vec![], vec![], vec![]);
        for &at in &needed {
            let Some(labels) = array.labels_of(scanned[at]) else { return Ok(None) };
            fields.push(Arc::clone(&scan.schema_ref().fields()[at]));
            columns.push(labels.select(selection, 0).map_err(to_datafusion)?);
            orders.push(labels.order());
        }
        let keys = keys.iter().map(|key| over_columns(key, &needed)).collect::<Result<_>>()?;
        let schema = Arc::new(Schema::new(fields));
        Ok(Some(Self { len: selection.count(), schema, columns, orders, keys }))
    }

    /// The numbering, and per key its values by group number.
    fn number(&self) -> Result<(AxisGroups, Vec<ArrayRef>)> {
        if self.keys.iter().any(|key| self.is_distinct(key)) {
            return Ok((AxisGroups::Each, self.evaluate(None)?));
        }
        let (starts, keys) = self.runs()?;
        let field = |key: &ArrayRef| Field::new("", key.data_type().clone(), true);
        let schema = Arc::new(Schema::new(keys.iter().map(field).collect::<Vec<_>>()));
        // What DataFusion's own aggregation does with keys: equality, NULL, zeros and all.
        let mut distinct = new_group_values(schema, &GroupOrdering::None)?;
        let mut group_of_run = Vec::new();
        distinct.intern(&keys, &mut group_of_run)?;
        let mut numbers = Vec::with_capacity(self.len as usize);
        for (run, (&start, &group)) in starts.iter().zip(&group_of_run).enumerate() {
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

    /// Whether `key` is a column of labels that never repeat. Floats may be zeros of either sign,
    /// which are one group.
    fn is_distinct(&self, key: &Expr) -> bool {
        key.downcast_ref::<PhysicalColumn>().is_some_and(|column| {
            self.orders[column.index()] != LabelOrder::Unsorted
                && !self.columns[column.index()].data_type().is_floating()
        })
    }

    /// Where each run of equal keys starts, and the keys there.
    fn runs(&self) -> Result<(Vec<u64>, Vec<ArrayRef>)> {
        let candidates = if self.is_monotonic() { self.possible_starts()? } else { None };
        let keys = self.evaluate(candidates.as_ref())?;
        let len = candidates.as_ref().map_or(self.len, |at| at.len() as u64);
        if len == 0 {
            return Ok((vec![], keys));
        }
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

    /// Whether the labels ascend or descend and every key goes along, so that labels between two of
    /// the same key have that key.
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

    /// Whether no cast in `key` goes round: DataFusion takes every cast between temporal types for one
    /// that keeps the order, but the time of day starts again each day, and local times each autumn.
    fn casts_keep_order(&self, key: &Expr) -> bool {
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

    /// For monotonic keys, positions among which every run starts: where the keys of two samples
    /// differ, all positions between them.
    fn possible_starts(&self) -> Result<Option<UInt64Array>> {
        const STEP: u64 = 64;
        if self.len < 16 * STEP {
            return Ok(None);
        }
        let samples = UInt64Array::from_iter_values((0..self.len).step_by(STEP as usize));
        let keys = self.evaluate(Some(&samples))?;
        let mut starts: Vec<u64> = vec![0];
        for run in partition(&keys)?.ranges() {
            // The run after this one starts somewhere up to its first sample.
            let last = samples.value(run.end - 1);
            starts.extend(last + 1..(last + STEP + 1).min(self.len));
        }
        Ok(Some(UInt64Array::from(starts)))
    }

    /// The keys at some positions, or at all.
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
