//! The table functions `grid_coverage` and `grid_points`.

use std::sync::Arc;

use arrow::array::{AsArray, StringArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, IntervalMonthDayNanoType, IntervalUnit};
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{exec_datafusion_err, plan_datafusion_err, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use gridfusion_spatial::{CoverageRule, Crs};

use super::arguments::SpatialArguments;
use super::coverage::CoverageTable;
use super::grid::{GridOptions, Purpose, labelled_grid, time_axes};
use super::points::{PointsTable, coordinate};
use super::roles::Role;
use super::rows::{SourceRows, registered};
use crate::error::ErrorKind;
use crate::exec::spatial::{
    GridCells, LabelledAxis, LabelledGrid, PointCells, PointInputs, TimeLabels, TimeMethod, unit_of,
};
use crate::exec::wait;
use crate::provider::{ArrayOpener, GridTable, store_maker};

/// A table function of the cells that rows are in.
///
/// ```sql
/// SELECT name, sum(area_m2) FROM grid_coverage('air.nc', 'regions.geojson') GROUP BY name;
/// SELECT * FROM grid_points('air.nc', 'stations.csv', method => 'linear');
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpatialFunction {
    /// The cells that polygons cover.
    Coverage,
    /// The cells of points.
    Points,
}

impl SpatialFunction {
    /// Both functions.
    pub(crate) const ALL: [Self; 2] = [Self::Coverage, Self::Points];

    /// The name in SQL.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Coverage => "grid_coverage",
            Self::Points => "grid_points",
        }
    }

    /// The options that are no options of the array, for messages.
    fn options(self) -> &'static str {
        match self {
            Self::Coverage => "rule, geometry, edges, y, x",
            Self::Points => {
                "method, lat, lon, tolerance, time, time_dimension, time_method, time_tolerance, edges, y, x"
            }
        }
    }

    fn rows(self) -> &'static str {
        match self {
            Self::Coverage => "polygons",
            Self::Points => "points",
        }
    }
}

impl TableFunctionImpl for SpatialFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let arguments = SpatialArguments::new(self.name(), self.rows(), args.exprs())?;
        let Some(state) = args.session().as_any().downcast_ref::<SessionState>() else {
            return plan_err!("{} needs a session with tables", self.name());
        };
        let call = Call { function: *self, state, opener: ArrayOpener::from_session(state) };
        wait(async {
            match self {
                Self::Coverage => call.coverage(arguments).await,
                Self::Points => call.points(arguments).await,
            }
        })
    }
}

/// A call of one of the functions.
struct Call<'a> {
    function: SpatialFunction,
    state: &'a SessionState,
    opener: ArrayOpener,
}

