//! [`HierarchyGroup`]: the variables of a file or store as arrays.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use async_trait::async_trait;

use super::beside::{coordinates, open_beside};
use super::describe::{Variables, attributes, describe, info};
use super::options::HierarchyView;
use super::ragged::{Links, Ragged, samples, with_samples};
use super::roles::Roles;
use super::store::VariableStore;
use super::variable_array::{KnownLabels, open_variable};
use super::verify::{check_checksums, check_indexes};
use crate::hierarchy::{Attribute, Attributes, CellType, Hierarchy, Variable};
use gridfusion_core::array::GridArray;
use gridfusion_core::source::axes::{Axes, check_same_axes};
use gridfusion_core::source::facts::KnownAttribute;
use gridfusion_core::source::{ArrayGroup, KnownDataset, ListedValue, Needs, verify_group};
use gridfusion_core::source::{
    BesideArray, GroupPattern, MatchedGroup, MatchedGroups, OpenedArray,
};
use gridfusion_core::source::{Description, Detail};
use gridfusion_core::verify::{Depth, Progress, Report};
use gridfusion_core::{Error, Result};

/// The groups of a file that match a pattern, with their labels.
#[derive(Debug)]
struct Matches {
    pattern: GroupPattern,
    labels: BTreeMap<String, String>,
}

/// The most bytes of the attributes of all variables that are opened together.
const MOST_ATTRIBUTES: usize = 256 << 20;

/// The variables of a group and of the groups in it. Names are paths from the group on.
#[derive(Debug)]
pub struct HierarchyGroup {
    location: String,
    store: Arc<dyn VariableStore>,
    roles: Arc<Roles>,
    view: HierarchyView,
    /// The groups that the view's pattern matches; `None` if the view names one.
    matches: Option<Matches>,
    /// The errors of arrays that cannot be read, in the order of `left_out_names`.
    left_out: Vec<Error>,
    left_out_names: Vec<String>,
}

impl HierarchyGroup {
    /// Makes the group of the variables that the view selects.
    ///
    /// # Errors
    /// `Usage` if the file has no such group.
    pub fn new(location: &str, store: Arc<dyn VariableStore>, view: HierarchyView) -> Result<Self> {
        let roles = Roles::new(store.hierarchy());
        let roles = Arc::new(roles.map_err(|error| store.objects().named(error))?);
        Self::with_roles(location, store, roles, view)
    }

    /// Makes the group of the variables that the view selects, of a store whose roles are known.
    fn with_roles(
        location: &str,
        store: Arc<dyn VariableStore>,
        roles: Arc<Roles>,
        view: HierarchyView,
    ) -> Result<Self> {
        let matches = match has_group(store.hierarchy(), &view.group) {
            true => None,
            false => Some(Matches::try_new(store.hierarchy(), &view.group)),
        };
        let matches = matches.transpose().map_err(|error| error.in_file(location))?;
        let view = match matches {
            Some(_) => HierarchyView { group: String::new(), ..view },
            None => view,
        };
        let location = location.to_owned();
        let (left_out, left_out_names) = (vec![], vec![]);
        let mut group = Self { location, store, roles, view, matches, left_out, left_out_names };
        let hierarchy = group.store.hierarchy();
        let unreadable = hierarchy.unreadable.iter();
        let named = unreadable.filter_map(|it| {
            let name = group.name_of(&it.path)?;
            let error = it.error.clone().about(&format!("\"{name}\""));
            Some((name.to_owned(), group.store.objects().named(error)))
        });
        (group.left_out_names, group.left_out) = named.unzip();
        Ok(group)
    }

    /// Returns the group of this path in the same store.
    fn at(&self, group: String) -> Result<Arc<dyn ArrayGroup>> {
        let (store, roles) = (Arc::clone(&self.store), Arc::clone(&self.roles));
        let view = HierarchyView { group, ..self.view.clone() };
        Ok(Arc::new(Self::with_roles(&self.location, store, roles, view)?))
    }

