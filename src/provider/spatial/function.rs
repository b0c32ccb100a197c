//! The table functions `grid_coverage` and `grid_points`.

use std::sync::Arc;

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{plan_datafusion_err, plan_err};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use gridfusion_spatial::{CoverageRule, Crs};

use super::arguments::SpatialArguments;
use super::coverage::CoverageTable;
use super::grid::{Purpose, labelled_grid};
use super::points::{PointsTable, coordinate};
use super::roles::Role;
use super::rows::{SourceRows, registered};
use super::times::TimeOptions;
use crate::error::ErrorKind;
use crate::exec::spatial::{GridCells, GridOptions, LabelledGrid, PointCells, PointInputs};
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
        let crs = polygons.crs(geometry.as_deref());
        self.check_crs(&grid, crs, options.are_named())?;
        let table = CoverageTable::try_new(grid, rule, polygons, geometry.as_deref(), name)?;
        Ok(Arc::new(table))
    }

    async fn points(&self, mut arguments: SpatialArguments) -> Result<Arc<dyn TableProvider>> {
        let method = arguments.choose("method", &[("nearest", false), ("linear", true)])?;
        let [lat, lon] = ["lat", "lon"].map(|it| arguments.take(it));
        let tolerance = arguments.number("tolerance")?;
        let options = arguments.options_of_grid()?;
        let times = TimeOptions::take(&mut arguments)?;
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
        let (time, times) = times.labels(&table, &points, function)?.unzip();
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
}

impl SpatialArguments {
    /// Takes the options of the grid.
    fn options_of_grid(&mut self) -> Result<GridOptions> {
        let has_midpoints = self.choose("edges", &[("bounds", false), ("midpoints", true)])?;
        Ok(GridOptions { y: self.take("y"), x: self.take("x"), has_midpoints })
    }
}
