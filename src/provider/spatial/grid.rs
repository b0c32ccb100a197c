//! The grid of an array: two of its dimensions, with the labels that its table shows and the places of the cells.

use std::sync::Arc;

use arrow::datatypes::Field;
use gridfusion_spatial::{AxisKind, CurvilinearCells};

use super::roles::{self, Role, metres};
use super::variables;
use crate::array::{ColumnSource, GridArray};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::spatial::{GridCoordinates, GridOptions, LabelledAxis, LabelledGrid};
use crate::provider::{ArrayOpener, GridTable};

/// The most labels of an axis.
const MOST_LABELS: u64 = 1 << 27;

/// The purpose of a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The cells that polygons cover, which need edges.
    Edges,
    /// The cells of points.
    Places,
}

/// Returns the grid of a table.
///
/// # Errors
/// `Usage` if the dimensions of the grid are not known, or their labels make no grid.
pub(crate) async fn labelled_grid(
    opener: &ArrayOpener,
    table: &GridTable,
    options: &GridOptions,
    purpose: Purpose,
) -> Result<LabelledGrid> {
    let array = table.array();
    let named = |error: Error| array.objects().named(error);
    let axes = axes_of(&array);
    let pair = pair_of(&axes, options).map_err(named)?;
    if let Some([y, x]) = pair
        && (options.are_named() || y.is_geographic() && x.is_geographic())
    {
        return rectilinear(opener, table, &array, [y, x], options).await.map_err(named);
    }
    match (curvilinear(opener, table, options).await?, pair) {
        (Some((coordinates, curved)), _) => {
            let array = coordinates.array();
            let grid = match purpose {
                Purpose::Places => curvilinear_grid(&array, &curved).await,
                Purpose::Edges => curvilinear_cells(opener, table, &array, &curved, options).await,
            };
            Ok(grid?.with_coordinates(coordinates.origin().map(|origin| {
                let [y, x] = [curved.lat, curved.lon].map(Some);
                let options = GridOptions { y, x, has_midpoints: options.has_midpoints };
                GridCoordinates { array, origin: origin.clone(), options }
            })))
        }
        (None, Some(pair)) => {
            refuse_rotated(&pair).map_err(named)?;
            rectilinear(opener, table, &array, pair, options).await.map_err(named)
        }
        (None, None) => Err(named(unknown_axes(&axes, options))),
    }
}

/// Refuses coordinates that look like longitudes and latitudes, but are those of another pole.
fn refuse_rotated([y, x]: &[NumberAxis<'_>; 2]) -> Result<()> {
    if !roles::is_rotated(y.field) && !roles::is_rotated(x.field) {
        return Ok(());
    }
    let (y, x) = (y.field.name(), x.field.name());
    Err(Error::usage(format!(
        "\"{y}\" and \"{x}\" are latitudes and longitudes of a rotated grid: polygons and points need the same coordinates, which \
         y => '{y}', x => '{x}' confirms"
    )))
}

fn unknown_axes(axes: &[NumberAxis<'_>], options: &GridOptions) -> Error {
    let listed: Vec<String> = axes.iter().map(|it| it.field.name().clone()).collect();
    let listed = if listed.is_empty() { "none with labels".to_owned() } else { listed.join(", ") };
    let wrong = [("y", &options.y), ("x", &options.x)].into_iter().find_map(|(option, name)| {
        let name = name.as_ref()?;
        axes.iter().all(|it| it.field.name() != name).then_some((option, name))
    });
    Error::usage(match wrong {
        Some((option, name)) => format!(
            "option '{option}' is '{name}', which is no dimension with numbers as labels, and no coordinate per cell; there are {listed}"
        ),
        None => format!(
            "it is not known which dimensions are latitude and longitude, or y and x: name them with the options 'y' and 'x'; there \
             are {listed}"
        ),
    })
}

/// One dimension whose labels are numbers.
#[derive(Debug, Clone, Copy)]
struct NumberAxis<'a> {
    axis: usize,
    field: &'a Field,
    role: Option<Role>,
}

impl NumberAxis<'_> {
    fn is_geographic(&self) -> bool {
        self.role.is_some_and(Role::is_geographic)
    }
}

/// Returns the dimensions that have numbers as labels.
fn axes_of(array: &GridArray) -> Vec<NumberAxis<'_>> {
    let columns = array.schema().fields().iter().zip(array.columns());
    let axes = columns.filter_map(|(field, column)| match column {
        ColumnSource::Label(axis)
            if array.dims()[*axis].is_labelled() && field.data_type().is_numeric() =>
        {
            Some(NumberAxis { axis: *axis, field, role: Role::of(field) })
        }
        _ => None,
    });
    axes.collect()
}

