//! [`Keys`]: the keys of the reduction below a join, and expressions over the join's new output.

use std::ops::Range;
use std::sync::Arc;

use datafusion::common::internal_datafusion_err;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;

use super::join_sides::{HashJoinSides, uses};
use crate::exec::columns::{columns_of, move_columns};

/// The keys of a reduction: what expressions above the join need to know of a cell.
///
/// ```text
///   above the join   date_part('month', time) = c.month      keys   date_part('month', time), station
///                    t.station || s.suffix                   above  key 0 = c.month, key 1 || s.suffix
/// ```
pub(super) struct Keys<'a> {
    joined: HashJoinSides<'a>,
    /// The keys, over the input that is reduced, each with a name.
    keys: Vec<(PhysicalExprRef, String)>,
}

impl<'a> Keys<'a> {
    pub(super) fn new(joined: HashJoinSides<'a>) -> Self {
        Self { joined, keys: vec![] }
    }

    /// The keys so far, over the input that is reduced.
    pub(super) fn exprs(&self) -> &[(PhysicalExprRef, String)] {
        &self.keys
    }

    /// Returns the number of a key over the input that is reduced.
    pub(super) fn number(&self, key: &PhysicalExprRef) -> Option<usize> {
        self.keys.iter().position(|(other, _)| other == key)
    }

    /// Adds a key over the input that is reduced, unless there is an equal one. Returns its number.
    pub(super) fn add(&mut self, key: &PhysicalExprRef) -> usize {
        if let Some(at) = self.number(key) {
            return at;
        }
        let name = match key.downcast_ref::<PhysicalColumn>() {
            Some(column) => column.name().to_owned(),
            None => key.to_string(),
        };
        self.keys.push((Arc::clone(key), name));
        self.keys.len() - 1
    }

    /// Adds what an expression over both sides needs to know of a cell.
    ///
    /// # Errors
    /// Internal errors only.
    pub(super) fn add_needed(&mut self, expr: &PhysicalExprRef) -> Result<()> {
        let own = self.joined.own();
        if let Some(key) = self.as_key(expr)? {
            self.add(&key);
        } else if uses(expr, &own) {
            for child in expr.children() {
                self.add_needed(child)?;
            }
        }
        Ok(())
    }

    /// Rewrites an expression over both sides, over the output of the join of `width` columns of the reduced side and those of
    /// the other one.
    ///
    /// # Errors
    /// `Internal` if its needs were not [added](Self::add_needed).
    pub(super) fn above(&self, expr: &PhysicalExprRef, width: usize) -> Result<PhysicalExprRef> {
        let own = self.joined.own();
        if let Some(key) = self.as_key(expr)? {
            let number =
                self.number(&key).ok_or_else(|| internal_datafusion_err!("a key is missing"))?;
            let name = &self.keys[number].1;
            return Ok(Arc::new(PhysicalColumn::new(name, self.reduced(width).start + number)));
        }
        if !uses(expr, &own) {
            // The reduced side has another number of columns, and may be the left one.
            let place = |at: usize| {
                Some(if at < own.start { at } else { at - own.end + own.start + width })
            };
            return move_columns(expr, &place);
        }
        let children = expr.children().into_iter().map(|child| self.above(child, width));
        Arc::clone(expr).with_new_children(children.collect::<Result<_>>()?)
    }

    /// The columns of the reduced side in the output of the join.
    pub(super) fn reduced(&self, width: usize) -> Range<usize> {
        let start = if self.joined.returns_one_side() { 0 } else { self.joined.own().start };
        start..start + width
    }

    /// Returns an expression as a key over the input that is reduced: a function of one of its columns.
    ///
    /// Where the join adds rows of NULLs, only a column itself is a key: a function of NULL need not be NULL.
    fn as_key(&self, expr: &PhysicalExprRef) -> Result<Option<PhysicalExprRef>> {
        let (own, columns) = (self.joined.own(), columns_of([expr]));
        let is_one = columns.len() == 1 && columns.iter().all(|at| own.contains(at));
        if !is_one || self.joined.adds_null_rows() && !expr.is::<PhysicalColumn>() {
            return Ok(None);
        }
        move_columns(expr, &|at| at.checked_sub(own.start)).map(Some)
    }
}
