//! The roles of variables: data, coordinates, and helpers of either.
//!
//! | role | example | a data variable? |
//! |---|---|---|
//! | named like its only dimension | `time (time)` | no |
//! | named by `coordinates` of another | `lat (y, x)` | no |
//! | named by `bounds` or `climatology` | `time_bnds (time, bnds)` | no |
//! | named by `grid_mapping` | `crs`, a scalar | no |
//! | any other | `t2m (time, lat, lon)` | yes |

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::hierarchy::{CellType, Hierarchy, Variable};
use gridfusion_core::source::Role;
use gridfusion_core::{Error, Result};

/// The attributes that name variables which are not data.
const REFERENCES: [&str; 4] = ["coordinates", "bounds", "climatology", "grid_mapping"];

/// The most bytes of paths that are looked up for all attributes together.
const MOST_LOOKED_UP: usize = 1 << 30;

/// The variables of a file by path, and their roles.
#[derive(Debug)]
pub(super) struct Roles {
    by_path: HashMap<String, usize>,
    /// The numbers of variables that others name as helpers.
    helpers: HashSet<usize>,
    /// The numbers of variables of bounds, and of the variables that they bound.
    bounds: HashMap<usize, usize>,
}

impl Roles {
    /// Finds the roles of all variables.
    ///
    /// # Errors
    /// `Unsupported` if attributes name more variables than can be looked up in a reasonable time.
    pub(super) fn new(hierarchy: &Hierarchy) -> Result<Self> {
        let variables = hierarchy.variables.iter().enumerate();
        let by_path = variables.map(|(number, it)| (it.path.clone(), number)).collect();
        let mut roles = Self { by_path, helpers: HashSet::new(), bounds: HashMap::new() };
        let mut left = MOST_LOOKED_UP;
        roles.find_bounds(hierarchy, &mut left)?;
        let groups =
            hierarchy.groups.iter().map(|(group, attributes)| (group.as_str(), attributes));
        let variables = hierarchy.variables.iter().map(|it| (it.group(), &it.attributes));
        // Variables that are one array under several names share attributes.
        let mut met = HashSet::new();
        for (group, attributes) in variables.chain(groups) {
            if !met.insert((group, Arc::as_ptr(attributes))) {
                continue;
            }
            let lists = REFERENCES.iter().filter_map(|name| attributes.get(*name)?.text());
            // `grid_mapping` may be a list such as `crs: x y`.
            let names =
                lists.flat_map(str::split_whitespace).map(|name| name.trim_end_matches(':'));
            for name in names {
                let helper = roles.counted(group, name, &mut left)?;
                roles.helpers.extend(helper);
            }
        }
        Ok(roles)
    }

    /// As [`Roles::find`], of which `left` is the work that remains.
    fn counted(&self, group: &str, name: &str, left: &mut usize) -> Result<Option<usize>> {
        let groups = 1 + group.bytes().filter(|byte| *byte == b'/').count();
        let work = (group.len() + name.len() + 1).saturating_mul(groups);
        *left = left.checked_sub(work).ok_or_else(|| {
            let message = "attributes such as 'coordinates' that name too many variables, in groups of too long paths";
            Error::unsupported(message)
        })?;
        Ok(self.find(group, name))
    }

    fn find_bounds(&mut self, hierarchy: &Hierarchy, left: &mut usize) -> Result<()> {
        for (number, variable) in hierarchy.variables.iter().enumerate() {
            let names = ["bounds", "climatology"].iter();
            for name in names.filter_map(|name| variable.attributes.get(*name)?.text()) {
                if let Some(bounds) = self.counted(variable.group(), name.trim(), left)? {
                    self.bounds.insert(bounds, number);
                }
            }
        }
        Ok(())
    }

    /// Returns the number of the variable whose bounds a variable holds. Bounds have its units if they have none.
    pub(super) fn bounded_by(&self, number: usize) -> Option<usize> {
        self.bounds.get(&number).copied()
    }

    /// Returns the number of the variable at a path.
    pub(super) fn at(&self, path: &str) -> Option<usize> {
        self.by_path.get(path).copied()
    }

    /// Finds the variable `name` in a group or the nearest of its parents. A name may be a path.
    pub(super) fn find(&self, group: &str, name: &str) -> Option<usize> {
        if let Some(path) = name.strip_prefix('/') {
            return self.at(path);
        }
        let mut group = group;
        loop {
            let found = match group.is_empty() {
                true => return self.at(name),
                false => self.at(&format!("{group}/{name}")),
            };
            if found.is_some() {
                return found;
            }
            group = group.rsplit_once('/').map_or("", |(parent, _)| parent);
        }
    }