/// Returns the axes of rows and columns: those that are named, or else those that attributes and names tell. `None` if there are
/// no two.
fn pair_of<'a>(
    axes: &[NumberAxis<'a>],
    names: &GridOptions,
) -> Result<Option<[NumberAxis<'a>; 2]>> {
    let named = |name: &String| axes.iter().find(|it| it.field.name() == name).copied();
    let wanted =
        [(&names.y, [Role::Latitude, Role::Y], "y"), (&names.x, [Role::Longitude, Role::X], "x")];
    let mut pair = [None, None];
    for (found, (name, roles, option)) in pair.iter_mut().zip(wanted) {
        if let Some(name) = name {
            *found = named(name);
            continue;
        }
        for role in roles {
            let all: Vec<_> = axes.iter().filter(|it| it.role == Some(role)).collect();
            if let [first, second, ..] = all.as_slice() {
                return Err(Error::usage(format!(
                    "\"{}\" and \"{}\" may both be the {role:?} of the grid: name one with option '{option}'",
                    first.field.name(),
                    second.field.name()
                )));
            }
            *found = found.or(all.first().copied().copied());
        }
    }
    let [Some(y), Some(x)] = pair else { return Ok(None) };
    if y.axis == x.axis {
        return Err(Error::usage("the options 'y' and 'x' name the same dimension"));
    }
    Ok(Some([y, x]))
}

/// Returns the column of an axis with all of its labels.
fn labelled_axis(array: &GridArray, axis: usize) -> Result<LabelledAxis> {
    let columns = array.columns().iter();
    let column = columns.zip(array.schema().fields()).find(|it| *it.0 == ColumnSource::Label(axis));
    let Some((_, field)) = column else {
        let name = array.dims()[axis].name();
        return Err(Error::usage(format!("the table has no column of the dimension \"{name}\"")));
    };
    let labels = array.dims()[axis].labels();
    if labels.len() > MOST_LABELS {
        let (name, len) = (field.name(), labels.len());
        return Err(Error::unsupported(format!(
            "\"{name}\" has {len} labels, and a grid up to {MOST_LABELS}"
        )));
    }
    Ok(LabelledAxis { field: Arc::clone(field), labels: labels.slice(0..labels.len())? })
}

/// Returns the labels of a dimension of times.
pub(super) fn time_axes(array: &GridArray) -> Result<Vec<LabelledAxis>> {
    let axes = array
        .dims()
        .iter()
        .enumerate()
        .filter(|(_, dim)| crate::exec::spatial::unit_of(&dim.labels().data_type()).is_some());
    axes.map(|(axis, _)| labelled_axis(array, axis)).collect()
}