impl Call<'_> {
    async fn coverage(&self, mut arguments: SpatialArguments) -> Result<Arc<dyn TableProvider>> {
        let rule = arguments.choose(
            "rule",
            &[
                ("coverage", CoverageRule::Coverage),
                ("centre", CoverageRule::Centre),
                ("center", CoverageRule::Centre),
                ("touched", CoverageRule::Touched),
            ],
        )?;
        let geometry = arguments.take("geometry");
        let options = arguments.options_of_grid()?;
        let table = self.array(&arguments).await?;
        let grid = labelled_grid(&self.opener, &table, &options, Purpose::Edges).await?;
        let polygons = self.rows(&arguments).await?;
        let name = self.function.name();
        self.check_crs(&grid, polygons.crs(), options.are_named())?;
        let table = CoverageTable::try_new(grid, rule, polygons, geometry.as_deref(), name)?;
        Ok(Arc::new(table))
    }

    async fn points(&self, mut arguments: SpatialArguments) -> Result<Arc<dyn TableProvider>> {
        let method = arguments.choose("method", &[("nearest", false), ("linear", true)])?;
        let [lat, lon, time] = ["lat", "lon", "time"].map(|it| arguments.take(it));
        let tolerance = arguments.number("tolerance")?;
        let options = arguments.options_of_grid()?;
        let time_options = arguments.options_of_time()?;
        let table = self.array(&arguments).await?;
        let grid = labelled_grid(&self.opener, &table, &options, Purpose::Places).await?;
        let points = self.rows(&arguments).await?;
        let function = self.function.name();
        let within = match tolerance {
            None => f64::INFINITY,
            Some(_) if method => {
                return plan_err!(
                    "{function}: option 'tolerance' is for the nearest cell, and method is 'linear'"
                );
            }
            Some(_) if grid.metres.is_none() => {
                return plan_err!(
                    "{function}: option 'tolerance' is in metres, and the units of the grid's coordinates are no lengths"
                );
            }
            Some(metres) => metres,
        };
        let cells = match (&grid.cells, method) {
            (_, false) => PointCells::Nearest { within },
            (GridCells::Rectilinear { .. }, true) => PointCells::Linear,
            (GridCells::Curvilinear(_) | GridCells::Quadrilaterals(_), true) => {
                return plan_err!(
                    "{function}: method 'linear' needs a grid with coordinates per axis, and this one has a latitude and longitude per cell"
                );
            }
        };
        let find = |option, name: &Option<String>, roles: [Role; 2]| {
            // Latitudes are no coordinates of a plane.
            let roles = if grid.is_geographic() { &roles[..] } else { &roles[1..] };
            coordinate(&points, option, name.as_deref(), roles, &grid, function)
        };
        let y = find("lat", &lat, [Role::Latitude, Role::Y])?;
        let x = find("lon", &lon, [Role::Longitude, Role::X])?;
        let times = self.times(&table, &points, time.as_deref(), time_options)?;
        let (time, times) = times.unzip();
        let inputs = PointInputs { y, x, time };
        Ok(Arc::new(PointsTable::try_new(grid, times, cells, points, inputs, function)?))
    }

    /// Refuses polygons of a file whose coordinates are none of the grid.
    fn check_crs(&self, grid: &LabelledGrid, crs: Crs, is_confirmed: bool) -> Result<()> {
        let function = self.function.name();
        let (y, x) = (grid.y.field.name(), grid.x.field.name());
        match (crs, grid.is_geographic()) {
            (Crs::Geographic, false) if !is_confirmed => plan_err!(
                "{function}: the file of polygons has longitudes and latitudes, and the grid coordinates \"{y}\" and \"{x}\" of a plane: \
                 project the polygons, or confirm that they have these coordinates with y => '{y}', x => '{x}'"
            ),
            (Crs::Projected, true) => plan_err!(
                "{function}: the file of polygons has coordinates of a projection, and the grid latitudes and longitudes: transform the \
                 polygons to EPSG:4326"
            ),
            _ => Ok(()),
        }
    }

    /// Opens the array of the first argument.
    async fn array(&self, arguments: &SpatialArguments) -> Result<GridTable> {
        let function = self.function.name();
        if let [name] = arguments.array.as_slice()
            && let Some((_, table)) = registered(self.state, name).await?
        {
            let any: &dyn std::any::Any = &*table;
            let Some(table) = any.downcast_ref::<GridTable>() else {
                return plan_err!(
                    "{function}: the table '{name}' is no array with axes: give the path of one, or its table"
                );
            };
            if let Some(option) = arguments.rest().keys().min() {
                return plan_err!(
                    "{function}: there is no option '{option}', only {}; options of the array belong to its table '{name}'",
                    self.function.options()
                );
            }
            return Ok(table.clone());
        }
        store_maker::configure(self.state, &arguments.array, arguments.rest())?;
        let options = self.opener.options_of_sql(arguments.rest(), None)?;
        let opened = self.opener.table(arguments.array.clone(), None, &options).await;
        let table = opened.map_err(|error| match error.kind() {
            ErrorKind::Usage if !arguments.rest().is_empty() => {
                error.followed_by(&format!("those of {function} are {}", self.function.options()))
            }
            _ => error,
        })?;
        table.as_grid().cloned().ok_or_else(|| {
            plan_datafusion_err!(
                "{function}: '{}' is a sparse array, which has no grid",
                arguments.array[0]
            )
        })
    }

    async fn rows(&self, arguments: &SpatialArguments) -> Result<SourceRows> {
        SourceRows::open(self.state, &self.opener, &arguments.rows, self.function.rows()).await
    }

    /// Returns the points' column of times, and the labels for them; `None` if the points or the array have no times.
    fn times(
        &self,
        table: &GridTable,
        points: &SourceRows,
        column: Option<&str>,
        options: TimeOptions,
    ) -> Result<Option<(usize, TimeLabels)>> {
        let function = self.function.name();
        let TimeOptions { method, within, dimension, is_wanted } = options;
        let axes = time_axes(&table.array())?;
        let axis = match (axes.as_slice(), &dimension) {
            ([], None) if column.is_none() && !is_wanted => return Ok(None),
            ([], _) => return plan_err!("{function}: the array has no dimension of timestamps"),
            ([axis], None) => axis.clone(),
            (several, dimension) => {
                let is_of_points = |axis: &&LabelledAxis| {
                    let name = axis.field.name();
                    points.fields().any(|it| it.name() == name && unit_of(it.data_type()).is_some())
                };
                let named = match dimension {
                    Some(name) => several.iter().find(|it| it.field.name() == name),
                    // The dimension that has the name of a column of the points, or else the usual one.
                    None => several
                        .iter()
                        .find(is_of_points)
                        .or(several.iter().find(|it| it.field.name() == "time")),
                };
                let has_times = points.fields().any(|it| {
                    it.name().eq_ignore_ascii_case("time") && unit_of(it.data_type()).is_some()
                });
                let is_wanted = is_wanted || dimension.is_some() || column.is_some() || has_times;
                if named.is_none() && !is_wanted {
                    return Ok(None);
                }
                named
                    .cloned()
                    .ok_or_else(|| unknown_time(function, several, dimension.as_deref()))?
            }
        };
        let at = match column {
            Some(name) => points.column(name)?,
            None => {
                let name = axis.field.name();
                let is_time = |it: &arrow::datatypes::Field| {
                    unit_of(it.data_type()).is_some()
                        && (it.name() == name || it.name().eq_ignore_ascii_case("time"))
                };
                match points.fields().position(is_time) {
                    Some(at) => at,
                    None if !is_wanted => return Ok(None),
                    None => {
                        return plan_err!(
                            "{function}: it is not known which column of the points is the time: name it with option 'time'; there are {}",
                            points.listed()
                        );
                    }
                }
            }
        };
        let times = points.fields().nth(at).map(|it| it.data_type().clone());
        let times = times.ok_or_else(|| exec_datafusion_err!("no column {at}"))?;
        Ok(Some((at, TimeLabels::try_new(axis, &times, method, within)?)))
    }
}

