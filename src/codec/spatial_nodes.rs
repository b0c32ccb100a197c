//! The nodes for cells of polygons and points as messages, and back.
//!
//! The grid travels with the node if its labels and coordinates are few. Otherwise the other process opens the array with the
//! coordinates:
//!
//! | grid | in the message |
//! |---|---|
//! | coordinates per axis | labels and edges |
//! | few curved cells, for points | labels, and the place of each cell |
//! | many curved cells, or their corners | what the array was opened from, and the names of its coordinates |

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::datatypes::{Float64Type, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::common::not_impl_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use gridfusion_spatial::{AxisKind, CoverageRule, CurvilinearGrid};

use super::converters::Encoder;
use super::declarations::{Declarations, schema_message, schema_of};
use super::known_files::{label_bytes, labels_of};
use super::messages::Node;
use super::origins::origin_message;
use super::recipe::Recipe;
use super::spatial_messages::{
    CoordinatesOf, Coverage, LabelledAxisOf, LabelledGridOf, Points, TimesOf,
};
use super::tables;
use super::travelled_exec::with_nodes_made;
use crate::error::{Error, Result as GridResult};
use crate::exec::spatial::{
    CoverageColumn, CoverageWork, Edges, GridCells, GridCoordinates, GridCoverageExec, GridOptions,
    GridPointsExec, LabelledAxis, LabelledGrid, PointCells, PointColumn, PointInputs, PointWork,
    TimeLabels, TimeMethod,
};
use crate::provider::ArrayOpener;
use crate::provider::spatial::{Purpose, labelled_grid};

/// How to make a node over its input.
#[derive(Debug, Clone)]
pub(super) struct SpatialRecipe {
    message: Node,
    input: Arc<dyn ExecutionPlan>,
}

impl SpatialRecipe {
    /// Returns how to make the cells of polygons again.
    pub(super) fn of_coverage(node: &GridCoverageExec) -> Result<Self> {
        let work = node.work();
        let message = Coverage {
            grid: grid_message(&work.grid)?,
            rule: match work.rule {
                CoverageRule::Coverage => 0,
                CoverageRule::Centre => 1,
                CoverageRule::Touched => 2,
            },
            geometry: work.geometry as u64,
            columns: work.columns.iter().map(|it| coverage_number(*it)).collect(),
            is_numbered: work.is_numbered,
        };
        Self::over(Node::Coverage(message), &node.children())
    }

    /// Returns how to make the cells of points again.
    pub(super) fn of_points(node: &GridPointsExec) -> Result<Self> {
        let work = node.work();
        let message = Points {
            grid: grid_message(&work.grid)?,
            times: work.times.as_deref().map(times_message).transpose()?,
            within: match work.cells {
                PointCells::Nearest { within } => Some(within),
                PointCells::Linear => None,
            },
            y: work.inputs.y as u64,
            x: work.inputs.x as u64,
            time: work.inputs.time.map(|it| it as u64),
            columns: work.columns.iter().map(|it| point_number(*it)).collect(),
        };
        Self::over(Node::Points(message), &node.children())
    }

    fn over(message: Node, inputs: &[&Arc<dyn ExecutionPlan>]) -> Result<Self> {
        let [input] = inputs else { return Err(corrupt("no input").into()) };
        Ok(Self { message, input: Arc::clone(input) })
    }

    /// Returns the recipe of a message about a node over its input, which travelled on its own.
    pub(super) fn from_message(message: Node, inputs: &[Arc<dyn ExecutionPlan>]) -> Result<Self> {
        Self::over(message, &inputs.iter().collect::<Vec<_>>())
    }
}

/// Whether a node has a grid that no other process can make: its coordinates are too many for a message, and the program opened their
/// array itself, or with a secret.
///
/// Plans with such nodes run in the process that planned them.
///
/// ```
/// # use std::sync::Arc;
/// use datafusion::arrow::datatypes::Schema;
/// use datafusion::physical_plan::empty::EmptyExec;
///
/// let node = EmptyExec::new(Arc::new(Schema::empty()));
/// assert!(!gridfusion::codec::has_large_grid(&node));
/// ```
pub fn has_large_grid(node: &dyn ExecutionPlan) -> bool {
    let coverage = node.downcast_ref::<GridCoverageExec>().map(SpatialRecipe::of_coverage);
    let points = node.downcast_ref::<GridPointsExec>().map(SpatialRecipe::of_points);
    coverage.or(points).is_some_and(|recipe| recipe.is_err())
}

#[async_trait]
impl Recipe for SpatialRecipe {
    fn message(&self, _: Encoder<'_>) -> Result<Node> {
        Ok(self.message.clone())
    }

    async fn make(
        &self,
        declared: &Declarations,
        context: &Arc<TaskContext>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = with_nodes_made(Arc::clone(&self.input), context).await?;
        let schema = Arc::clone(declared.schema());
        match &self.message {
            Node::Coverage(message) => {
                let work = coverage_work(message, &input.schema(), schema, context).await?;
                Ok(Arc::new(GridCoverageExec::try_new(input, work)?))
            }
            Node::Points(message) => {
                let work = point_work(message, &input.schema(), schema, context).await?;
                Ok(Arc::new(GridPointsExec::new(input, work)))
            }
            _ => Err(corrupt("no polygons or points").into()),
        }
    }

    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_inputs(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> Option<Arc<dyn Recipe>> {
        let [input] = inputs else { return None };
        Some(Arc::new(Self { input: Arc::clone(input), ..self.clone() }))
    }
}

/// Returns what finds the cells of polygons in rows of `input`.
async fn coverage_work(
    message: &Coverage,
    input: &Schema,
    schema: SchemaRef,
    context: &TaskContext,
) -> Result<CoverageWork> {
    let known = input.fields().len();
    let columns = message.columns.iter().map(|it| coverage_column(*it, known));
    let grid = grid_of(&message.grid, Purpose::Edges, context).await?;
    if matches!(grid.cells, GridCells::Curvilinear(_)) {
        return Err(corrupt("polygons in a grid without edges").into());
    }
    Ok(CoverageWork {
        grid: Arc::new(grid),
        rule: match message.rule {
            0 => CoverageRule::Coverage,
            1 => CoverageRule::Centre,
            2 => CoverageRule::Touched,
            _ => return Err(corrupt("an unknown rule").into()),
        },
        geometry: column(message.geometry, known)?,
        columns: columns.collect::<GridResult<_>>()?,
        is_numbered: message.is_numbered,
        schema,
    })
}

/// Returns what finds the cells of points in rows of `input`.
async fn point_work(
    message: &Points,
    input: &Schema,
    schema: SchemaRef,
    context: &TaskContext,
) -> Result<PointWork> {
    let known = input.fields().len();
    let columns = message.columns.iter().map(|it| point_column(*it, known));
    let time = message.time.map(|it| column(it, known)).transpose()?;
    let times = match (&message.times, time) {
        (Some(times), Some(at)) => Some(Arc::new(times_of(times, input, at)?)),
        _ => None,
    };
    let within = |within| PointCells::Nearest { within };
    let grid = grid_of(&message.grid, Purpose::Places, context).await?;
    if message.within.is_none() && matches!(grid.cells, GridCells::Curvilinear(_)) {
        return Err(corrupt("neighbours in a curvilinear grid").into());
    }
    Ok(PointWork {
        grid: Arc::new(grid),
        times,
        cells: message.within.map_or(PointCells::Linear, within),
        inputs: PointInputs { y: column(message.y, known)?, x: column(message.x, known)?, time },
        columns: columns.collect::<GridResult<_>>()?,
        schema,
    })
}

fn corrupt(what: &str) -> Error {
    Error::corrupt_region("plan", format!("cells of a grid: {what}"))
}

/// Returns the number of a column of the input.
fn column(number: u64, known: usize) -> GridResult<usize> {
    let at = usize::try_from(number).ok().filter(|at| *at < known);
    at.ok_or_else(|| corrupt("a column that the input lacks"))
}

/// The first number of a column of the input. Lower ones stand for computed columns.
const OWN: u64 = 16;

fn coverage_number(column: CoverageColumn) -> u64 {
    match column {
        CoverageColumn::Y => 0,
        CoverageColumn::X => 1,
        CoverageColumn::Coverage => 2,
        CoverageColumn::Area => 3,
        CoverageColumn::Own(at) => OWN + at as u64,
    }
}

fn coverage_column(number: u64, known: usize) -> GridResult<CoverageColumn> {
    Ok(match number {
        0 => CoverageColumn::Y,
        1 => CoverageColumn::X,
        2 => CoverageColumn::Coverage,
        3 => CoverageColumn::Area,
        OWN.. => CoverageColumn::Own(column(number - OWN, known)?),
        _ => return Err(corrupt("an unknown column")),
    })
}

fn point_number(column: PointColumn) -> u64 {
    match column {
        PointColumn::Y => 0,
        PointColumn::X => 1,
        PointColumn::Time => 2,
        PointColumn::Distance => 3,
        PointColumn::Weight => 4,
        PointColumn::Own(at) => OWN + at as u64,
    }
}

fn point_column(number: u64, known: usize) -> GridResult<PointColumn> {
    Ok(match number {
        0 => PointColumn::Y,
        1 => PointColumn::X,
        2 => PointColumn::Time,
        3 => PointColumn::Distance,
        4 => PointColumn::Weight,
        OWN.. => PointColumn::Own(column(number - OWN, known)?),
        _ => return Err(corrupt("an unknown column")),
    })
}

/// Returns numbers or labels as bytes.
fn sent(labels: &ArrayRef) -> Result<Vec<u8>> {
    label_bytes(labels).ok_or_else(too_large)
}

fn too_large() -> DataFusionError {
    not_impl_datafusion_err!(
        "a grid of so many labels is not sent to another process: store the cells first, as in CREATE TABLE cells AS SELECT …"
    )
}

fn sent_numbers(numbers: impl Iterator<Item = f64>) -> Result<Vec<u8>> {
    sent(&(Arc::new(Float64Array::from_iter_values(numbers)) as ArrayRef))
}

/// Returns the numbers of some bytes.
fn numbers_of(bytes: &[u8]) -> GridResult<Vec<f64>> {
    let numbers = labels_of(bytes)?;
    let numbers = numbers.as_primitive_opt::<Float64Type>().filter(|it| it.null_count() == 0);
    numbers.map(|it| it.values().to_vec()).ok_or_else(|| corrupt("no numbers"))
}

fn axis_message(axis: &LabelledAxis) -> Result<LabelledAxisOf> {
    let field = schema_message(&Schema::new(vec![Arc::clone(&axis.field)]))?;
    Ok(LabelledAxisOf { field: Some(field), labels: sent(&axis.labels)? })
}

fn axis_of(message: &LabelledAxisOf) -> Result<LabelledAxis> {
    let schema = schema_of(message.field.as_ref())?;
    let labels = labels_of(&message.labels)?;
    match schema.fields().first() {
        Some(field) if field.data_type() == labels.data_type() => {
            Ok(LabelledAxis { field: Arc::clone(field), labels })
        }
        _ => Err(corrupt("labels of another type").into()),
    }
}

fn grid_message(grid: &LabelledGrid) -> Result<LabelledGridOf> {
    let places = |grid: &CurvilinearGrid| sent_numbers(grid.places().iter().flatten().copied());
    let places = match &grid.cells {
        // If they are too many, the array with the coordinates may be enough.
        GridCells::Curvilinear(cells) => places(cells).ok(),
        GridCells::Rectilinear { .. } | GridCells::Quadrilaterals(_) => None,
    };
    if let (None, Some(coordinates)) = (&places, &grid.coordinates) {
        let coordinates = Some(coordinates_message(coordinates)?);
        return Ok(LabelledGridOf { coordinates, ..LabelledGridOf::default() });
    }
    let mut message = LabelledGridOf {
        name: grid.name.clone(),
        y: axis_message(&grid.y)?,
        x: axis_message(&grid.x)?,
        metres: grid.metres,
        places,
        ..LabelledGridOf::default()
    };
    if let GridCells::Rectilinear { grid, edges: [y, x] } = &grid.cells {
        message.is_geographic = grid.is_geographic();
        let bytes = |edges: &Option<Edges>| {
            edges.as_ref().map(|it| sent_numbers(it.iter().flatten().copied())).transpose()
        };
        (message.y_edges, message.x_edges) = (bytes(y)?, bytes(x)?);
    } else if message.places.is_none() {
        return Err(too_large());
    }
    Ok(message)
}

fn coordinates_message(coordinates: &GridCoordinates) -> Result<CoordinatesOf> {
    let GridCoordinates { array, origin, options } = coordinates;
    let (versions, contents) = (array.versions(), array.contents());
    let GridOptions { y, x, has_midpoints } = options.clone();
    let origin = origin_message(array.name(), Some(origin), versions, &contents)?;
    Ok(CoordinatesOf { origin, y, x, has_midpoints })
}

/// Opens the array with the coordinates of a grid, and reads these.
async fn grid_of_coordinates(
    message: &CoordinatesOf,
    purpose: Purpose,
    context: &TaskContext,
) -> Result<LabelledGrid> {
    let CoordinatesOf { origin, y, x, has_midpoints } = message.clone();
    let table = tables::open(&Arc::new(origin), context).await?;
    let table = table.as_grid().ok_or_else(|| corrupt("coordinates in a sparse array"))?;
    let options = GridOptions { y, x, has_midpoints };
    let opener = ArrayOpener::from_running_task(context);
    Ok(labelled_grid(&opener, table, &options, purpose).await?)
}

async fn grid_of(
    message: &LabelledGridOf,
    purpose: Purpose,
    context: &TaskContext,
) -> Result<LabelledGrid> {
    if let Some(coordinates) = &message.coordinates {
        return grid_of_coordinates(coordinates, purpose, context).await;
    }
    let axes = [axis_of(&message.y)?, axis_of(&message.x)?];
    let name = message.name.clone();
    if let Some(places) = &message.places {
        let places = numbers_of(places)?;
        let (lat, lon): (Vec<f64>, Vec<f64>) =
            places.chunks_exact(2).map(|it| (it[0], it[1])).unzip();
        return Ok(LabelledGrid::curvilinear(name, axes, &lat, &lon)?);
    }
    let edges = |bytes: &Option<Vec<u8>>| -> GridResult<Option<Edges>> {
        let Some(bytes) = bytes else { return Ok(None) };
        let numbers = numbers_of(bytes)?;
        Ok(Some(numbers.chunks_exact(2).map(|it| [it[0], it[1]]).collect()))
    };
    let edges = [edges(&message.y_edges)?, edges(&message.x_edges)?];
    let kinds = match message.is_geographic {
        true => [AxisKind::Latitude, AxisKind::Longitude],
        false => [AxisKind::Plane, AxisKind::Plane],
    };
    Ok(LabelledGrid::rectilinear(name, axes, edges, kinds, message.metres)?)
}

fn times_message(times: &TimeLabels) -> Result<TimesOf> {
    let is_last = times.method == TimeMethod::Last;
    Ok(TimesOf { axis: axis_message(&times.axis)?, is_last, within: times.within })
}

fn times_of(message: &TimesOf, input: &Schema, at: usize) -> Result<TimeLabels> {
    let method = if message.is_last { TimeMethod::Last } else { TimeMethod::Nearest };
    let times = input.field(at).data_type();
    Ok(TimeLabels::try_new(axis_of(&message.axis)?, times, method, message.within)?)
}