    /// Returns a path from the group on; `None` if it is not in the group. If several groups match a pattern, from the root on.
    fn relative<'a>(&self, path: &'a str) -> Option<&'a str> {
        if let Some(Matches { labels, .. }) = &self.matches {
            return ancestors(path).chain([path]).any(|it| labels.contains_key(it)).then_some(path);
        }
        if self.view.group.is_empty() {
            return Some(path);
        }
        path.strip_prefix(self.view.group.as_str())?.strip_prefix('/')
    }

    /// Returns the name of an array. A store that is a single array calls it `value`, whatever the name of the store, so
    /// that several such stores can be one table.
    fn name_of<'a>(&'a self, path: &'a str) -> Option<&'a str> {
        if path.is_empty() { Some("value") } else { self.relative(path) }
    }

    /// Returns the attributes of the group itself, under no name, and of the groups in it.
    fn groups(&self) -> impl Iterator<Item = (Option<&str>, &Attributes)> {
        self.store.hierarchy().groups.iter().filter_map(|(path, attributes)| {
            match *path == self.view.group {
                true => Some((None, &**attributes)),
                false => Some((Some(self.relative(path)?), &**attributes)),
            }
        })
    }

    /// Returns the variables of the group with their numbers and names.
    fn members(&self) -> impl Iterator<Item = (usize, &Variable, &str)> {
        let variables = self.store.hierarchy().variables.iter().enumerate();
        variables.filter_map(|(number, it)| Some((number, it, self.name_of(&it.path)?)))
    }

    /// Returns the number of the variable with this name.
    fn number(&self, name: &str) -> Result<usize> {
        let path = match (name, self.view.group.as_str()) {
            (name, "") => name.to_owned(),
            (name, group) => format!("{group}/{name}"),
        };
        let root = || self.roles.at("").filter(|_| name == "value");
        if let Some(number) = self.roles.at(&path).or_else(root) {
            return Ok(number);
        }
        let mut unreadable = self.store.hierarchy().unreadable.iter();
        if let Some(it) = unreadable.find(|it| self.name_of(&it.path) == Some(name)) {
            return Err(self.store.objects().named(it.error.clone().about(&format!("\"{name}\""))));
        }
        let known = self.names().join("\", \"");
        let message = format!("no variable \"{name}\"; there is \"{known}\"");
        Err(Error::usage(message).in_file(&self.location))
    }

    /// Fails if variables with these numbers have more attributes than tables can have. A file may give one variable many
    /// names, and each column has attributes of its own.
    fn check_attributes(&self, numbers: impl Iterator<Item = usize>) -> Result<()> {
        let hierarchy = self.store.hierarchy();
        let (mut sizes, mut total) = (HashMap::new(), 0_usize);
        for number in numbers {
            let Some(variable) = hierarchy.variables.get(number) else { continue };
            let axes = variable.axes.iter().enumerate().filter_map(|(at, axis)| {
                let name = axis.name.as_deref().unwrap_or_default();
                self.roles.labels_of(hierarchy, variable, at, name)
            });
            let labels = axes.filter_map(|number| hierarchy.variables.get(number));
            for variable in labels.chain([variable]) {
                let size = sizes.entry(Arc::as_ptr(&variable.attributes));
                total = total
                    .saturating_add(*size.or_insert_with(|| size_of_all(&variable.attributes)));
            }
        }
        if total > MOST_ATTRIBUTES {
            let message = format!(
                "the attributes of the variables together, many of which may be one under several names, have more than {} MiB; name the variables to read",
                MOST_ATTRIBUTES >> 20
            );
            return Err(self.store.objects().named(Error::unsupported(message)));
        }
        Ok(())
    }

    /// Returns what to describe of the variables `only`, or of all, of the group, and of the groups in it.
    ///
    /// # Errors
    /// As [`Self::check_attributes`], and for a variable that does not exist or cannot be read.
    fn described(&self, only: Option<&[String]>) -> Result<Variables<'_>> {
        only.unwrap_or_default().iter().try_for_each(|name| self.number(name).map(|_| ()))?;
        let is_wanted = |name: &str| only.is_none_or(|only| only.iter().any(|it| it == name));
        let members: Vec<_> = self.members().filter(|(.., name)| is_wanted(name)).collect();
        self.check_attributes(members.iter().map(|(number, ..)| *number))?;
        let left_out = self.left_out_names.iter().map(String::as_str).zip(&self.left_out);
        Ok(Variables {
            location: &self.location,
            store: &self.store,
            roles: &self.roles,
            view: &self.view,
            members,
            groups: if only.is_none() { self.groups().collect() } else { vec![] },
            left_out: if only.is_none() { left_out.collect() } else { vec![] },
        })
    }

    /// Opens variables by their names.
    async fn grids(&self, names: &[String]) -> Result<Vec<GridArray>> {
        let numbers = names.iter().map(|name| self.number(name)).collect::<Result<Vec<_>>>()?;
        self.check_attributes(numbers.iter().copied())?;
        let (mut known, mut arrays) = (KnownLabels::new(), Vec::with_capacity(names.len()));
        let hierarchy = self.store.hierarchy();
        let links = Links::new(hierarchy);
        for (name, number) in names.iter().zip(numbers) {
            let opened = open_variable(&self.store, &self.roles, number, &self.view, &mut known);
            let opened = opened.await.map_err(|error| self.store.objects().named(error))?;
            let array = with_samples(hierarchy, &links, number, opened.with_name(name));
            // Fields of several compounds may have the same names.
            let variable = &hierarchy.variables[number];
            arrays.push(match variable.cell {
                CellType::Record(_) if names.len() > 1 => array.with_value_prefix(variable.name()),
                _ => array,
            });
        }
        Ok(arrays)
    }

    /// Returns the variables that `is_data` tells to be data, with their names: those of the group itself, or if it has none,
    /// of the groups in it.
    ///
    /// # Errors
    /// `Usage` if there are none.
    fn data(
        &self,
        is_data: fn(&Roles, usize, &Variable) -> bool,
    ) -> Result<Vec<(&str, &Variable)>> {
        let data = self.members().filter(|(number, it, _)| is_data(&self.roles, *number, it));
        let all: Vec<(&str, &Variable)> = data.map(|(_, it, name)| (name, it)).collect();
        let is_here = |(name, _): &&(&str, &Variable)| !name.contains('/');
        let here: Vec<_> = all.iter().filter(is_here).copied().collect();
        let data = if here.is_empty() { all } else { here };
        let data = samples(self.store.hierarchy(), data, &self.view.coordinates);
        if data.is_empty() {
            let message = match self.left_out.is_empty() {
                true => "there is no data variable".to_owned(),
                false => {
                    format!("there is no data variable that can be read; {}", self.left_out[0])
                }
            };
            return Err(Error::usage(message).in_file(&self.location));
        }
        // A scalar beside arrays describes them, such as a grid mapping that no attribute names.
        let arrays = data.iter().filter(|(_, variable)| !variable.axes.is_empty());
        let arrays: Vec<_> = arrays.copied().collect();
        Ok(if arrays.is_empty() { data } else { arrays })
    }
}

