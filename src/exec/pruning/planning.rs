//! Turns the filters of a query into a selection and masks of chunks.
//!
//! A predicate over one dimension becomes a set of indices, whatever its expression is. It is evaluated
//! once over the labels of the axis: n labels instead of n × m × k rows. A predicate over several
//! dimensions, or over variables, becomes a mask of the chunks that may hold matching rows.
//!
//! ```text
//!   station LIKE 'B%'              one dimension       selection of the axis, exact
//!   time > x AND lat < y           two conjuncts       a selection each
//!   time > x OR lat < y            two dimensions      mask by least and greatest label
//!   lat > 60, of lat (y, x)        a coordinate        selections of y and x, and mask by its cells
//!   value > 300 OR time > x        a variable, too     mask by zone maps, if they are worth reading
//! ```
//!
//! Masks only leave out chunks. DataFusion evaluates their filters again, row by row.
//!
//! Each conjunct is evaluated on the labels that earlier ones kept. Axes with too many labels are not evaluated, and
//! their filters remain, unless `intervals` can bisect them. If the optimizer later turns an exact predicate into a
//! constant, the scan applies the constant, because the filter node is gone by then. A plan of more chunks than a source
//! allows is refused.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::catalog::Session;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::utils::conjunction;

use super::bound_filter::BoundFilter;
use super::coordinates::Coordinates;
use super::intervals::select_intervals;
use super::labels::{satisfied, select_labels};
use super::scope::{FilterScope, MAX_LABELS};
use super::statistics::ChunkStatistics;
use super::zones::ReadExtent;
use crate::array::GridArray;
use crate::error::Error;
use crate::exec::config::GridfusionConfig;
use crate::grid::{AxisSelection, Selection};
use crate::plan::{ChunkMask, ScanRequest, TouchedCounts};

/// The greatest number of combinations of chunks to examine. With more, a query is planned without the
/// mask.
const MAX_COMBINATIONS: usize = 1 << 20;

/// Plans which chunks and cells of `array` a scan with these filters reads.
///
/// # Errors
/// If a filter over one dimension fails on a selected label. `Internal` for a filter that must be
/// evaluated per row, because [`FilterScope::pushdown`] has refused it.
pub(crate) async fn request(
    array: &Arc<GridArray>,
    filters: &[Expr],
    mut limit: Option<usize>,
    session: &dyn Session,
) -> Result<ScanRequest> {
    let mut request = ScanRequest::all(array.grid());
    let (mut over_axes, mut over_values) = (Vec::new(), Vec::new());
    let mut over_coordinates = Coordinates::new(array, session);
    let mut is_inexact = false;
    for filter in filters {
        match FilterScope::new(filter, array) {
            // No row remains: further filters exclude nothing, and could fail.
            _ if request.selection.cells() == 0 => break,
            FilterScope::Axis(axis) => {
                let candidates = &request.selection.axes()[axis];
                let selected = match candidates.len() {
                    0..=MAX_LABELS => select(filter, array, candidates, session)?,
                    len => select_intervals(filter, len, array, session)?,
                };
                request.selection.restrict(axis, &selected);
            }
            FilterScope::Axes => over_axes.push(filter.clone()),
            FilterScope::Coordinates { is_exact } => {
                is_inexact |= !is_exact;
                over_coordinates.add(filter, is_exact, &mut request.selection).await?;
            }
            FilterScope::Values => over_values.push(filter.clone()),
            // The optimizer has turned an exact filter into a constant.
            FilterScope::Constant if holds(filter, array, session)? => {}
            FilterScope::Constant => match array.grid().shape().first() {
                Some(len) => {
                    request.selection.restrict(0, &AxisSelection::from_range(*len, 0..0));
                }
                // A scalar has no axis on which nothing could be selected.
                None => limit = Some(0),
            },
            FilterScope::Rows => {
                return internal_err!("a scan cannot evaluate the filter {filter}");
            }
        }
    }
    let may_narrow = over_axes.is_empty() && over_values.is_empty() && !is_inexact;
    bound_chunks(array, &mut request.selection, limit.filter(|_| may_narrow))?;
    request.masks = over_coordinates.masks(&request.selection);
    // Filters over variables are joined into one, so that zone maps are examined once.
    for filter in over_axes.into_iter().chain(conjunction(over_values)) {
        let mask = mask(&filter, array, &request.selection, session).await?;
        request.masks.extend(mask);
    }
    request.limit = limit.map(|limit| limit as u64);
    request.partitions = session.config().target_partitions();
    let config = GridfusionConfig::from_options(session.config_options());
    request.declares_range = config.optimizer.declare_range;
    Ok(request)
}

