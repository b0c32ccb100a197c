//! The SQL functions of gridfusion, one by one and all of them.
//!
//! [`with_gridfusion`] adds them to a session. The constructors are for programs that choose functions themselves, and for
//! expressions that Rust builds:
//!
//! ```
//! use datafusion::prelude::{SessionContext, col};
//! use gridfusion::functions::{sum_udaf, weighted_avg_udaf};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> datafusion::error::Result<()> {
//! let ctx = SessionContext::new();
//! ctx.register_udaf(sum_udaf().as_ref().clone());
//! let rows = ctx.sql("SELECT * FROM (VALUES (10.0, 1.0), (30.0, 3.0)) AS t (value, weight)").await?;
//! let average = weighted_avg_udaf().call(vec![col("value"), col("weight")]);
//! let found = rows.aggregate(vec![], vec![average.alias("average")])?;
//! assert!(found.to_string().await?.contains("25.0"));
//! # Ok(())
//! # }
//! ```
//!
//! | functions | constructors |
//! |---|---|
//! | the aggregate `weighted_avg(value, weight)` | [`weighted_avg_udaf`] |
//! | the aggregates `max_by(x, y)` and `min_by(x, y)`, also `arg_max` and `arg_min` | [`max_by_udaf`], [`min_by_udaf`] |
//! | the aggregate `mode(x)` | [`mode_udaf`] |
//! | the aggregate `longest_run(condition ORDER BY …)` | [`longest_run_udaf`] |
//! | aggregates of DataFusion, without faults | [`sum_udaf`], [`avg_udaf`], [`min_udaf`], [`max_udaf`], [`corr_udaf`], … |
//! | the scalar function `nearest(dimension, value, tolerance)` | [`nearest`] |
//! | the scalar function `cf_days(a, b, calendar)` | [`cf_days`] |
//! | the scalar functions `haversine(lat1, lon1, lat2, lon2)` and `cell_area(south, north, west, east)` | [`haversine`], [`cell_area`] |
//! | scalar functions of DataFusion, for times of all years or calendars | [`date_trunc`], [`date_bin`], [`date_part`], [`to_char`] |
//! | scalar functions that rewritten plans call | [`interval_length`], [`time_of_day`], [`counted_date`] |
//! | table functions | [`read_array`], [`array_info`], [`array_chunks`], [`array_attributes`], [`grid_coverage`], [`grid_points`], and those of a format by [`format_table_functions`] |
//!
//! A version of a function of DataFusion has its name, its types and its states. Floats are added without taking back, so moving
//! frames keep no errors of earlier rows. NaN has one sign, and is greater than all numbers.
//!
//! gridfusion registers no window functions: its aggregates can be windows.
//!
//! [`with_gridfusion`]: crate::GridfusionSessionStateBuilderExt::with_gridfusion

use std::sync::Arc;

use datafusion::catalog::{TableFunction, TableFunctionImpl};
use datafusion::functions_aggregate::{
    array_agg, average, correlation, covariance, min_max, nth_value, regr, stddev, sum, variance,
};
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};

pub use crate::exec::arg_extremes::{max_by_udaf, min_by_udaf};
use crate::exec::cf_days;
use crate::exec::date_function;
pub use crate::exec::longest_run::longest_run_udaf;
use crate::exec::mended;
pub use crate::exec::mode::mode_udaf;
use crate::exec::nearest::nearest_udf;
use crate::exec::own_functions::{added_aggregates, own_aggregate, own_scalar_named};
use crate::exec::spatial::{cell_area_udf, haversine_udf};
pub use crate::exec::weighted_avg::weighted_avg_udaf;
use crate::provider::{ArrayFunction, SpatialFunction};
use crate::source::{ArrayFacts, ArrayFormat, Formats};

/// Defines a constructor per aggregate function of DataFusion that has a version here, and the list of them.
macro_rules! own_aggregates {
    ($($name:ident, $sql:literal, $of:path;)*) => {
        $(
            #[doc = concat!("Returns `", $sql, "`, a version of DataFusion's function without its faults.")]
            ///
            /// ```
            #[doc = concat!("use gridfusion::functions::", stringify!($name), ";")]
            ///
            #[doc = concat!("let function = ", stringify!($name), "();")]
            #[doc = concat!("assert!(\"", $sql, "\".starts_with(function.name()));")]
            /// ```
            #[must_use]
            pub fn $name() -> Arc<AggregateUDF> {
                let function = $of();
                own_aggregate(&function).unwrap_or(function)
            }
        )*

        /// Returns our versions of aggregate functions of DataFusion.
        fn own_aggregates() -> Vec<Arc<AggregateUDF>> {
            vec![$($name()),*]
        }
    };
}