    /// Whether a variable is data: neither a coordinate nor a helper of others.
    pub(super) fn is_data(&self, number: usize, variable: &Variable) -> bool {
        self.role(number, variable) == Role::Data
    }

    /// Returns what a variable is for.
    pub(super) fn role(&self, number: usize, variable: &Variable) -> Role {
        match (is_coordinate(variable), self.helpers.contains(&number)) {
            (true, _) => Role::Coordinate,
            (false, true) => Role::Helper,
            (false, false) => Role::Data,
        }
    }

    /// Returns the numbers of the coordinates that a variable or its group names, apart from coordinates of a
    /// single dimension with their name: those are labels.
    pub(super) fn coordinates_of(&self, hierarchy: &Hierarchy, variable: &Variable) -> Vec<usize> {
        let group = variable.group();
        let of_group = hierarchy.groups.get(group);
        let lists = [Some(&variable.attributes), of_group].into_iter().flatten();
        let lists = lists.filter_map(|attributes| attributes.get("coordinates")?.text());
        let numbers = lists
            .flat_map(str::split_whitespace)
            .filter_map(|name| self.find(group, name))
            .filter(|number| !is_coordinate(&hierarchy.variables[*number]));
        let mut distinct: Vec<usize> = Vec::new();
        for number in numbers {
            if !distinct.contains(&number) {
                distinct.push(number);
            }
        }
        distinct
    }

    /// Returns the number of the variable with the labels of an axis: the one that the file names, or the
    /// variable of one dimension that has the name of the axis. `name` is the name of an axis that has none.
    pub(super) fn labels_of(
        &self,
        hierarchy: &Hierarchy,
        variable: &Variable,
        axis: usize,
        name: &str,
    ) -> Option<usize> {
        let axis = variable.axes.get(axis)?;
        let number = match &axis.labels {
            Some(path) => self.at(path),
            None => self.find(variable.group(), axis.name.as_deref().unwrap_or(name)),
        }?;
        let labels = hierarchy.variables.get(number)?;
        let [own] = labels.axes.as_slice() else { return None };
        // A variable without names of dimensions may label an axis that a user named.
        let is_named = own.name.as_deref() == Some(labels.name());
        let fits = is_named || (own.name.is_none() && axis.name.is_none());
        let has_order = !matches!(labels.cell, CellType::Complex(_) | CellType::Record(_));
        (fits && has_order && own.len == axis.len).then_some(number)
    }
}

/// Whether a variable has the name of its only dimension, and so holds that dimension's coordinates.
pub(super) fn is_coordinate(variable: &Variable) -> bool {
    match variable.axes.as_slice() {
        [axis] => axis.name.as_deref() == Some(variable.name()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hierarchy::{Attribute, Axis};
    use gridfusion_core::format::ElementType;

    fn variable(path: &str, axes: &[&str], attributes: &[(&str, &str)]) -> Variable {
        let attributes =
            attributes.iter().map(|(name, text)| ((*name).to_owned(), Attribute::from(*text)));
        let axes = axes.iter().map(|&name| Axis::new(Some(name.to_owned()), 3)).collect();
        let cell = CellType::Number(ElementType::F32);
        let variable = Variable::new(path.to_owned(), axes, cell, vec![0; 4]);
        Variable { attributes: Arc::new(attributes.collect()), ..variable }
    }

    #[test]
    fn helpers_are_not_data() {
        let variables = vec![
            variable("time", &["time"], &[("bounds", "time_bnds")]),
            variable("time_bnds", &["time", "bnds"], &[]),
            variable(
                "a/t2m",
                &["time", "y"],
                &[("coordinates", "lat"), ("grid_mapping", "crs: lat")],
            ),
            variable("a/lat", &["y"], &[]),
            variable("lat", &["y"], &[]),
            variable("crs", &[], &[]),
            variable("a/time", &["other"], &[]),
        ];
        let hierarchy = Hierarchy { variables, ..Hierarchy::default() };
        let roles = Roles::new(&hierarchy).unwrap();
        let data = hierarchy.variables.iter().enumerate().filter(|(at, it)| roles.is_data(*at, it));
        let data: Vec<&str> = data.map(|(_, variable)| variable.path.as_str()).collect();
        assert_eq!(data, ["a/t2m", "lat", "a/time"]);
        // `a/time` is nearer, but has another dimension.
        assert_eq!(roles.find("a", "time"), Some(6));
        assert_eq!(roles.labels_of(&hierarchy, &hierarchy.variables[2], 0, "time"), None);
        assert_eq!(roles.labels_of(&hierarchy, &hierarchy.variables[1], 0, "time"), Some(0));
        assert_eq!(roles.find("a/b/c", "/lat"), Some(4));
        assert_eq!(roles.find("a/b/c", "lat"), Some(3));
    }
}
