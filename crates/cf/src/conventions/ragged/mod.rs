//! Ragged arrays: the variables of instances, such as stations, profiles or trajectories, beside their samples.
//!
//! ```text
//!   row_size (station)   2  3             the table        obs  station  station_name  temperature
//!   station_name         Oslo Bergen                       0    0        Oslo          1.5
//!   temperature (obs)    1.5 1.6 7 8 9              ─▶     1    0        Oslo          1.6
//!                                                          2    1        Bergen        7
//! ```
//!
//! - `links` finds the variables that tell the instance of each sample; `members` holds that as runs.
//! - `column` is a source whose chunks are made from the values of the instances, which are read once. It knows the bounds of
//!   each chunk, so a condition on an instance skips chunks of all columns.
//!
//! Counts must add up to the length of the sample dimension. A missing or negative index belongs to no instance, whose columns are
//! NULL. An instance without samples has no row.
//!
//! Facts: the CF conventions 1.11, sections 9.3.3, 9.3.4 and the appendices H.2 to H.6.

mod cells;
mod column;
mod links;
mod members;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;

use gridfusion_core::array::{Dimension, GridArray, NumberColumn, Value, ValueColumn};
use gridfusion_core::format::ElementType;
use gridfusion_core::grid::ChunkGrid;
use gridfusion_core::source::BesideArray;
use gridfusion_core::tile::CellFormat;
use gridfusion_core::{Error, ErrorKind, Result};

use self::column::{InstanceColumn, InstanceValues, column};
pub(super) use self::links::Links;
use self::links::{Link, MOST_LEVELS};
use self::members::Members;
use super::labels::read_line;
use super::options::{Coordinates, HierarchyView};
use super::roles::Roles;
use super::store::VariableStore;
use super::variable_array::{KnownLabels, open_variable};
use crate::hierarchy::{Hierarchy, Variable};

/// Returns the data variables that are columns of one table. Where there are samples, variables of their instances are left out:
/// they are columns beside them.
pub(super) fn samples<'a>(
    hierarchy: &Hierarchy,
    data: Vec<(&'a str, &'a Variable)>,
) -> Vec<(&'a str, &'a Variable)> {
    Links::new(hierarchy).samples(data)
}

/// Returns an array of a variable, and tells it which of its dimensions count samples.
pub(super) fn with_samples(
    hierarchy: &Hierarchy,
    links: &Links,
    number: usize,
    array: GridArray,
) -> GridArray {
    let Some(variable) = hierarchy.variables.get(number) else { return array };
    let axes = variable.axes.iter().enumerate().filter(|(_, axis)| {
        let name = axis.name.as_deref();
        name.is_some_and(|name| links.of(variable.group(), name).next().is_some())
    });
    let axes: Vec<usize> = axes.map(|(axis, _)| axis).collect();
    array.with_samples(&axes)
}