own_aggregates! {
    sum_udaf, "sum(value)", sum::sum_udaf;
    avg_udaf, "avg(value)", average::avg_udaf;
    min_udaf, "min(value)", min_max::min_udaf;
    max_udaf, "max(value)", min_max::max_udaf;
    var_samp_udaf, "var(value)", variance::var_samp_udaf;
    var_pop_udaf, "var_pop(value)", variance::var_pop_udaf;
    stddev_udaf, "stddev(value)", stddev::stddev_udaf;
    stddev_pop_udaf, "stddev_pop(value)", stddev::stddev_pop_udaf;
    corr_udaf, "corr(y, x)", correlation::corr_udaf;
    covar_samp_udaf, "covar_samp(y, x)", covariance::covar_samp_udaf;
    covar_pop_udaf, "covar_pop(y, x)", covariance::covar_pop_udaf;
    regr_slope_udaf, "regr_slope(y, x)", regr::regr_slope_udaf;
    regr_intercept_udaf, "regr_intercept(y, x)", regr::regr_intercept_udaf;
    regr_r2_udaf, "regr_r2(y, x)", regr::regr_r2_udaf;
    regr_avgx_udaf, "regr_avgx(y, x)", regr::regr_avgx_udaf;
    regr_avgy_udaf, "regr_avgy(y, x)", regr::regr_avgy_udaf;
    regr_sxx_udaf, "regr_sxx(y, x)", regr::regr_sxx_udaf;
    regr_syy_udaf, "regr_syy(y, x)", regr::regr_syy_udaf;
    regr_sxy_udaf, "regr_sxy(y, x)", regr::regr_sxy_udaf;
    array_agg_udaf, "array_agg(value)", array_agg::array_agg_udaf;
    nth_value_udaf, "nth_value(value, n)", nth_value::nth_value_udaf;
}

/// Returns `date_trunc(part, time)` for times of all years. `None` if DataFusion is built without its feature
/// `datetime_expressions`.
///
/// ```
/// let function = gridfusion::functions::date_trunc().expect("the feature is on");
/// assert_eq!(function.name(), "date_trunc");
/// ```
#[must_use]
pub fn date_trunc() -> Option<Arc<ScalarUDF>> {
    own_scalar_named("date_trunc")
}

/// Returns `date_bin(width, time, origin)` for times of all years. `None` if DataFusion is built without its feature
/// `datetime_expressions`.
///
/// ```
/// let function = gridfusion::functions::date_bin().expect("the feature is on");
/// assert_eq!(function.name(), "date_bin");
/// ```
#[must_use]
pub fn date_bin() -> Option<Arc<ScalarUDF>> {
    own_scalar_named("date_bin")
}

/// Returns `date_part(part, time)` for times of all calendars. `None` if DataFusion is built without its feature
/// `datetime_expressions`.
///
/// ```
/// let function = gridfusion::functions::date_part().expect("the feature is on");
/// assert_eq!(function.name(), "date_part");
/// ```
#[must_use]
pub fn date_part() -> Option<Arc<ScalarUDF>> {
    own_scalar_named("date_part")
}

/// Returns `to_char(time, format)` for times of all calendars. `None` if DataFusion is built without its feature
/// `datetime_expressions`.
///
/// ```
/// let function = gridfusion::functions::to_char().expect("the feature is on");
/// assert_eq!(function.name(), "to_char");
/// ```
#[must_use]
pub fn to_char() -> Option<Arc<ScalarUDF>> {
    own_scalar_named("to_char")
}

/// Returns `nearest(dimension, value[, tolerance])`, the label of a dimension of an array that is nearest to a value. It is NULL if none is
/// within the tolerance: a number, or an interval for times.
///
/// ```
/// use datafusion::prelude::SessionContext;
/// use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionContext::new();
/// ctx.enable_gridfusion();
/// ctx.register_array("sea", "examples/data/sea.zarr", ArrayOptions::default()).await?;
/// let near = "SELECT count(*) FROM sea WHERE lat = nearest(lat, 59.9) AND lon = nearest(lon, 10.7, 15)";
/// assert!(ctx.sql(near).await?.to_string().await?.contains("60"));
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn nearest() -> Arc<ScalarUDF> {
    nearest_udf()
}

