//! Ragged arrays: the variables of instances, such as stations, profiles or trajectories, beside their samples.
//!
//! ```text
//!   row_size (station)   2  3             the table        obs  station  station_name  temperature
//!   station_name         Oslo Bergen                       0    0        Oslo          1.5
//!   temperature (obs)    1.5 1.6 7 8 9              ─▶     1    0        Oslo          1.6
//!                                                          2    1        Bergen        7
//! ```
//!
//! - `links` finds the variables that tell the instance of each sample; `levels` reads them, and `members` holds them as runs.
//! - `column` is a source whose chunks are made from the values of the instances, which are read once. It knows the bounds of
//!   each chunk, so a condition on an instance skips chunks of all columns.
//!
//! A missing or negative index belongs to no instance, whose columns are NULL. An instance without samples has no row.
//!
//! | counts and indices | error |
//! |---|---|
//! | counts that do not add up to the length of the sample dimension, or are missing or negative; an index beyond the instances | `Corrupt` |
//! | other numbers than integers; more than 2^32 instances; many numbers of which few are stored | `Unsupported` |
//!
//! Each names the option that reads the table without instances. Counts of an outer group do not tell about a dimension that an
//! inner group defines again with another length.
//!
//! Facts: the CF conventions 1.11, sections 9.3.3, 9.3.4 and the appendices H.2 to H.6.

mod cells;
mod column;
mod levels;
mod links;
mod members;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;

use gridfusion_core::array::{GridArray, NumberColumn, Value, ValueColumn};
use gridfusion_core::format::ElementType;
use gridfusion_core::grid::ChunkGrid;
use gridfusion_core::source::BesideArray;
use gridfusion_core::tile::CellFormat;
use gridfusion_core::{Error, Result};

use self::column::{InstanceColumn, InstanceValues, column};
use self::levels::{Finder, Level, without_labels};
pub(super) use self::links::Links;
use super::beside::{Shown, labels_of, may_be_left_out, taken, widest};
use super::options::{Coordinates, HierarchyView};
use super::roles::Roles;
use super::store::VariableStore;
use super::variable_array::{KnownLabels, open_variable};
use crate::hierarchy::{Hierarchy, Variable};

/// Returns the data variables that are columns of one table. Where there are samples, variables of their instances are left out:
/// they are columns beside them, unless the option `coordinates` is `false`.
pub(super) fn samples<'a>(
    hierarchy: &Hierarchy,
    data: Vec<(&'a str, &'a Variable)>,
    coordinates: &Coordinates,
) -> Vec<(&'a str, &'a Variable)> {
    Links::new(hierarchy).samples(data, *coordinates == Coordinates::None)
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
        name.is_some_and(|name| links.of(variable.group(), name, axis.len).next().is_some())
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

/// The instances of samples, and the columns beside these, as they are found.
pub(super) struct Ragged<'a> {
    store: &'a Arc<dyn VariableStore>,
    roles: &'a Roles,
    view: &'a HierarchyView,
    /// The array whose dimensions and chunks the columns get.
    widest: &'a GridArray,
    /// The coordinates that the option names, if it names any.
    named: Option<HashSet<usize>>,
    levels: Vec<Level>,
    /// The labels of the table.
    known: KnownLabels,
    /// The names of the columns.
    taken: HashSet<String>,
    columns: Vec<BesideArray>,
}

impl<'a> Ragged<'a> {
    /// Reads which instances samples belong to; `None` for variables that are no samples. `shown` holds the arrays of the
    /// variables with their numbers, and `coordinates` the numbers of the coordinates that the option asks for.
    ///
    /// # Errors
    /// As the table of the module.
    pub(super) async fn find(
        store: &'a Arc<dyn VariableStore>,
        roles: &'a Roles,
        shown: &Shown<'a>,
        view: &'a HierarchyView,
        coordinates: &[usize],
    ) -> Result<Option<Self>> {
        let is_asked = view.coordinates != Coordinates::None;
        let Some((number, widest)) = widest(shown).filter(|_| is_asked) else { return Ok(None) };
        let links = Links::new(store.hierarchy());
        if links.all.is_empty() {
            return Ok(None);
        }
        let is_named = matches!(view.coordinates, Coordinates::Named(_));
        let named = is_named.then(|| coordinates.iter().copied().collect());
        let taken = taken(shown);
        let levels = Finder { store, roles, view }.levels(&links, number).await?;
        let (known, columns) = (labels_of(store, roles, shown), vec![]);
        let ragged = Self { store, roles, view, widest, named, levels, known, taken, columns };
        Ok((!ragged.levels.is_empty()).then_some(ragged))
    }