async fn rectilinear(
    opener: &ArrayOpener,
    table: &GridTable,
    array: &GridArray,
    pair: [NumberAxis<'_>; 2],
    options: &GridOptions,
) -> Result<LabelledGrid> {
    let [y, x] = pair;
    let kinds = match (y.is_geographic(), x.is_geographic()) {
        (true, true) => [AxisKind::Latitude, AxisKind::Longitude],
        (false, false) => [AxisKind::Plane, AxisKind::Plane],
        _ => {
            let (y, x) = (y.field.name(), x.field.name());
            return Err(Error::usage(format!(
                "\"{y}\" and \"{x}\" are no latitude and longitude, and no axes of a plane: name two others with the options 'y' and 'x'"
            )));
        }
    };
    let mut edges = [None, None];
    for (edges, axis) in edges.iter_mut().zip(pair) {
        roles::check_units(axis.field, axis.role)?;
        let bounds = axis.field.metadata().get("bounds").filter(|_| !options.has_midpoints);
        if let Some(name) = bounds {
            let dimension = &array.dims()[axis.axis];
            let (of, name) = (axis.field.name(), name.trim());
            let found = variables::vertices(opener, table, of, &[dimension], name).await?;
            *edges = found.map(|it| it.as_chunks::<2>().0.into());
        }
    }
    let [y_axis, mut x_axis] = [labelled_axis(array, y.axis)?, labelled_axis(array, x.axis)?];
    if x.is_geographic() && edges[1].is_none() {
        x_axis = x_axis.without_cyclic_label()?;
    }
    let metres = if y.is_geographic() { Some(1.0) } else { metres(y.field, x.field) };
    LabelledGrid::rectilinear(array.name().to_owned(), [y_axis, x_axis], edges, kinds, metres)
}

/// The coordinates of a curvilinear grid: two variables over the same two dimensions.
struct CurvedPair {
    lat: String,
    lon: String,
    axes: [usize; 2],
}

/// Finds a latitude and a longitude per cell among the columns of a table, or else among the coordinates beside them.
async fn curvilinear(
    opener: &ArrayOpener,
    table: &GridTable,
    names: &GridOptions,
) -> Result<Option<(GridTable, CurvedPair)>> {
    if let Some(pair) = curved_pair(&table.array(), names) {
        return Ok(Some((table.clone(), pair)));
    }
    let Some(origin) = table.origin() else { return Ok(None) };
    let options = origin.options.clone().with_option("coordinates", true);
    let opened = opener.table(origin.locations.clone(), origin.format.as_deref(), &options).await;
    let with_coordinates = match opened {
        Ok(table) => table,
        // The format has no such option, or the table no coordinates.
        Err(error) if error.kind() == ErrorKind::Usage => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(table) = with_coordinates.as_grid() else { return Ok(None) };
    Ok(curved_pair(&table.array(), names).map(|pair| (table.clone(), pair)))
}

fn curved_pair(array: &GridArray, names: &GridOptions) -> Option<CurvedPair> {
    let columns = array.schema().fields().iter().zip(array.columns());
    let planes: Vec<(&Field, Vec<usize>)> = columns
        .filter_map(|(field, column)| Some((field.as_ref(), array.axes_of(column.value()?))))
        .filter(|(_, axes)| axes.len() == 2)
        .collect();
    let find = |name: &Option<String>, role: Role| {
        planes.iter().find(|(field, _)| match name {
            Some(name) => field.name() == name,
            None => Role::of(field) == Some(role),
        })
    };
    let (lat, axes) = find(&names.y, Role::Latitude)?;
    let (lon, other_axes) = find(&names.x, Role::Longitude)?;
    let pair: [usize; 2] = axes.clone().try_into().ok()?;
    (other_axes == axes).then(|| CurvedPair {
        lat: lat.name().clone(),
        lon: lon.name().clone(),
        axes: pair,
    })
}

/// Reads the latitude and the longitude of each cell.
async fn centres(array: &Arc<GridArray>, pair: &CurvedPair) -> Result<[Vec<f64>; 2]> {
    let wanted = [("y", &pair.lat, Role::Latitude), ("x", &pair.lon, Role::Longitude)];
    for (option, name, role) in wanted {
        let Ok(field) = array.schema().field_with_name(name) else { continue };
        let is_other = Role::of(field).is_some_and(|it| it.is_geographic() && it != role);
        let checked = match is_other || pair.lat == pair.lon {
            true => {
                Err(Error::usage(format!("option '{option}' is '{name}', which is no {role:?}")))
            }
            false => roles::check_units(field, Some(role)),
        };
        checked.map_err(|error| array.objects().named(error))?;
    }
    let lat = variables::read(array, &pair.lat, &pair.axes).await?;
    Ok([lat, variables::read(array, &pair.lon, &pair.axes).await?])
}

async fn curvilinear_grid(array: &Arc<GridArray>, pair: &CurvedPair) -> Result<LabelledGrid> {
    let [lat, lon] = centres(array, pair).await?;
    let axes = [labelled_axis(array, pair.axes[0])?, labelled_axis(array, pair.axes[1])?];
    let grid = LabelledGrid::curvilinear(array.name().to_owned(), axes, &lat, &lon);
    grid.map_err(|error| array.objects().named(error))
}

/// Returns a curvilinear grid whose cells have edges: those of the bounds, or else halfway between places.
async fn curvilinear_cells(
    opener: &ArrayOpener,
    table: &GridTable,
    array: &Arc<GridArray>,
    pair: &CurvedPair,
    options: &GridOptions,
) -> Result<LabelledGrid> {
    let [lat, lon] = centres(array, pair).await?;
    let dimensions = pair.axes.map(|axis| &array.dims()[axis]);
    let mut corners = [None, None];
    for (corners, name) in corners.iter_mut().zip([&pair.lat, &pair.lon]) {
        let field = array.schema().field_with_name(name).ok();
        let bounds = field.and_then(|it| it.metadata().get("bounds"));
        if let Some(bounds) = bounds.filter(|_| !options.has_midpoints) {
            *corners = variables::vertices(opener, table, name, &dimensions, bounds.trim()).await?;
        }
    }
    let columns = dimensions[1].len() as usize;
    let cells = match &corners {
        [Some(lat_corners), Some(lon_corners)] => {
            let centres = Some([lat.as_slice(), lon.as_slice()]);
            CurvilinearCells::try_new(lat_corners, lon_corners, columns, centres)
        }
        [None, None] => CurvilinearCells::from_centres(&lat, &lon, columns),
        _ => Err(Error::usage(format!(
            "only one of \"{}\" and \"{}\" has bounds: edges => 'midpoints' ignores them",
            pair.lat, pair.lon
        ))),
    };
    let cells = cells.map_err(|error| array.objects().named(error))?;
    let axes = [labelled_axis(array, pair.axes[0])?, labelled_axis(array, pair.axes[1])?];
    Ok(LabelledGrid::quadrilaterals(array.name().to_owned(), axes, cells))
}
