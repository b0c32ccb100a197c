//! A variable as a [`GridArray`].

use std::borrow::Cow;
use std::sync::Arc;

use super::chunks::VariableChunks;
use super::complex::missing_number;
use super::labels::{grid, read_labels, variable};
use super::options::HierarchyView;
use super::roles::Roles;
use super::store::VariableStore;
use super::values::{attributes, values};
use crate::hierarchy::{Attribute, Variable};
use gridfusion_core::array::{Dimension, GridArray, Labels, Remarks, Value};
use gridfusion_core::grid::axis_names;
use gridfusion_core::{Error, ErrorKind, Result};

/// Labels that were read, by the number of their variable. `None` stands for labels that are ignored.
pub(super) type KnownLabels = Vec<(usize, Option<Labels>)>;

/// Opens a variable: reads the labels of its dimensions, unless they are known.
pub(super) async fn open_variable(
    store: &Arc<dyn VariableStore>,
    roles: &Roles,
    number: usize,
    view: &HierarchyView,
    known: &mut KnownLabels,
) -> Result<GridArray> {
    let variable = variable(&**store, number)?;
    let mut remarks = Remarks::default();
    let grid = grid(variable)?;
    let names = dimension_names(variable, &view.dimension_names, &mut remarks);
    let of_axes: Vec<Option<usize>> = names
        .iter()
        .enumerate()
        .map(|(axis, name)| roles.labels_of(store.hierarchy(), variable, axis, name))
        .collect();
    read_unknown(store, &of_axes, &names, view, known, &mut remarks).await?;
    let mut dims = Vec::with_capacity(names.len());
    for ((name, number), axis) in names.into_iter().zip(of_axes).zip(&variable.axes) {
        dims.push(dimension(store, number, name, axis.len, known, view)?);
    }
    // A store that is a single array has no name.
    let own = if variable.path.is_empty() { "value" } else { variable.name() };
    let name = Value::name_beside(&dims, own);
    let described = with_units(store, roles, number)?;
    let mut values = values(&described, name, view, &mut remarks)?;
    if !roles.is_data(number, variable) {
        values = values.into_iter().map(Value::of_labels).collect();
    }
    let place = store.objects().name();
    remarks.log(&format!("{place}: variable \"{}\"", variable.path));
    let source = VariableChunks {
        store: Arc::clone(store),
        variable: number,
        cell: variable.cell.clone(),
        missing: missing_number(variable, view),
    };
    let path = variable.path.clone();
    Ok(GridArray::new(path, Arc::new(source), grid, dims, values, view.read.index_columns))
}

/// Returns a variable; bounds of times have the units of the times, unless they have their own.
fn with_units<'a>(
    store: &'a Arc<dyn VariableStore>,
    roles: &Roles,
    number: usize,
) -> Result<Cow<'a, Variable>> {
    let mut own = Cow::Borrowed(variable(&**store, number)?);
    let Some(bounded) = roles.bounded_by(number) else { return Ok(own) };
    let bounded = variable(&**store, bounded)?;
    let units = bounded.attributes.get("units").and_then(Attribute::text);
    if units.is_some_and(|units| units.contains(" since ")) {
        for name in ["units", "calendar"] {
            if let (Some(value), false) =
                (bounded.attributes.get(name), own.attributes.contains_key(name))
            {
                let attributes = Arc::make_mut(&mut own.to_mut().attributes);
                attributes.insert(name.to_owned(), value.clone());
            }
        }
    }
    Ok(own)
}

