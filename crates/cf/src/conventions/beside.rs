//! Coordinates as columns beside the values that name them: `lat (y, x)` beside `t2m (time, y, x)`.
//!
//! | option `coordinates` | columns beside data variables |
//! |---|---|
//! | `cheap`, the default | the coordinates of at most one dimension, which name, length and labels find among those of the values |
//! | `true` | all coordinates that the variables or their groups name |
//! | `lat, lon` | these variables |
//! | `false` | none |
//!
//! Opening a table reads no coordinate, only labels. Beside samples, it reads counts and indices too.

use std::collections::HashSet;
use std::sync::Arc;

use super::options::{Coordinates, HierarchyView};
use super::roles::Roles;
use super::store::VariableStore;
use super::variable_array::{KnownLabels, open_variable};
use crate::hierarchy::Variable;
use gridfusion_core::array::{Dimension, GridArray};
use gridfusion_core::source::BesideArray;
use gridfusion_core::{Error, ErrorKind, Result};

/// The arrays of variables, with their numbers.
pub(super) type Shown<'a> = [(usize, &'a GridArray)];

/// Returns the numbers of the coordinates that the option asks for beside variables, each once. Leaves out variables that the
/// table has already, and those with the name of a dimension.
///
/// # Errors
/// `Usage` if the option names a variable that the file does not have.
pub(super) fn coordinates(
    store: &Arc<dyn VariableStore>,
    roles: &Roles,
    shown: &Shown<'_>,
    view: &HierarchyView,
) -> Result<Vec<usize>> {
    let Some((number, widest)) = widest(shown) else { return Ok(vec![]) };
    let hierarchy = store.hierarchy();
    let of = |number: usize| &hierarchy.variables[number];
    let mut found: Vec<usize> = match &view.coordinates {
        Coordinates::None => vec![],
        Coordinates::Named(names) => {
            let group = of(number).group();
            let find = |name: &String| {
                let message = || format!("option 'coordinates': there is no variable \"{name}\"");
                let number = roles.find(group, name);
                number.ok_or_else(|| store.objects().named(Error::usage(message())))
            };
            names.iter().map(find).collect::<Result<_>>()?
        }
        Coordinates::All => {
            roles.coordinates_of(hierarchy, shown.iter().map(|(number, _)| of(*number)))
        }
        Coordinates::Cheap => {
            let data = shown.iter().filter(|(number, _)| roles.is_data(*number, of(*number)));
            let mut all = roles.coordinates_of(hierarchy, data.map(|(number, _)| of(*number)));
            all.retain(|number| is_cheap(of(*number), widest));
            all
        }
    };
    let mut met: HashSet<usize> = shown.iter().map(|(number, _)| *number).collect();
    found.retain(|number| met.insert(*number) && dim_of(widest, of(*number).name()).is_none());
    Ok(found)
}

/// Opens the coordinates of these numbers, repeated along the dimensions that they lack. `shown` holds the arrays of the
/// variables with their numbers.
///
/// Leaves out a coordinate that is unreadable, or whose dimensions are not those of the variables, with a warning.
pub(super) async fn open_beside(
    store: &Arc<dyn VariableStore>,
    roles: &Roles,
    shown: &Shown<'_>,
    view: &HierarchyView,
    coordinates: Vec<usize>,
) -> Result<Vec<BesideArray>> {
    let Some((_, widest)) = widest(shown) else { return Ok(vec![]) };
    let is_optional = view.coordinates == Coordinates::Cheap;
    let mut known = labels_of(store, roles, shown);
    let mut taken = taken(shown);
    let mut columns: Vec<BesideArray> = Vec::new();
    for number in coordinates {
        let variable = &store.hierarchy().variables[number];
        let name = variable.name();
        let opened = match taken.insert(name.to_owned()) {
            false => Err(Error::usage("another column has this name")),
            true => open_variable(store, roles, number, view, &mut known).await,
        };
        match opened.and_then(|array| array.with_name(name).broadcast(widest)) {
            Ok(array) => columns.push(BesideArray {
                array: array.into(),
                cells: variable.axes.iter().map(|axis| axis.len).fold(1, u64::saturating_mul),
                is_optional,
            }),
            Err(error) if may_be_left_out(&error, is_optional) => {
                let (place, why) = (store.objects().name(), error.detail());
                log::warn!("{place}: coordinate \"{name}\" is left out: {why}");
            }
            Err(error) => return Err(store.objects().named(error)),
        }
    }
    Ok(columns)
}

/// Returns the array of the highest rank with its number, of several the first; `None` for single values, which are tables of
/// their own.
pub(super) fn widest<'a>(shown: &Shown<'a>) -> Option<(usize, &'a GridArray)> {
    let (number, widest) = shown.iter().rev().max_by_key(|(_, array)| array.dims().len())?;
    (!widest.dims().is_empty()).then_some((*number, *widest))
}

/// Returns the names of the columns that a table of these arrays has.
pub(super) fn taken(shown: &Shown<'_>) -> HashSet<String> {
    let names = shown.iter().flat_map(|(_, array)| {
        // In a table of several arrays, only several values of one keep their names.
        let has_own = shown.len() == 1 || array.value_count() > 1;
        let values = array.values().iter().filter(move |_| has_own);
        let dims = array.dims().iter().map(Dimension::name);
        values.map(|value| value.name.as_str()).chain([array.name()]).chain(dims)
    });
    let value = (shown.len() == 1).then_some("value");
    names.chain(value).map(str::to_owned).collect()
}

/// Whether a table does without a coordinate that cannot be opened.
pub(super) fn may_be_left_out(error: &Error, is_optional: bool) -> bool {
    match error.kind() {
        ErrorKind::Unsupported | ErrorKind::Usage => true,
        ErrorKind::Corrupt => is_optional,
        _ => false,
    }
}

/// Whether a coordinate is a single value, or has one dimension, which the values have too.
fn is_cheap(coordinate: &Variable, values: &GridArray) -> bool {
    match coordinate.axes.as_slice() {
        [] => true,
        // An axis without a name gets one when the variable is opened.
        [axis] => axis
            .name
            .as_ref()
            .is_none_or(|name| dim_of(values, name).is_some_and(|dim| dim.len() == axis.len)),
        _ => false,
    }
}

fn dim_of<'a>(array: &'a GridArray, name: &str) -> Option<&'a Dimension> {
    array.dims().iter().find(|dim| dim.name() == name)
}

/// Returns the labels of the arrays, so that none is read twice.
pub(super) fn labels_of(
    store: &Arc<dyn VariableStore>,
    roles: &Roles,
    shown: &Shown<'_>,
) -> KnownLabels {
    let hierarchy = store.hierarchy();
    let axes = shown.iter().flat_map(|(number, array)| {
        let variable = &hierarchy.variables[*number];
        array.dims().iter().enumerate().map(move |(axis, dim)| (variable, axis, dim))
    });
    let labels = axes.filter_map(|(variable, axis, dim)| {
        let number = roles.labels_of(hierarchy, variable, axis, dim.name())?;
        Some((number, dim.is_labelled().then(|| dim.labels().clone())))
    });
    labels.collect()
}
