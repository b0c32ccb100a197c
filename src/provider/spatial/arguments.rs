//! The arguments of the two functions: an array, rows, and options.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{plan_datafusion_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::provider::arguments::{options, shown, texts};

/// Polygons or points, as they were named.
#[derive(Debug)]
pub(super) enum RowsArgument {
    /// The name of a table, or a path.
    Named(String),
    /// A query in parentheses.
    Query(Arc<LogicalPlan>),
}

/// The arguments of a call.
#[derive(Debug)]
pub(super) struct SpatialArguments {
    function: &'static str,
    /// Paths or URLs, or the name of a table; at least one.
    pub(super) array: Vec<String>,
    pub(super) rows: RowsArgument,
    options: HashMap<String, String>,
}

impl SpatialArguments {
    /// Parses the arguments of a function. `rows` names the second one in messages.
    ///
    /// # Errors
    /// If there are fewer than two, or they are of other kinds.
    pub(super) fn new(function: &'static str, rows: &str, exprs: &[Expr]) -> Result<Self> {
        let [array, second, others @ ..] = exprs else {
            return plan_err!(
                "{function} takes an array and {rows}, and then options by name, found {} arguments",
                exprs.len()
            );
        };
        let array = texts(array).filter(|texts| !texts.is_empty()).ok_or_else(|| {
            let found = shown(array);
            plan_datafusion_err!(
                "{function} takes the path or the table of an array first, found {found}"
            )
        })?;
        let one = |mut all: Vec<String>| (all.len() == 1).then(|| all.remove(0));
        let rows = match second {
            // The planner of named arguments makes this of a query in parentheses.
            Expr::Exists(exists) if !exists.negated => {
                if !exists.subquery.outer_ref_columns.is_empty() {
                    return plan_err!(
                        "the query of {rows} in {function} uses columns of another table, which it cannot"
                    );
                }
                RowsArgument::Query(Arc::clone(&exists.subquery.subquery))
            }
            named => RowsArgument::Named(texts(named).and_then(one).ok_or_else(|| {
                let found = shown(named);
                plan_datafusion_err!(
                    "{function} takes {rows} second: a table, a path or a query in parentheses, found {found}"
                )
            })?),
        };
        Ok(Self { function, array, rows, options: options(function, others)? })
    }

    /// Takes the value of an option.
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        self.options.remove(name)
    }

    /// Takes an option that is one of a few words. The first one is the default.
    ///
    /// # Errors
    /// For other words.
    pub(super) fn choose<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Result<T> {
        let given = self.take(name);
        let found = match &given {
            Some(word) => words.iter().find(|it| it.0.eq_ignore_ascii_case(word)),
            None => words.first(),
        };
        found.map(|it| it.1).ok_or_else(|| {
            let known: Vec<String> = words.iter().map(|it| format!("'{}'", it.0)).collect();
            let (function, given) = (self.function, given.unwrap_or_default());
            plan_datafusion_err!(
                "{function}: option '{name}' is '{given}', expected {}",
                known.join(" or ")
            )
        })
    }

    /// Takes a number that is no less than 0.
    ///
    /// # Errors
    /// For other texts.
    pub(super) fn number(&mut self, option: &str) -> Result<Option<f64>> {
        let Some(text) = self.take(option) else { return Ok(None) };
        match text.trim().parse::<f64>() {
            Ok(number) if number >= 0.0 => Ok(Some(number)),
            _ => {
                let function = self.function;
                plan_err!(
                    "{function}: option '{option}' is '{text}', expected metres, such as 5000"
                )
            }
        }
    }

    /// The options that have not been taken, which are those of the array.
    pub(super) fn rest(&self) -> &HashMap<String, String> {
        &self.options
    }

    /// The name of the function.
    pub(super) fn function(&self) -> &'static str {
        self.function
    }
}