#[async_trait]
impl ArrayGroup for HierarchyGroup {
    fn location(&self) -> &str {
        &self.location
    }

    fn names(&self) -> Vec<String> {
        self.members().map(|(.., name)| name.to_owned()).collect()
    }

    fn has(&self, name: &str) -> bool {
        let mut unreadable = self.store.hierarchy().unreadable.iter();
        self.members().any(|(.., it)| it == name)
            || unreadable.any(|it| self.name_of(&it.path) == Some(name))
    }

    fn group(&self, name: &str) -> Result<Option<Arc<dyn ArrayGroup>>> {
        let path = match self.view.group.as_str() {
            "" => name.to_owned(),
            group => format!("{group}/{name}"),
        };
        let hierarchy = self.store.hierarchy();
        let is_known = hierarchy.groups.contains_key(&path)
            || GroupPattern::parse(&path).is_ok_and(|it| it.is_some())
                && Matches::try_new(hierarchy, &path).is_ok();
        if name.is_empty() || !is_known {
            return Ok(None);
        }
        Ok(Some(self.at(path)?))
    }

    fn matched(&self) -> Result<Option<MatchedGroups>> {
        let Some(Matches { pattern, labels }) = &self.matches else { return Ok(None) };
        let groups = labels.iter().map(|(path, label)| {
            let group = self.at(path.clone())?;
            Ok(MatchedGroup { path: path.clone(), label: label.clone(), group })
        });
        let groups = groups.collect::<Result<_>>()?;
        Ok(Some(MatchedGroups { pattern: pattern.clone(), groups }))
    }

    async fn arrays(&self, names: &[String]) -> Result<Vec<OpenedArray>> {
        Ok(self.grids(names).await?.into_iter().map(OpenedArray::from).collect())
    }

    async fn data_variables(&self) -> Result<Vec<String>> {
        let all = self.data(Roles::is_shown_among_all)?;
        Ok(all.into_iter().map(|(name, _)| name.to_owned()).collect())
    }

    /// Compares names and lengths of dimensions before any variable is opened: opening reads labels, and the
    /// message needs none.
    async fn variables(&self) -> Result<Vec<OpenedArray>> {
        let axes = |variable: &Variable| -> Axes {
            let axes = variable.axes.iter().enumerate();
            let name = |(at, name): (usize, &Option<String>)| {
                name.clone().unwrap_or_else(|| format!("dim_{at}"))
            };
            axes.map(|(at, axis)| (name((at, &axis.name)), Some(axis.len))).collect()
        };
        let data = self.data(Roles::is_data)?;
        let all = data.iter().map(|(name, variable)| (*name, axes(variable)));
        check_same_axes("there are several data variables", all)
            .map_err(|error| error.in_file(&self.location))?;
        let names: Vec<String> = data.iter().map(|(name, _)| (*name).to_owned()).collect();
        self.arrays(&names).await
    }

