//! Rewrites one expression: comparisons in which a label takes part happen in singles.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, internal_err};
use datafusion::error::Result;
use datafusion::functions::core::r#struct;
use datafusion::logical_expr::expr::{InList, InSubquery, SetComparison};
use datafusion::logical_expr::expr_schema::cast_subquery;
use datafusion::logical_expr::{Between, BinaryExpr, Case, Expr, Operator, Subquery};

use super::columns::{Columns, begins_with_labels};
use super::shown::{in_function, in_results, is_cast, single};

/// The columns of an expression.
pub(super) struct Comparisons<'a> {
    pub(super) columns: &'a Columns,
    pub(super) schema: &'a DFSchema,
}

impl Comparisons<'_> {
    /// Rewrites an expression and all expressions in it, except those of subqueries.
    pub(super) fn in_singles(&self, expr: Expr) -> Result<Transformed<Expr>> {
        expr.transform_up(|expr| self.rewritten(expr))
    }

    fn rewritten(&self, expr: Expr) -> Result<Transformed<Expr>> {
        Ok(match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(op) => {
                let sides = self.compared([*left, *right])?;
                sides.update_data(|[left, right]| {
                    let (left, right) = (Box::new(left), Box::new(right));
                    Expr::BinaryExpr(BinaryExpr { left, op, right })
                })
            }
            Expr::Between(Between { expr, negated, low, high }) => {
                let sides = self.compared([*expr, *low, *high])?;
                sides.update_data(|[expr, low, high]| {
                    let (expr, low, high) = (Box::new(expr), Box::new(low), Box::new(high));
                    Expr::Between(Between { expr, negated, low, high })
                })
            }
            Expr::InList(InList { expr, mut list, negated }) => {
                list.push(*expr);
                let mut all = self.all_compared(list)?;
                match all.data.pop() {
                    Some(expr) => all.update_data(|list| {
                        Expr::InList(InList { expr: Box::new(expr), list, negated })
                    }),
                    None => return internal_err!("a list without its expression"),
                }
            }
            Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                let sides = self.with_subquery(*expr, subquery)?;
                sides.update_data(|(expr, subquery)| {
                    Expr::InSubquery(InSubquery { expr: Box::new(expr), subquery, negated })
                })
            }
            Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
                let sides = self.with_subquery(*expr, subquery)?;
                sides.update_data(|(expr, subquery)| {
                    let expr = Box::new(expr);
                    Expr::SetComparison(SetComparison { expr, subquery, op, quantifier })
                })
            }
            Expr::Case(case) => in_results(case, self.columns, self.schema)
                .transform_data(|case| self.case(case))?,
            Expr::ScalarFunction(it) => in_function(it, self.columns, self.schema)?,
            expr => Transformed::no(expr),
        })
    }

    /// `CASE lat WHEN 50.1 THEN …` compares; `CASE WHEN …` does not.
    fn case(&self, Case { expr, when_then_expr, else_expr }: Case) -> Result<Transformed<Expr>> {
        let Some(expr) = expr else {
            return Ok(Transformed::no(Expr::Case(Case { expr, when_then_expr, else_expr })));
        };
        let (mut all, thens): (Vec<Expr>, Vec<Box<Expr>>) =
            when_then_expr.into_iter().map(|(when, then)| (*when, then)).unzip();
        all.push(*expr);
        let mut all = self.all_compared(all)?;
        let expr = all.data.pop().map(Box::new);
        Ok(all.update_data(|whens| {
            let when_then_expr = whens.into_iter().map(Box::new).zip(thens).collect();
            Expr::Case(Case { expr, when_then_expr, else_expr })
        }))
    }

    fn compared<const N: usize>(&self, exprs: [Expr; N]) -> Result<Transformed<[Expr; N]>> {
        self.all_compared(exprs.into())?.transform_data(|exprs| match exprs.try_into() {
            Ok(exprs) => Ok(Transformed::no(exprs)),
            Err(_) => internal_err!("a comparison of other expressions than before"),
        })
    }

    /// Rewrites expressions that are compared with each other. Tuples such as `(lat, lon)` compare place by place.
    fn all_compared(&self, exprs: Vec<Expr>) -> Result<Transformed<Vec<Expr>>> {
        if exprs.iter().any(|expr| self.columns.is_label(expr, self.schema)) {
            let singles = exprs.into_iter().map(|expr| self.single(expr));
            return singles.collect::<Result<_>>().map(Transformed::yes);
        }
        let Some(len) = length_of_tuples(&exprs) else { return Ok(Transformed::no(exprs)) };
        let mut tuples: Vec<Vec<Expr>> = vec![vec![]; exprs.len()];
        let mut places: Vec<Vec<Expr>> = vec![vec![]; len];
        for expr in exprs {
            if let Expr::ScalarFunction(it) = expr {
                places.iter_mut().zip(it.args).for_each(|(place, arg)| place.push(arg));
            }
        }
        let mut any = false;
        for place in places {
            let compared = self.all_compared(place)?;
            any |= compared.transformed;
            tuples.iter_mut().zip(compared.data).for_each(|(tuple, arg)| tuple.push(arg));
        }
        let tuples = tuples.into_iter().map(|args| r#struct().call(args)).collect();
        Ok(if any { Transformed::yes(tuples) } else { Transformed::no(tuples) })
    }

    /// Compares an expression with the first column of a subquery.
    fn with_subquery(
        &self,
        expr: Expr,
        subquery: Subquery,
    ) -> Result<Transformed<(Expr, Subquery)>> {
        if !self.columns.is_label(&expr, self.schema) && !begins_with_labels(&subquery.subquery) {
            return Ok(Transformed::no((expr, subquery)));
        }
        let subquery = match is_cast(subquery.subquery.schema().field(0).data_type()) {
            true => cast_subquery(subquery, &DataType::Float32)?,
            false => subquery,
        };
        Ok(Transformed::yes((self.single(expr)?, subquery)))
    }

    fn single(&self, expr: Expr) -> Result<Expr> {
        single(expr, self.schema)
    }
}

/// Returns the number of places of tuples; `None` unless all expressions are tuples of one length.
fn length_of_tuples(exprs: &[Expr]) -> Option<usize> {
    let length = |expr: &Expr| match expr {
        Expr::ScalarFunction(it) if *it.func == *r#struct() => Some(it.args.len()),
        _ => None,
    };
    let first = length(exprs.first()?)?;
    exprs.iter().all(|expr| length(expr) == Some(first)).then_some(first)
}

/// Whether an operator compares numbers, for which both sides need one type.
fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}