/// Returns `cf_days(a, b, calendar)`, the days from one time to another, counted in a calendar of the CF conventions. Timestamps
/// alone count the 29th of February, which `noleap` lacks.
///
/// ```
/// use datafusion::prelude::{SessionContext, lit};
/// use gridfusion::functions::cf_days;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let days = cf_days().call(vec![lit("2000-02-28"), lit("2000-03-01"), lit("noleap")]);
/// let found = SessionContext::new().read_empty()?.select(vec![days.alias("days")])?;
/// assert!(found.to_string().await?.contains("1.0"));
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn cf_days() -> Arc<ScalarUDF> {
    cf_days::cf_days()
}

/// Returns `haversine(lat1, lon1, lat2, lon2)`: the metres along the great circle between two places in degrees, on a sphere of
/// 6 371 008.8 m, the mean radius of the Earth. NULL for a coordinate that is NULL.
///
/// ```
/// use datafusion::prelude::{SessionContext, lit};
/// use gridfusion::functions::haversine;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let metres = haversine().call([59.91, 10.75, 60.39, 5.32].map(lit).to_vec()).alias("metres");
/// let found = SessionContext::new().read_empty()?.select(vec![metres])?;
/// assert!(found.to_string().await?.contains("305135.4"));
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn haversine() -> Arc<ScalarUDF> {
    haversine_udf()
}

/// Returns `cell_area(south, north, west, east)`: the square metres between two parallels and two meridians in degrees, on the
/// sphere of [`haversine`]. Latitudes beyond a pole count as the pole. NULL for an edge that is NULL.
///
/// ```
/// use datafusion::prelude::{SessionContext, lit};
/// use gridfusion::functions::cell_area;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let globe = cell_area().call([-90.0, 90.0, 0.0, 360.0].map(lit).to_vec()).alias("globe");
/// let found = SessionContext::new().read_empty()?.select(vec![globe])?;
/// assert!(found.to_string().await?.contains("510065"));
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn cell_area() -> Arc<ScalarUDF> {
    cell_area_udf()
}

/// Returns `gridfusion_interval_length(interval)`, the length of an interval in nanoseconds. Rewritten plans call it to compare
/// intervals.
///
/// ```
/// use datafusion::prelude::{SessionContext, lit};
/// use datafusion::scalar::ScalarValue;
/// use gridfusion::functions::interval_length;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let hours = ScalarValue::new_interval_mdn(0, 0, 32 * 3_600_000_000_000);
/// let day = ScalarValue::new_interval_mdn(0, 1, 0);
/// let length = |interval| interval_length().call(vec![lit(interval)]);
/// let is_longer = length(hours).gt(length(day)).alias("is_longer");
/// let found = SessionContext::new().read_empty()?.select(vec![is_longer])?;
/// assert!(found.to_string().await?.contains("true"));
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn interval_length() -> Arc<ScalarUDF> {
    mended::interval_length()
}

/// Returns `gridfusion_time_of_day(time)`, the time of day of a timestamp. Rewritten plans call it in place of a cast.
///
/// ```
/// use datafusion::prelude::{SessionContext, lit};
/// use datafusion::scalar::ScalarValue;
/// use gridfusion::functions::time_of_day;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let minute_of_a_day = ScalarValue::TimestampSecond(Some(86_400 + 60), None);
/// let time = time_of_day().call(vec![lit(minute_of_a_day)]);
/// let found = SessionContext::new().read_empty()?.select(vec![time.alias("time")])?;
/// assert!(found.to_string().await?.contains("00:01:00"));
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn time_of_day() -> Arc<ScalarUDF> {
    mended::time_of_day()
}

/// Returns `gridfusion_date(what, detail, number, units, calendar)`: parts and texts of numbers that count time in a calendar that SQL
/// lacks. Rewritten plans call it in place of `date_part`, `date_trunc`, `to_char` and casts.
///
/// ```
/// use datafusion::prelude::{SessionContext, lit};
/// use gridfusion::functions::counted_date;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let date = ["text", ""].map(lit).into_iter().chain([lit(59.0)]);
/// let date = counted_date().call(date.chain(["days since 1850-01-01", "360_day"].map(lit)).collect());
/// let found = SessionContext::new().read_empty()?.select(vec![date.alias("date")])?;
/// assert!(found.to_string().await?.contains("1850-02-30"));
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn counted_date() -> Arc<ScalarUDF> {
    date_function()
}