/// Reads the labels that are not known yet, of the variables `of_axes`. All are read at once, because each takes round trips
/// to an object store.
async fn read_unknown(
    store: &Arc<dyn VariableStore>,
    of_axes: &[Option<usize>],
    names: &[String],
    view: &HierarchyView,
    known: &mut KnownLabels,
    remarks: &mut Remarks,
) -> Result<()> {
    let mut unknown: Vec<(usize, &String)> = vec![];
    for (number, name) in of_axes.iter().zip(names) {
        let is_known = |number: &usize| {
            known.iter().any(|(it, _)| it == number) || unknown.iter().any(|(it, _)| it == number)
        };
        if let Some(number) = number.filter(|number| !is_known(number)) {
            unknown.push((number, name));
        }
    }
    let read = unknown.into_iter().map(|(number, name)| async move {
        let mut of_labels = Remarks::default();
        let labels = read_labels(store, number, view, &mut of_labels).await;
        (number, name, labels, of_labels)
    });
    for (number, name, labels, mut of_labels) in futures::future::join_all(read).await {
        let labels = match labels {
            // Other values over the dimension can be read without its labels.
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                of_labels.odd.push(format!("{}; they are ignored", error.detail()));
                None
            }
            labels => labels.map_err(|error| error.about(&format!("labels of \"{name}\"")))?,
        };
        remarks.of_labels(name, of_labels);
        known.push((number, labels));
    }
    Ok(())
}

/// Makes a dimension with the labels of a variable, which are known.
fn dimension(
    store: &Arc<dyn VariableStore>,
    number: Option<usize>,
    name: String,
    len: u64,
    known: &KnownLabels,
    view: &HierarchyView,
) -> Result<Dimension> {
    let labels = known.iter().find(|(read, _)| Some(*read) == number);
    Ok(match (number, labels.and_then(|(_, labels)| labels.clone())) {
        (Some(_), Some(labels)) if labels.len() != len => {
            let message = format!("{} labels of \"{name}\" for {len} places", labels.len());
            return Err(Error::internal(message));
        }
        (Some(number), Some(labels)) => {
            let attributes = attributes(variable(&**store, number)?, view);
            Dimension::new(name, Some(labels), len, attributes)
        }
        _ => Dimension::indexed(name, len),
    })
}

/// Returns one name per axis. Axes without a name have the `given` one, if there is one per axis.
fn dimension_names(variable: &Variable, given: &[String], remarks: &mut Remarks) -> Vec<String> {
    let names = variable.axes.iter().enumerate().map(|(place, axis)| {
        let own = axis.name.as_ref().filter(|name| !name.is_empty());
        let given = given.get(place).filter(|_| given.len() == variable.axes.len());
        own.or(given).cloned().unwrap_or_default()
    });
    axis_names(names.collect(), &mut remarks.odd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hierarchy::{Axis, CellType};
    use gridfusion_core::format::ElementType;

    /// Returns the names of axes, of which `""` has none in the file, and the number of remarks on them.
    fn names(axes: &[&str], given: &[&str]) -> (Vec<String>, usize) {
        let axis = |&name: &&str| Axis::new((!name.is_empty()).then(|| name.to_owned()), 2);
        let (axes, cell) = (axes.iter().map(axis).collect(), CellType::Number(ElementType::F32));
        let variable = Variable::new("v".to_owned(), axes, cell, vec![0; 4]);
        let given: Vec<String> = given.iter().map(|&name| name.to_owned()).collect();
        let mut remarks = Remarks::default();
        let names = dimension_names(&variable, &given, &mut remarks);
        (names, remarks.odd.len())
    }

    #[test]
    fn a_name_of_the_file_stays_and_a_given_one_fills_a_gap() {
        for (axes, given, expected, remarks) in [
            (["x", "x", "x_1"], &[][..], ["x", "x_1_", "x_1"], 1),
            (["", "y", ""], &[], ["dim_0", "y", "dim_2"], 0),
            (["", "y", ""], &["a", "b", "c"], ["a", "y", "c"], 0),
            (["", "y", ""], &["a", "b"], ["dim_0", "y", "dim_2"], 0),
            (["", "y", ""], &["y", "b", "c"], ["y", "y_1", "c"], 1),
        ] {
            let expected = expected.map(str::to_owned).to_vec();
            assert_eq!(names(&axes, given), (expected, remarks), "{axes:?} {given:?}");
        }
    }
}