/// Tells which dimensions have timestamps.
fn unknown_time(function: &str, axes: &[LabelledAxis], wanted: Option<&str>) -> DataFusionError {
    let names: Vec<&str> = axes.iter().map(|it| it.field.name().as_str()).collect();
    let names = names.join(", ");
    match wanted {
        Some(name) => plan_datafusion_err!(
            "{function}: option 'time_dimension' is '{name}', and the dimensions with timestamps are {names}"
        ),
        None => plan_datafusion_err!(
            "{function}: several dimensions have timestamps, and none is called \"time\": name one with option 'time_dimension'; there \
             are {names}"
        ),
    }
}

/// The options of times.
struct TimeOptions {
    method: TimeMethod,
    /// The most nanoseconds to a label.
    within: Option<u64>,
    /// The name of the array's dimension.
    dimension: Option<String>,
    /// Whether any of these options was given.
    is_wanted: bool,
}

impl SpatialArguments {
    /// Takes the options of the grid.
    fn options_of_grid(&mut self) -> Result<GridOptions> {
        let has_midpoints = self.choose("edges", &[("bounds", false), ("midpoints", true)])?;
        Ok(GridOptions { y: self.take("y"), x: self.take("x"), has_midpoints })
    }

    /// Takes the options of times.
    fn options_of_time(&mut self) -> Result<TimeOptions> {
        let is_wanted = self.rest().keys().any(|it| it.starts_with("time_"));
        let methods = [("nearest", TimeMethod::Nearest), ("last", TimeMethod::Last)];
        let method = self.choose("time_method", &methods)?;
        let within = self.take("time_tolerance").map(|it| duration(self.function(), &it));
        let dimension = self.take("time_dimension");
        Ok(TimeOptions { method, within: within.transpose()?, dimension, is_wanted })
    }
}

/// Reads an interval such as `3 hours` as nanoseconds.
fn duration(function: &str, text: &str) -> Result<u64> {
    let wrong = || {
        plan_datafusion_err!(
            "{function}: option 'time_tolerance' is '{text}', expected an interval of days or less, such as '3 hours'"
        )
    };
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let interval = DataType::Interval(IntervalUnit::MonthDayNano);
    let parsed = cast_with_options(&StringArray::from(vec![text]), &interval, &options);
    let parsed = parsed.map_err(|_| wrong())?;
    let parsed = parsed.as_primitive::<IntervalMonthDayNanoType>().value(0);
    let length = i128::from(parsed.days) * 86_400_000_000_000 + i128::from(parsed.nanoseconds);
    match (parsed.months, u64::try_from(length)) {
        (0, Ok(length)) => Ok(length),
        _ => Err(wrong()),
    }
}