/// Returns the table function `read_array(path, …)`, which recognises the format of the arrays.
///
/// ```
/// use datafusion::prelude::SessionContext;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionContext::new();
/// let read_array = gridfusion::functions::read_array();
/// ctx.register_udtf(read_array.name(), read_array.function().clone());
/// let found = ctx.sql("SELECT * FROM read_array('examples/data/stations.tet', 'temperature')").await?;
/// assert_eq!(found.count().await?, 8640);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn read_array() -> Arc<TableFunction> {
    table_function(ArrayFunction::read_any())
}

/// Returns the table function `array_info(path, …)`: a row per dataset or variable.
///
/// ```
/// use datafusion::prelude::SessionContext;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionContext::new();
/// let array_info = gridfusion::functions::array_info();
/// ctx.register_udtf(array_info.name(), array_info.function().clone());
/// let found = ctx.sql("SELECT * FROM array_info('examples/data/stations.tet', 'temperature')").await?;
/// assert_eq!(found.count().await?, 1);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn array_info() -> Arc<TableFunction> {
    table_function(ArrayFunction::for_facts(ArrayFacts::Info))
}

/// Returns the table function `array_chunks(path, …)`: a row per chunk of a variable.
///
/// ```
/// use datafusion::prelude::SessionContext;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionContext::new();
/// let array_chunks = gridfusion::functions::array_chunks();
/// ctx.register_udtf(array_chunks.name(), array_chunks.function().clone());
/// let found = ctx.sql("SELECT * FROM array_chunks('examples/data/stations.tet', 'temperature')").await?;
/// assert_eq!(found.count().await?, 6);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn array_chunks() -> Arc<TableFunction> {
    table_function(ArrayFunction::for_facts(ArrayFacts::Chunks))
}

/// Returns the table function `array_attributes(path, …)`: a row per attribute of a dataset, a group or the place itself.
///
/// ```
/// use datafusion::prelude::SessionContext;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionContext::new();
/// let array_attributes = gridfusion::functions::array_attributes();
/// ctx.register_udtf(array_attributes.name(), array_attributes.function().clone());
/// let found = ctx.sql("SELECT * FROM array_attributes('examples/data/stations.tet', 'temperature')").await?;
/// assert!(found.count().await? > 0);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn array_attributes() -> Arc<TableFunction> {
    table_function(ArrayFunction::for_facts(ArrayFacts::Attributes))
}

/// Returns the table function `grid_coverage(array, polygons, …)`: a row per polygon and cell that it covers.
///
/// ```
/// use datafusion::prelude::SessionContext;
/// use gridfusion::GridfusionSessionContextExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionContext::new();
/// ctx.enable_gridfusion();
/// ctx.sql("CREATE VIEW boxes AS SELECT 'A' AS name, 'POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0))' AS wkt").await?;
/// let found = ctx.sql("SELECT * FROM grid_coverage('examples/data/air.nc', boxes)").await?;
/// assert!(found.count().await? > 0);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn grid_coverage() -> Arc<TableFunction> {
    spatial_function(SpatialFunction::Coverage)
}

/// Returns the table function `grid_points(array, points, …)`: a row per point with the labels of its cell.
///
/// ```
/// use datafusion::prelude::SessionContext;
/// use gridfusion::GridfusionSessionContextExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionContext::new();
/// ctx.enable_gridfusion();
/// let points = "(SELECT 'Oslo' AS name, 59.9 AS lat, 10.7 AS lon)";
/// let found = ctx.sql(&format!("SELECT * FROM grid_points('examples/data/air.nc', {points})")).await?;
/// assert_eq!(found.count().await?, 1);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn grid_points() -> Arc<TableFunction> {
    spatial_function(SpatialFunction::Points)
}

fn spatial_function(function: SpatialFunction) -> Arc<TableFunction> {
    Arc::new(TableFunction::new(function.name().to_owned(), Arc::new(function)))
}

/// Returns the table functions of a format: `read_NAME`, and one per table of facts, such as `tet_info`.
///
/// ```
/// use gridfusion::{built_in_formats, functions::format_table_functions};
///
/// let formats = built_in_formats();
/// let functions = format_table_functions(&**formats.get("tet").expect("is built in"));
/// assert!(functions.iter().any(|function| function.name() == "tet_info"));
/// ```
#[must_use]
pub fn format_table_functions(format: &dyn ArrayFormat) -> Vec<Arc<TableFunction>> {
    ArrayFunction::for_format(format).into_iter().map(table_function).collect()
}