/// Refuses a selection of more chunks than a plan may list, or of chunks with 2⁶⁴ cells or more. Narrows it instead if `limit`
/// cells of it suffice.
fn bound_chunks(array: &GridArray, selection: &mut Selection, limit: Option<usize>) -> Result<()> {
    let (grid, most) = (array.grid(), array.most_chunks());
    let touched = TouchedCounts::new(grid, selection);
    if touched.chunks() <= most && touched.cells.is_some() {
        return Ok(());
    }
    if let Some(limit) = limit {
        // The last axes vary fastest, so their first cells are taken first.
        let mut missing = (limit as u64).max(1);
        for axis in (0..grid.rank()).rev() {
            let wanted = selection.axes()[axis].clone();
            let taken = wanted.slice(0..missing);
            missing = missing.div_ceil(taken.count().max(1));
            selection.restrict(axis, &taken);
        }
        if TouchedCounts::new(grid, selection).cells.is_some() {
            return Ok(());
        }
    }
    // A condition on the dimension of the most chunks leaves out the most.
    let widest = touched.per_axis.iter().zip(array.dims()).max_by_key(|(chunks, _)| **chunks);
    let name = widest.map_or("dimension", |(_, dim)| dim.name());
    let chunks = match touched.chunks() {
        u64::MAX => "2^64 or more".to_owned(),
        chunks => chunks.to_string(),
    };
    let (table, shape) = (array.name(), grid.shape());
    Err(Error::usage(format!(
        "the query reads {chunks} chunks of \"{table}\" of shape {shape:?}, and at most {most} with less than 2^64 cells are \
         allowed for what is written; add a condition such as \"{name}\" BETWEEN … AND …, or a LIMIT"
    ))
    .into())
}

/// Returns a mask of the chunks that may hold a row for `filter`; `None` if no chunk can be excluded.
async fn mask(
    filter: &Expr,
    array: &Arc<GridArray>,
    selection: &Selection,
    session: &dyn Session,
) -> Result<Option<ChunkMask>> {
    let BoundFilter { columns, schema, predicate } = BoundFilter::try_new(filter, array, session)?;
    let chunks = ReadExtent::from_selection(array.grid(), selection);
    let statistics = ChunkStatistics::gather(array, chunks, &columns, schema).await?;
    let of_values = columns.iter().any(|column| column.value().is_some());
    // A filter over variables needs zone maps, and no mask may take long to make.
    let few = statistics.combinations().is_some_and(|count| count <= MAX_COMBINATIONS);
    if (of_values && !statistics.know_values()) || !few {
        return Ok(None);
    }
    let Some(predicate) = statistics.predicate(predicate) else { return Ok(None) };
    let keep = statistics.prune(&predicate, &statistics.all_chunks());
    Ok(keep.map(|keep| ChunkMask {
        axes: statistics.axes().to_vec(),
        keep,
        by_zones: statistics.know_values(),
    }))
}

/// Whether `filter`, which uses no column, is true.
fn holds(filter: &Expr, array: &GridArray, session: &dyn Session) -> Result<bool> {
    let BoundFilter { schema, predicate, .. } = BoundFilter::try_new(filter, array, session)?;
    // One row without columns is enough to evaluate a constant.
    let one_row = RecordBatchOptions::new().with_row_count(Some(1));
    let batch = RecordBatch::try_new_with_options(schema, vec![], &one_row)?;
    Ok(satisfied(&predicate, &batch)?.value(0))
}

/// Returns the indices among `candidates` whose labels satisfy `filter`, which uses only their axis. Only
/// labels of candidates are evaluated, so `filter` cannot fail on labels that earlier conjuncts exclude.
fn select(
    filter: &Expr,
    array: &GridArray,
    candidates: &AxisSelection,
    session: &dyn Session,
) -> Result<AxisSelection> {
    let BoundFilter { columns, schema, predicate } = BoundFilter::try_new(filter, array, session)?;
    select_labels(&predicate, array, &columns, &schema, candidates, 0)
}
