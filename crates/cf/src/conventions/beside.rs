//! Coordinates as columns beside the values that name them: `lat (y, x)` beside `t2m (time, y, x)`.

use std::sync::Arc;

use super::options::HierarchyView;
use super::roles::Roles;
use super::store::VariableStore;
use super::variable_array::{KnownLabels, open_variable};
use gridfusion_core::array::{Dimension, GridArray};
use gridfusion_core::{ErrorKind, Result};

/// Returns the coordinates that variables name, repeated along the dimensions that they lack. `shown` holds the arrays
/// of the variables with their numbers.
///
/// Leaves out a coordinate that is unreadable, or whose dimensions are not those of the variables, with a warning.
pub(super) async fn coordinates_beside(
    store: &Arc<dyn VariableStore>,
    roles: &Roles,
    shown: &[(usize, &GridArray)],
    view: &HierarchyView,
) -> Result<Vec<GridArray>> {
    // A single value is a table of its own.
    let first = shown.first().filter(|(_, array)| !array.dims().is_empty());
    let Some((_, first)) = first else { return Ok(vec![]) };
    let mut known = labels_of(store, roles, shown);
    let mut columns: Vec<GridArray> = Vec::new();
    for number in numbers(store, roles, shown) {
        let name = store.hierarchy().variables[number].name();
        let opened = open_variable(store, roles, number, view, &mut known).await;
        match opened.and_then(|array| array.with_name(name).broadcast(first)) {
            Ok(array) => columns.push(array),
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Usage) => {
                let (place, why) = (store.objects().name(), error.detail());
                log::warn!("{place}: coordinate \"{name}\" is left out: {why}");
            }
            Err(error) => return Err(store.objects().named(error)),
        }
    }
    Ok(columns)
}

/// Returns the numbers of the coordinates, each once, without variables that the table has already and without those
/// with the name of a dimension.
fn numbers(
    store: &Arc<dyn VariableStore>,
    roles: &Roles,
    shown: &[(usize, &GridArray)],
) -> Vec<usize> {
    let hierarchy = store.hierarchy();
    let mut numbers: Vec<usize> = Vec::new();
    for (variable, array) in shown {
        let is_dimension = |number: usize| {
            let name = hierarchy.variables[number].name();
            array.dims().iter().map(Dimension::name).any(|dim| dim == name)
        };
        let named = roles.coordinates_of(hierarchy, &hierarchy.variables[*variable]);
        for number in named {
            let is_shown = shown.iter().any(|(shown, _)| *shown == number);
            if !is_shown && !is_dimension(number) && !numbers.contains(&number) {
                numbers.push(number);
            }
        }
    }
    numbers
}

/// Returns the labels of the arrays, so that none is read twice.
fn labels_of(
    store: &Arc<dyn VariableStore>,
    roles: &Roles,
    shown: &[(usize, &GridArray)],
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