fn table_function(function: ArrayFunction) -> Arc<TableFunction> {
    let name = function.name().to_owned();
    let function: Arc<dyn TableFunctionImpl> = Arc::new(function);
    Arc::new(TableFunction::new(name, function))
}

/// All functions of gridfusion.
///
/// ```
/// use gridfusion::{built_in_formats, functions::GridfusionFunctions};
///
/// let functions = GridfusionFunctions::new(&built_in_formats());
/// assert!(functions.aggregate.iter().any(|function| function.name() == "weighted_avg"));
/// assert!(functions.table.iter().any(|function| function.name() == "read_array"));
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct GridfusionFunctions {
    /// The scalar functions.
    pub scalar: Vec<Arc<ScalarUDF>>,
    /// The aggregate functions.
    pub aggregate: Vec<Arc<AggregateUDF>>,
    /// The table functions: `read_array`, those with facts, those of formats, `grid_coverage` and `grid_points`.
    pub table: Vec<Arc<TableFunction>>,
}

impl GridfusionFunctions {
    /// Lists the functions of a session with these formats.
    #[must_use]
    pub fn new(formats: &Formats) -> Self {
        let own = [date_trunc(), date_bin(), date_part(), to_char()].into_iter().flatten();
        let mut aggregate = own_aggregates();
        aggregate.extend(added_aggregates());
        aggregate.extend([max_by_udaf(), min_by_udaf()]);
        Self {
            scalar: own
                .chain([nearest(), cf_days(), haversine(), cell_area()])
                .chain([interval_length(), time_of_day(), counted_date()])
                .collect(),
            aggregate,
            table: (ArrayFunction::all(formats).into_iter().map(table_function))
                .chain([grid_coverage(), grid_points()])
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::SessionStateBuilder;
    use datafusion::functions::all_default_functions;
    use datafusion::functions_aggregate::all_default_aggregate_functions;

    use super::*;
    use crate::GridfusionSessionStateBuilderExt;
    use crate::exec::own_functions::{is_own_aggregate, is_own_scalar, own_scalar};

    fn sorted(mut names: Vec<String>) -> Vec<String> {
        names.sort();
        names
    }

    #[test]
    fn every_function_that_a_session_gets_has_a_constructor() {
        let all = GridfusionFunctions::new(&crate::built_in_formats());
        let of_session = SessionStateBuilder::new().with_default_features().build();
        let with_ours =
            SessionStateBuilder::new().with_default_features().with_gridfusion().build();

        let mut added: Vec<String> = vec![];
        for (name, function) in with_ours.aggregate_functions() {
            if name == function.name()
                && of_session.aggregate_functions().get(name) != Some(function)
            {
                assert!(all.aggregate.contains(function), "{name}");
                added.push(name.clone());
            }
        }
        let names = all.aggregate.iter().map(|it| it.name().to_owned()).collect();
        assert_eq!(sorted(added), sorted(names));

        let mut added: Vec<String> = vec![];
        for (name, function) in with_ours.scalar_functions() {
            if name == function.name() && of_session.scalar_functions().get(name) != Some(function)
            {
                assert!(all.scalar.contains(function), "{name}");
                added.push(name.clone());
            }
        }
        let names = all.scalar.iter().map(|it| it.name().to_owned()).collect();
        assert_eq!(sorted(added), sorted(names));

        assert_eq!(of_session.window_functions(), with_ours.window_functions());
        let is_ours = |name: &&String| !of_session.table_functions().contains_key(*name);
        let added = with_ours.table_functions().keys().filter(is_ours).cloned().collect();
        let names = all.table.iter().map(|it| it.name().to_owned()).collect();
        assert_eq!(sorted(added), sorted(names));
    }

    #[test]
    fn versions_of_functions_are_those_that_are_without_faults() {
        assert!(own_aggregates().iter().all(|it| is_own_aggregate(it)));
        let all = all_default_aggregate_functions();
        assert_eq!(own_aggregates().len(), all.iter().filter_map(own_aggregate).count());
        let own = [date_trunc(), date_bin(), date_part(), to_char()];
        assert!(own.iter().flatten().all(|it| is_own_scalar(it)));
        let scalars = all_default_functions();
        assert_eq!(own.len(), scalars.iter().filter_map(own_scalar).count());
    }
}
