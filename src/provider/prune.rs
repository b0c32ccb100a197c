//! Masks: the chunks that a predicate over several dimensions, or over values, leaves.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;

use super::pushdown;
use crate::array::GridArray;
use crate::exec::ChunkFacts;
use crate::grid::Selection;
use crate::plan::ChunkMask;

/// More combinations of chunks than this are not examined.
const MAX_COMBINATIONS: usize = 1 << 20;

/// The chunks that may hold a row for `filter`, or `None` if nothing can be said.
pub(super) async fn mask(
    filter: &Expr,
    array: &Arc<GridArray>,
    selection: &Selection,
    state: &dyn Session,
) -> Result<Option<ChunkMask>> {
    let (columns, schema, predicate) = pushdown::physical(filter, array, state)?;
    let facts = ChunkFacts::gather(array, selection, &columns, schema).await?;
    let of_values = columns.iter().any(|column| column.value().is_some());
    let few = facts.combinations().is_some_and(|count| count <= MAX_COMBINATIONS);
    if (of_values && !facts.know_values()) || !few {
        return Ok(None);
    }
    let Some(predicate) = facts.predicate(predicate) else { return Ok(None) };
    let keep = facts.prune(&predicate, &facts.everywhere());
    let mask =
        |keep| ChunkMask { axes: facts.axes().to_vec(), keep, by_zones: facts.know_values() };
    Ok(keep.map(mask))
}