    /// Returns the numbers of the variables of instances that become columns.
    pub(super) fn of_instances(&self) -> Vec<usize> {
        self.levels
            .iter()
            .flat_map(|level| self.of_level(level))
            .map(|(number, _)| number)
            .collect()
    }

    /// Returns the columns: coordinates over dimensions of the table, then the variables of instances. Warns of those that are
    /// left out.
    pub(super) async fn columns(mut self, coordinates: &[usize]) -> Result<Vec<BesideArray>> {
        let of_instances: HashSet<usize> = self.of_instances().into_iter().collect();
        for number in coordinates.iter().filter(|number| !of_instances.contains(number)) {
            self.add_coordinate(*number).await?;
        }
        for level in std::mem::take(&mut self.levels) {
            self.add_level(&level).await?;
        }
        Ok(self.columns)
    }

    fn hierarchy(&self) -> &'a Hierarchy {
        self.store.hierarchy()
    }

    /// Returns the variables of instances that are columns, with their names.
    fn of_level(&self, level: &Level) -> Vec<(usize, &'a str)> {
        let is_link = |it: &Variable| {
            it.attributes.contains_key("sample_dimension")
                || it.attributes.contains_key("instance_dimension")
        };
        let variables = self.hierarchy().variables.iter().enumerate();
        let of_instances = variables.filter(|(number, it)| {
            let is_wanted = match &self.named {
                Some(named) => named.contains(number),
                None => !is_link(it),
            };
            is_wanted
                && level.link.has_instances(it)
                && level.len.is_none_or(|len| it.axes.iter().all(|axis| axis.len == len))
        });
        of_instances.map(|(number, it)| (number, it.name())).collect()
    }

    /// Adds a coordinate over dimensions of the table.
    async fn add_coordinate(&mut self, number: usize) -> Result<()> {
        let variable = &self.hierarchy().variables[number];
        let name = variable.name();
        if self.is_taken(name) {
            return Ok(());
        }
        let known = &mut self.known;
        let opened = open_variable(self.store, self.roles, number, self.view, known).await;
        let array = opened.and_then(|array| array.with_name(name).broadcast(self.widest));
        let cells = variable.axes.iter().map(|axis| axis.len).fold(1, u64::saturating_mul);
        self.add(name, array, cells)
    }

    /// Adds the variables of instances. If none has the name of their dimension, their numbers are a column, unless the option
    /// names columns.
    async fn add_level(&mut self, level: &Level) -> Result<()> {
        let dim = level.link.instances.as_str();
        let of_instances = self.of_level(level);
        let is_named = of_instances.iter().any(|(_, name)| *name == dim) || self.named.is_some();
        let is_axis = self.widest.dims().iter().any(|it| it.name() == dim);
        if !is_named && !is_axis && !self.is_taken(dim) {
            let array = self.numbers(level);
            self.add(dim, array, level.members.most())?;
        }
        for (number, name) in of_instances {
            if self.is_taken(name) {
                continue;
            }
            let variable = &self.hierarchy().variables[number];
            let known = &mut without_labels(self.hierarchy(), self.roles, variable);
            let opened = open_variable(self.store, self.roles, number, self.view, known).await;
            let array = opened.and_then(|array| self.expanded(level, number, name, array));
            self.add(name, array, level.members.most())?;
        }
        Ok(())
    }

    /// Whether a column has a name. Warns that another one is left out.
    fn is_taken(&self, name: &str) -> bool {
        let is_taken = self.taken.contains(name);
        if is_taken {
            let place = self.store.objects().name();
            log::warn!("{place}: \"{name}\" is left out: another column has this name");
        }
        is_taken
    }

    /// Adds a column, or warns that it is left out.
    fn add(&mut self, name: &str, array: Result<GridArray>, cells: u64) -> Result<()> {
        let is_optional = self.view.coordinates == Coordinates::Cheap;
        match array {
            Ok(array) => {
                self.taken.insert(name.to_owned());
                self.columns.push(BesideArray { array: array.into(), cells, is_optional });
            }
            Err(error) if may_be_left_out(&error, is_optional) => {
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
        let dim = self.widest.dims().get(level.axis).ok_or_else(missing)?.clone();
        let chunks = self.widest.grid().axis_chunks().get(level.axis).ok_or_else(missing)?.clone();
        let grid = ChunkGrid::with_axis_chunks(&[dim.len()], vec![chunks])?;
        let (store, members) = (Arc::clone(self.store), Arc::clone(&level.members));
        let source = InstanceColumn { store, variables, members, grid: grid.clone(), values: own };
        let array =
            GridArray::new(name.to_owned(), Arc::new(source), grid, vec![dim], values, false);
        array.broadcast(self.widest)
    }
}
