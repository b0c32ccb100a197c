//! Functions that rules know: those of DataFusion, and our versions of them.
//!
//! A session may register a function of its own under any name, also under that of a function of DataFusion. So a name tells
//! nothing about what a function computes:
//!
//! ```text
//!   sum   DataFusion's         known as "sum"
//!   sum   ours, which wraps it known as "sum"
//!   sum   the session's        unknown, so DataFusion evaluates it over rows
//! ```
//!
//! A plan from another process holds other objects of the same functions. So functions are compared by type and parameters,
//! never by address.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion::functions::all_default_functions;
use datafusion::functions_aggregate::all_default_aggregate_functions;
use datafusion::functions_window::all_default_window_functions;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};

use crate::exec::functions::{OwnAggregate, OwnScalar};
use crate::exec::own_functions::added_aggregates;

/// Returns the name of an aggregate function of DataFusion or of this crate; `None` for all others.
pub(crate) fn known_aggregate(function: &AggregateUDF) -> Option<&'static str> {
    static KNOWN: LazyLock<HashMap<String, Arc<AggregateUDF>>> = LazyLock::new(|| {
        let functions = all_default_aggregate_functions().into_iter().chain(added_aggregates());
        functions.map(|function| (function.name().to_owned(), function)).collect()
    });
    let own = function.inner().downcast_ref::<OwnAggregate>();
    let function = own.map_or(function, OwnAggregate::wrapped);
    let known = KNOWN.get(function.name())?;
    (known.as_ref() == function).then(|| known.name())
}

/// Returns the name of a window function of DataFusion; `None` for all others.
pub(in crate::exec) fn known_window(function: &WindowUDF) -> Option<&'static str> {
    static KNOWN: LazyLock<HashMap<String, Arc<WindowUDF>>> = LazyLock::new(|| {
        let functions = all_default_window_functions().into_iter();
        functions.map(|function| (function.name().to_owned(), function)).collect()
    });
    let known = KNOWN.get(function.name())?;
    (known.as_ref() == function).then(|| known.name())
}

/// Returns the name of a scalar function of DataFusion or of this crate; `None` for all others.
///
/// DataFusion has only those functions whose features are on. All others are unknown.
pub(crate) fn known_scalar(function: &ScalarUDF) -> Option<&'static str> {
    static KNOWN: LazyLock<HashMap<String, Arc<ScalarUDF>>> = LazyLock::new(|| {
        let functions = all_default_functions().into_iter();
        functions.map(|function| (function.name().to_owned(), function)).collect()
    });
    let own = function.inner().downcast_ref::<OwnScalar>();
    let function = own.map_or(function, OwnScalar::wrapped);
    let known = KNOWN.get(function.name())?;
    (known.as_ref() == function).then(|| known.name())
}