    async fn beside(&self, arrays: &[OpenedArray]) -> Result<Vec<BesideArray>> {
        let grids = arrays.iter().filter_map(OpenedArray::as_grid);
        let shown = grids.map(|grid| Ok((self.number(grid.name())?, grid)));
        let shown: Vec<_> = shown.collect::<Result<_>>()?;
        let numbers = coordinates(&self.store, &self.roles, &shown, &self.view)?;
        let ragged = Ragged::find(&self.store, &self.roles, &shown, &self.view, &numbers).await?;
        let of_instances = ragged.iter().flat_map(Ragged::of_instances);
        let all = shown.iter().map(|(number, _)| *number).chain(numbers.iter().copied());
        self.check_attributes(all.chain(of_instances))?;
        if let Some(ragged) = ragged {
            return ragged.columns(&numbers).await;
        }
        open_beside(&self.store, &self.roles, &shown, &self.view, numbers).await
    }

    fn left_out(&self) -> &[Error] {
        &self.left_out
    }

    fn unreadable(&self) -> Vec<(String, Error)> {
        self.left_out_names.iter().cloned().zip(self.left_out.iter().cloned()).collect()
    }

    async fn info(&self, only: Option<&[String]>, needs: Needs) -> Result<Vec<KnownDataset>> {
        Ok(info(&self.described(only)?, needs).await)
    }

    async fn attributes(&self, only: Option<&[String]>) -> Result<Vec<KnownAttribute>> {
        Ok(attributes(&self.described(only)?))
    }

    /// Returns the first of the two values of complex numbers, which are stored together.
    fn listed_values(&self, name: &str, array: &GridArray) -> Vec<ListedValue> {
        let number = self.number(name).ok();
        let variable = name.rsplit_once('/').map_or(name, |(_, last)| last);
        vec![ListedValue {
            number: 0,
            name: variable.into(),
            is_located: number.is_none_or(|number| self.store.locates_without_cells(number)),
            sharing: array.value_count() as u64,
        }]
    }

    async fn describe(&self, detail: &Detail) -> Result<Description> {
        describe(&self.described(None)?, detail).await
    }

    async fn verify(&self, depth: Depth, progress: &Arc<Progress>) -> Vec<(String, Report)> {
        if let Err(error) = self.check_attributes(self.members().map(|(number, ..)| number)) {
            let report = Report::from_error(&self.location, depth, &error);
            return vec![(self.location.clone(), report)];
        }
        let mut report = verify_group(self, depth, progress).await;
        let members = self.members().map(|(number, _, name)| (number, name));
        if let Some(check) = check_indexes(&*self.store, members).await {
            report.add(check);
        }
        let members = self.members().map(|(number, _, name)| (number, name));
        if depth == Depth::Cells
            && let Some(check) = check_checksums(&*self.store, members).await
        {
            report.add(check);
        }
        vec![(self.location.clone(), report.relative_to(&self.location))]
    }
}

impl Matches {
    /// Finds the groups that match a pattern.
    ///
    /// # Errors
    /// `Usage` if there are none, or for the name of a group that the file lacks.
    fn try_new(hierarchy: &Hierarchy, text: &str) -> Result<Self> {
        let pattern = GroupPattern::parse(text)?;
        let variables = hierarchy.variables.iter().flat_map(|it| ancestors(&it.path));
        let paths: BTreeSet<&str> =
            hierarchy.groups.keys().map(String::as_str).chain(variables).collect();
        let paths: Vec<&str> = paths.into_iter().filter(|path| !path.is_empty()).collect();
        let label = |path: &str| Some((path.to_owned(), pattern.as_ref()?.label(path)?));
        let labels: BTreeMap<_, _> = paths.iter().copied().filter_map(label).collect();
        match pattern {
            Some(pattern) if !labels.is_empty() => Ok(Self { pattern, labels }),
            pattern => {
                let what = if pattern.is_some() { "no group matches" } else { "no group" };
                let known: Vec<String> = paths.iter().map(|it| format!("\"{it}\"")).collect();
                let known = match known.is_empty() {
                    true => "there are no groups".to_owned(),
                    false => format!("there is {}", known.join(", ")),
                };
                Err(Error::usage(format!("{what} \"{text}\"; {known}")))
            }
        }
    }
}

/// Whether a file has a group with this path, or a variable in it.
fn has_group(hierarchy: &Hierarchy, path: &str) -> bool {
    let mut variables = hierarchy.variables.iter().flat_map(|it| ancestors(&it.path));
    path.is_empty() || hierarchy.groups.contains_key(path) || variables.any(|it| it == path)
}

/// Returns the paths of the groups above a path, except for the root.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

/// Returns about how many bytes attributes have as text.
fn size_of_all(attributes: &Attributes) -> usize {
    let value = |value: &Attribute| match value {
        Attribute::Text(text) => text.len(),
        Attribute::Texts(all) => all.iter().map(|text| text.len() + 2).sum(),
        Attribute::Integers(all) => 8 * all.len(),
        Attribute::Singles(all) => 8 * all.len(),
        Attribute::Doubles(all) => 16 * all.len(),
    };
    // A text of its own for each name and value.
    attributes.iter().map(|(name, it)| 48 + name.len() + value(it)).sum()
}