/// Returns a line per sample dimension for descriptions: `ragged: obs of station`.
pub(super) fn described(hierarchy: &Hierarchy) -> Vec<String> {
    let mut lines: Vec<String> = vec![];
    for link in Links::new(hierarchy).all {
        let line = format!("ragged: {} of {}", link.samples, link.instances);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Returns the columns beside variables over samples: the variables of their instances, and the coordinates that they name.
/// `None` if they are no samples. `shown` holds the arrays of the variables with their numbers.
///
/// # Errors
/// `Corrupt` if counts or indices contradict the dimensions.
pub(super) async fn ragged_beside(
    store: &Arc<dyn VariableStore>,
    roles: &Roles,
    shown: &[(usize, &GridArray)],
    view: &HierarchyView,
) -> Result<Option<Vec<BesideArray>>> {
    let is_asked = view.coordinates != Coordinates::None;
    let first = shown.first().filter(|(_, array)| is_asked && !array.dims().is_empty());
    let Some((number, first)) = first else { return Ok(None) };
    let links = Links::new(store.hierarchy());
    if links.all.is_empty() {
        return Ok(None);
    }
    let mut beside = Beside::new(store, roles, view, first, shown);
    let levels = beside.levels(&links, *number).await?;
    if levels.is_empty() {
        return Ok(None);
    }
    for (number, name) in beside.coordinates(shown, &levels) {
        beside.add_coordinate(number, name).await?;
    }
    for level in &levels {
        beside.add_level(level).await?;
    }
    Ok(Some(beside.columns))
}

/// Instances of the samples along one axis of the table.
struct Level {
    axis: usize,
    link: Link,
    /// The number of instances, if the file has it.
    len: Option<u64>,
    members: Arc<Members>,
    /// The variables with counts or indices, from the samples on.
    variables: Vec<usize>,
}

/// The columns beside some variables, as they are found.
struct Beside<'a> {
    store: &'a Arc<dyn VariableStore>,
    roles: &'a Roles,
    view: &'a HierarchyView,
    /// The array whose dimensions and chunks the columns get.
    first: &'a GridArray,
    known: KnownLabels,
    /// The names of dimensions and columns.
    taken: HashSet<String>,
    columns: Vec<BesideArray>,
}

impl<'a> Beside<'a> {
    fn new(
        store: &'a Arc<dyn VariableStore>,
        roles: &'a Roles,
        view: &'a HierarchyView,
        first: &'a GridArray,
        shown: &[(usize, &GridArray)],
    ) -> Self {
        let variables = &store.hierarchy().variables;
        let names = shown.iter().filter_map(|(number, _)| Some(variables.get(*number)?.name()));
        let dims = first.dims().iter().map(Dimension::name);
        let taken = names.chain(dims).map(str::to_owned).collect();
        let (known, columns) = (KnownLabels::new(), vec![]);
        Self { store, roles, view, first, known, taken, columns }
    }

    fn hierarchy(&self) -> &'a Hierarchy {
        self.store.hierarchy()
    }

    /// Finds the instances of all axes of a variable, and theirs.
    async fn levels(&mut self, links: &Links, number: usize) -> Result<Vec<Level>> {
        let variables = &self.hierarchy().variables;
        let variable = variables.get(number);
        let variable = variable.ok_or_else(|| Error::internal("a variable that does not exist"))?;
        let mut levels: Vec<Level> = vec![];
        for (axis, dim) in variable.axes.iter().enumerate() {
            let Some(name) = dim.name.as_deref() else { continue };
            for link in links.of(variable.group(), name) {
                if let Some(level) = self.level(axis, link, dim.len).await? {
                    levels.push(level);
                }
            }
        }
        let mut next = 0;
        while next < levels.len() && levels.len() < MOST_LEVELS {
            let of = next;
            next += 1;
            for link in links.of(variable.group(), &levels[of].link.instances.clone()) {
                let Some(len) = levels[of].len else { continue };
                let is_known = levels.iter().any(|it| it.link.instances == link.instances);
                let axis = levels[of].axis;
                if is_known || variable.axes[axis].name.as_deref() == Some(&link.instances) {
                    continue;
                }
                if let Some(level) = self.level(axis, link, len).await? {
                    let members = levels[of].members.then(&level.members);
                    let variables = [levels[of].variables.clone(), level.variables].concat();
                    levels.push(Level { members: Arc::new(members), variables, ..level });
                }
            }
        }
        Ok(levels)
    }

    /// Reads the instances of `len` samples; `None` if the link is about another dimension of that name.
    async fn level(&mut self, axis: usize, link: &Link, len: u64) -> Result<Option<Level>> {
        let variables = &self.hierarchy().variables;
        let own = variables.get(link.variable).and_then(|it| it.axes.first()).map(|it| it.len);
        let of_instances = || {
            let mut instances = variables.iter().filter(|it| link.has_instances(it));
            instances.next().and_then(|it| it.axes.first()).map(|it| it.len)
        };
        if !link.counts && own != Some(len) {
            return Ok(None);
        }
        let instances = if link.counts { own } else { of_instances() };
        let members = self.members(link, len, instances).await.map_err(|error| {
            let name = variables.get(link.variable).map_or("", |it| it.name());
            self.store.objects().named(error.about(&format!("\"{name}\"")))
        })?;
        let (link, variables) = (link.clone(), vec![link.variable]);
        Ok(Some(Level { axis, link, len: instances, members: Arc::new(members), variables }))
    }

    async fn members(&mut self, link: &Link, len: u64, instances: Option<u64>) -> Result<Members> {
        let mut view = self.view.clone();
        let variable = self.hierarchy().variables.get(link.variable);
        // In version 2 of Zarr, the fill value is missing data. But 0 is a count and an index like others.
        if variable.is_some_and(|it| it.fill_is_missing && it.fill.iter().all(|byte| *byte == 0)) {
            view.read.fill_as_null = false;
        }
        let (store, roles, known) = (self.store, self.roles, &mut self.known);
        let array = open_variable(store, roles, link.variable, &view, known).await?;
        let numbers = read_line(&array).await?;
        let numbers = numbers.ok_or_else(|| {
            Error::unsupported("it has many elements, but few are stored".to_owned())
        })?;
        match link.counts {
            true => Members::from_counts(&numbers, len),
            false => Members::from_indices(&numbers, instances),
        }
    }

    async fn open(&mut self, number: usize) -> Result<GridArray> {
        open_variable(self.store, self.roles, number, self.view, &mut self.known).await
    }

    /// Returns the coordinates over dimensions of the table that variables name, with their names. Warns of those over others,
    /// unless they are of instances.
    fn coordinates(
        &self,
        shown: &[(usize, &GridArray)],
        levels: &[Level],
    ) -> Vec<(usize, &'a str)> {
        let variables = &self.hierarchy().variables;
        let mut found: Vec<(usize, &str)> = vec![];
        let shown = shown.iter().filter_map(|(number, _)| variables.get(*number));
        for number in self.roles.coordinates_of(self.hierarchy(), shown) {
            let Some(coordinate) = variables.get(number) else { continue };
            let is_here = coordinate.axes.iter().all(|axis| {
                self.first.dims().iter().any(|dim| Some(dim.name()) == axis.name.as_deref())
            });
            if levels.iter().any(|it| it.link.has_instances(coordinate)) {
                continue;
            }
            if is_here {
                found.push((number, coordinate.name()));
            } else {
                let (place, name) = (self.store.objects().name(), coordinate.name());
                log::warn!("{place}: coordinate \"{name}\" is left out: it has other dimensions");
            }
        }
        found
    }

    /// Adds a coordinate over dimensions of the table.
    async fn add_coordinate(&mut self, number: usize, name: &str) -> Result<()> {
        if !self.taken.contains(name) {
            let opened = self.open(number).await;
            let array = opened.and_then(|array| array.with_name(name).broadcast(self.first));
            let axes = self.hierarchy().variables[number].axes.iter();
            let cells = axes.map(|axis| axis.len).fold(1, u64::saturating_mul);
            self.add(name, array, cells)?;
        }
        Ok(())
    }

    /// Adds the variables of instances. If none has the name of their dimension, their numbers are a column.
    async fn add_level(&mut self, level: &Level) -> Result<()> {
        let dim = level.link.instances.as_str();
        let variables = self.hierarchy().variables.iter().enumerate();
        let of_instances = variables.filter(|(number, it)| {
            let is_link = it.attributes.contains_key("sample_dimension")
                || it.attributes.contains_key("instance_dimension");
            level.link.has_instances(it)
                && !level.variables.contains(number)
                && !is_link
                && level.len.is_none_or(|len| it.axes.iter().all(|axis| axis.len == len))
        });
        let of_instances: Vec<(usize, &str)> =
            of_instances.map(|(at, it)| (at, it.name())).collect();
        let is_named = of_instances.iter().any(|(_, name)| *name == dim);
        if !is_named && !self.taken.contains(dim) {
            let array = self.numbers(level);
            self.add(dim, array, level.members.most())?;
        }
        for (number, name) in of_instances {
            if self.taken.contains(name) {
                let place = self.store.objects().name();
                log::warn!("{place}: \"{name}\" of \"{dim}\" is left out: a column has its name");
                continue;
            }
            let array = match self.open(number).await {
                Ok(array) => self.expanded(level, number, name, array),
                Err(error) => Err(error),
            };
            self.add(name, array, level.members.most())?;
        }
        Ok(())
    }

    /// Adds a column, or warns that it is left out.
    fn add(&mut self, name: &str, array: Result<GridArray>, cells: u64) -> Result<()> {
        match array {
            Ok(array) => {
                self.taken.insert(name.to_owned());
                let is_optional = self.view.coordinates == Coordinates::Cheap;
                self.columns.push(BesideArray { array: array.into(), cells, is_optional });
            }
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Usage) => {
                let (place, why) = (self.store.objects().name(), error.detail());
                log::warn!("{place}: \"{name}\" is left out: {why}");
            }
            Err(error) => return Err(self.store.objects().named(error)),
        }
        Ok(())
    }

    /// Returns a variable of instances, expanded to their samples.
    fn expanded(
        &self,
        level: &Level,
        number: usize,
        name: &str,
        array: GridArray,
    ) -> Result<GridArray> {
        let (own, values) = InstanceValues::of(&Arc::new(array), &level.members);
        self.over_samples(
            level,
            name,
            [level.variables.as_slice(), &[number]].concat(),
            own,
            values,
        )
    }

    /// Returns the number of each sample's instance.
    fn numbers(&self, level: &Level) -> Result<GridArray> {
        /// The most numbers of instances that have no samples.
        const MOST: u64 = 1 << 24;
        let name = level.link.instances.as_str();
        let most = level.members.most();
        if most > MOST.max(level.members.len()) {
            return Err(Error::unsupported(format!(
                "there are {most} instances, most without samples"
            )));
        }
        let plain = NumberColumn::plain(ElementType::I64, None, false, &self.view.read);
        let value = Value::new(name, ValueColumn::Number(plain), CellFormat::fixed(8));
        let (value, _) = column(&value, &level.members);
        let own = InstanceValues::numbers(most, &level.members);
        self.over_samples(level, name, level.variables.clone(), vec![own], vec![value])
    }

    fn over_samples(
        &self,
        level: &Level,
        name: &str,
        variables: Vec<usize>,
        own: Vec<InstanceValues>,
        values: Vec<Value>,
    ) -> Result<GridArray> {
        let missing = || Error::internal("an axis that an array does not have");
        let dim = self.first.dims().get(level.axis).ok_or_else(missing)?.clone();
        let chunks = self.first.grid().axis_chunks().get(level.axis).ok_or_else(missing)?.clone();
        let grid = ChunkGrid::with_axis_chunks(&[dim.len()], vec![chunks])?;
        let (store, members) = (Arc::clone(self.store), Arc::clone(&level.members));
        let source = InstanceColumn { store, variables, members, grid: grid.clone(), values: own };
        let array =
            GridArray::new(name.to_owned(), Arc::new(source), grid, vec![dim], values, false);
        array.broadcast(self.first)
    }
}
