//! The reason why an operator over an array runs over rows, which `EXPLAIN` shows at the scan.
//!
//! ```text
//!   AggregateExec: mode=Partial, gby=[time], aggr=[array_agg(t.value)]
//!     GridScanExec: dataset=t, chunks=32/32, projection=[time, value], rows because array_agg(t.value) needs the rows of a group
//! ```

use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use datafusion::physical_plan::ExecutionPlan;

use super::GridScanExec;
use super::rules::walk::with_like_input;
use crate::error::Error;

/// An operator stays as it is.
#[derive(Debug)]
pub(in crate::exec) enum Declined {
    /// It has no array below it that a rule could use, so there is nothing to tell.
    NoArray,
    /// It runs over the rows of an array, because of this.
    Because(String),
    /// Planning fails.
    Failed(DataFusionError),
}

/// The answer of a rule for an operator.
pub(in crate::exec) type Attempt<T> = Result<T, Declined>;

/// Returns a reason for rows.
pub(in crate::exec) fn because(reason: impl Into<String>) -> Declined {
    Declined::Because(reason.into())
}

impl From<DataFusionError> for Declined {
    fn from(error: DataFusionError) -> Self {
        Self::Failed(error)
    }
}

impl From<Error> for Declined {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
}

/// Returns what an attempt made; `None` if the operator stays.
///
/// # Errors
/// If planning fails.
pub(in crate::exec) fn if_made<T>(attempt: Attempt<T>) -> Result<Option<T>> {
    match attempt {
        Ok(made) => Ok(Some(made)),
        Err(Declined::Failed(error)) => Err(error),
        Err(Declined::NoArray | Declined::Because(_)) => Ok(None),
    }
}

/// Returns what an attempt made of an operator that was planned before, as one with this `name`.
///
/// # Errors
/// `Unsupported` with the reason if there is no such operator here.
pub(in crate::exec) fn as_planned<T>(name: &str, attempt: Attempt<T>) -> Result<T> {
    let reason = match attempt {
        Ok(made) => return Ok(made),
        Err(Declined::Failed(error)) => return Err(error),
        Err(Declined::NoArray) => "there is no array below it".to_owned(),
        Err(Declined::Because(reason)) => reason,
    };
    let message = format!("a {name} was planned that cannot run here, because {reason}");
    Err(Error::unsupported(message).into())
}

/// Returns what an attempt made of `plan`, or else `plan` with the reason at its scan; `None` if nothing changes.
///
/// # Errors
/// If planning fails.
pub(in crate::exec) fn or_reason(
    attempt: Attempt<Arc<dyn ExecutionPlan>>,
    plan: &Arc<dyn ExecutionPlan>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    match attempt {
        Err(Declined::Because(reason)) => with_reason(plan, &reason.into()),
        attempt => if_made(attempt),
    }
}

/// Returns `plan` with a reason at the one scan below it; `None` if there is no such scan, or it has a reason.
fn with_reason(
    plan: &Arc<dyn ExecutionPlan>,
    reason: &Arc<str>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<GridScanExec>() {
        return Ok(scan.for_rows(reason).map(|scan| Arc::new(scan) as _));
    }
    let [input] = plan.children()[..] else { return Ok(None) };
    with_reason(input, reason)?.map(|input| with_like_input(plan, input)).transpose()
}
