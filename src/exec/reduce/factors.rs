//! [`Factors`]: the functions of single dimensions that a query multiplies values with, or tests.

use std::sync::Arc;

use datafusion::physical_expr::PhysicalExprRef;

/// The number of a function in [`Factors`].
pub(super) type FactorId = usize;

/// The functions of single dimensions that a query multiplies or tests, each once.
#[derive(Debug, Default)]
pub(super) struct Factors {
    pub(super) list: Vec<Factor>,
}

/// A function of the labels of an axis.
#[derive(Debug)]
pub(super) struct Factor {
    pub(super) axis: usize,
    pub(super) expr: PhysicalExprRef,
    /// Whether it is a condition, and not a number.
    pub(super) is_condition: bool,
}

impl Factors {
    /// Adds a number to multiply with.
    pub(super) fn weight(&mut self, axis: usize, expr: &PhysicalExprRef) -> FactorId {
        self.add(axis, expr, false)
    }

    /// Adds a condition on labels.
    pub(super) fn condition(&mut self, axis: usize, expr: &PhysicalExprRef) -> FactorId {
        self.add(axis, expr, true)
    }

    fn add(&mut self, axis: usize, expr: &PhysicalExprRef, is_condition: bool) -> FactorId {
        let same = |factor: &Factor| {
            factor.axis == axis && factor.is_condition == is_condition && &factor.expr == expr
        };
        self.list.iter().position(same).unwrap_or_else(|| {
            self.list.push(Factor { axis, expr: Arc::clone(expr), is_condition });
            self.list.len() - 1
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns every function.
    pub(super) fn expressions(&self) -> impl Iterator<Item = &PhysicalExprRef> {
        self.list.iter().map(|factor| &factor.expr)
    }

    /// Returns the numbers of the functions of `axis`.
    pub(super) fn of_axis(&self, axis: usize) -> impl Iterator<Item = FactorId> {
        (0..self.list.len()).filter(move |id| self.list[*id].axis == axis)
    }
}
