//! The roles of variables: data, coordinates, and helpers of either.
//!
//! | role | example | a data variable? |
//! |---|---|---|
//! | named like its only dimension | `time (time)` | no, except complex numbers and compounds |
//! | named by `coordinates` of another | `lat (y, x)` | no |
//! | named by `bounds` or `climatology` | `time_bnds (time, bnds)` | no |
//! | named by `grid_mapping` | `crs`, a scalar | no |
//! | named by `geometry`, and by the attributes of a geometry | `outline`, a scalar; `node_lat (node)` | no |
//! | named by `formula_terms`, over dimensions that the vertical coordinate has | `a (lev)`, `p0` | no |
//! | named by `formula_terms`, over others | `ps (time, lat, lon)` | yes |
//! | named by `cell_measures` or `ancillary_variables` of a variable that has its dimensions and more | `area (lat, lon)` | no |
//! | named by them, over the same dimensions or others | `t2m_flag (time, lat, lon)` | yes |
//! | any other | `t2m (time, lat, lon)` | yes |
//!
//! A variable that is not data is a table of its own.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::hierarchy::{Attribute, Axis, CellType, Hierarchy, Variable};
use gridfusion_core::source::Role;
use gridfusion_core::{Error, Result};

/// The attributes that name variables which are not data.
const REFERENCES: [&str; 10] = [
    "coordinates",
    "bounds",
    "climatology",
    "grid_mapping",
    "geometry",
    "node_coordinates",
    "node_count",
    "part_node_count",
    "interior_ring",
    "nodes",
];

/// The attributes that name variables which describe the one that has the attribute, or are data like it.
const DESCRIPTIONS: [&str; 3] = ["formula_terms", "cell_measures", "ancillary_variables"];

/// The most bytes of paths that are looked up for all attributes together.
const MOST_LOOKED_UP: usize = 1 << 30;

/// The variables of a file by path, and their roles.
#[derive(Debug)]
pub(super) struct Roles {
    by_path: HashMap<String, usize>,
    /// The numbers of variables that others name as helpers.
    helpers: HashSet<usize>,
    /// The numbers of variables that describe others, and have only dimensions of these.
    descriptions: HashSet<usize>,
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
        let (helpers, descriptions) = (HashSet::new(), HashSet::new());
        let mut roles = Self { by_path, helpers, descriptions, bounds: HashMap::new() };
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
        roles.add_descriptions(hierarchy, &mut left)?;
        Ok(roles)
    }

    /// Adds the variables that describe another one, and have only dimensions of it. A variable over the same dimensions may
    /// be data: quality flags are read beside their values.
    fn add_descriptions(&mut self, hierarchy: &Hierarchy, left: &mut usize) -> Result<()> {
        let mut met = HashSet::new();
        for variable in &hierarchy.variables {
            let group = variable.group();
            if !met.insert((group, Arc::as_ptr(&variable.attributes))) {
                continue;
            }
            for attribute in DESCRIPTIONS {
                let text = variable.attributes.get(attribute).and_then(Attribute::text);
                // The words of `area: areacella` with a colon are no names.
                let words = text.unwrap_or_default().split_whitespace();
                for name in words.filter(|word| !word.ends_with(':')) {
                    let Some(number) = self.counted(group, name, left)? else { continue };
                    let axes = &hierarchy.variables[number].axes;
                    let may_be_equal = attribute == "formula_terms";
                    let is_less = axes.len() < variable.axes.len() || may_be_equal;
                    if is_less && axes.iter().all(|axis| has_axis(variable, axis)) {
                        self.descriptions.insert(number);
                    }
                }
            }
        }
        Ok(())
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

    /// Finds the variable `name` in a group or the nearest of its parents. A name may be a path, such as `/lat` or `../lat`.
    pub(super) fn find(&self, group: &str, name: &str) -> Option<usize> {
        if let Some(path) = name.strip_prefix('/') {
            return self.at(path);
        }
        if name.starts_with("./") || name.starts_with("../") {
            return self.find_from(group, name);
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
            group = parent(group).unwrap_or_default();
        }
    }

    /// Finds the variable at a path that begins in a group.
    fn find_from(&self, mut group: &str, mut path: &str) -> Option<usize> {
        loop {
            if let Some(rest) = path.strip_prefix("./") {
                path = rest;
            } else if let Some(rest) = path.strip_prefix("../") {
                (group, path) = (parent(group)?, rest);
            } else if group.is_empty() {
                return self.at(path);
            } else {
                return self.at(&format!("{group}/{path}"));
            }
        }
    }

    /// Whether a variable is data: neither a coordinate nor a helper of others.
    pub(super) fn is_data(&self, number: usize, variable: &Variable) -> bool {
        self.role(number, variable) == Role::Data
    }

    /// Whether a variable is data, or describes data. Tables of variables of several ranks show both.
    pub(super) fn is_shown_among_all(&self, number: usize, variable: &Variable) -> bool {
        let describes = self.descriptions.contains(&number) && !self.helpers.contains(&number);
        self.is_data(number, variable) || describes && !is_coordinate(variable)
    }

    /// Returns what a variable is for.
    pub(super) fn role(&self, number: usize, variable: &Variable) -> Role {
        let is_helper = self.helpers.contains(&number) || self.descriptions.contains(&number);
        match (is_coordinate(variable), is_helper) {
            (true, _) => Role::Coordinate,
            (false, true) => Role::Helper,
            (false, false) => Role::Data,
        }
    }

    /// Returns the numbers of the coordinates that variables or their groups name, each once, apart from coordinates of a
    /// single dimension with their name: those are labels.
    pub(super) fn coordinates_of<'a>(
        &self,
        hierarchy: &'a Hierarchy,
        variables: impl Iterator<Item = &'a Variable>,
    ) -> Vec<usize> {
        let (mut met, mut known, mut numbers) = (HashSet::new(), HashSet::new(), vec![]);
        for variable in variables {
            let group = variable.group();
            let lists = [Some(&variable.attributes), hierarchy.groups.get(group)];
            for attributes in lists.into_iter().flatten() {
                if !met.insert((group, Arc::as_ptr(attributes))) {
                    continue;
                }
                let names = attributes.get("coordinates").and_then(Attribute::text);
                let names = names.unwrap_or_default().split_whitespace();
                for number in names.filter_map(|name| self.find(group, name)) {
                    if !is_coordinate(&hierarchy.variables[number]) && known.insert(number) {
                        numbers.push(number);
                    }
                }
            }
        }
        numbers
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
        (fits && has_order(labels) && own.len == axis.len).then_some(number)
    }
}

/// Returns the group that holds a group; `None` for the root.
fn parent(group: &str) -> Option<&str> {
    (!group.is_empty()).then(|| group.rsplit_once('/').map_or("", |(parent, _)| parent))
}

/// Whether a variable has an axis of this name and length.
pub(super) fn has_axis(variable: &Variable, axis: &Axis) -> bool {
    axis.name.is_some()
        && variable.axes.iter().any(|own| own.name == axis.name && own.len == axis.len)
}

/// Whether a variable has the name of its only dimension, and so holds that dimension's coordinates. Complex numbers and
/// compounds cannot be coordinates, so they are data.
fn is_coordinate(variable: &Variable) -> bool {
    match variable.axes.as_slice() {
        [axis] => has_order(variable) && axis.name.as_deref() == Some(variable.name()),
        _ => false,
    }
}

fn has_order(variable: &Variable) -> bool {
    !matches!(variable.cell, CellType::Complex(_) | CellType::Record(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hierarchy::{Record, RecordField};
    use gridfusion_core::format::ElementType;

    fn variable(path: &str, axes: &[&str], attributes: &[(&str, &str)]) -> Variable {
        let attributes =
            attributes.iter().map(|(name, text)| ((*name).to_owned(), Attribute::from(*text)));
        let axes = axes.iter().map(|&name| Axis::new(Some(name.to_owned()), 3)).collect();
        let cell = CellType::Number(ElementType::F32);
        let variable = Variable::new(path.to_owned(), axes, cell, vec![0; 4]);
        Variable { attributes: Arc::new(attributes.collect()), ..variable }
    }

    /// Returns the paths of the data variables.
    fn data(variables: Vec<Variable>) -> Vec<String> {
        let hierarchy = Hierarchy { variables, ..Hierarchy::default() };
        let roles = Roles::new(&hierarchy).unwrap();
        let data = hierarchy.variables.iter().enumerate().filter(|(at, it)| roles.is_data(*at, it));
        data.map(|(_, variable)| variable.path.clone()).collect()
    }

    #[test]
    fn a_compound_named_like_its_dimension_is_data() {
        let field = RecordField::new("a".to_owned(), 0, CellType::Number(ElementType::F32));
        let record = CellType::Record(Record::new(4, vec![field], vec![]).into());
        let complex = CellType::Complex(ElementType::F32);
        let other = |name: &str, cell| Variable { cell, ..variable(name, &[name], &[]) };
        let found = data(vec![
            variable("x", &["x"], &[]),
            other("records", record),
            other("waves", complex),
            variable("t", &["x"], &[("coordinates", "waves")]),
        ]);
        assert_eq!(found, ["records", "t"]);
    }

    #[test]
    fn terms_of_formulas_are_data_over_other_dimensions() {
        let terms = [("formula_terms", "a: a b: b p0: p0 ps: ps"), ("bounds", "lev_bnds")];
        let of_bounds = [("formula_terms", "a: a_bnds b: b p0: p0 ps: ps")];
        let found = data(vec![
            variable("lev", &["lev"], &terms),
            variable("lev_bnds", &["lev", "bnds"], &of_bounds),
            variable("a", &["lev"], &[]),
            variable("b", &["lev"], &[]),
            variable("a_bnds", &["lev", "bnds"], &[]),
            variable("p0", &[], &[]),
            variable("ps", &["time", "lat"], &[]),
            variable("t", &["time", "lev", "lat"], &[]),
        ]);
        assert_eq!(found, ["ps", "t"]);
    }

    #[test]
    fn descriptions_are_data_only_like_the_variable_that_names_them() {
        let names = [
            ("cell_measures", "area: area volume: volume"),
            ("ancillary_variables", "flag n self"),
        ];
        let found = data(vec![
            variable("self", &["time", "lat"], &names),
            variable("area", &["lat"], &[]),
            variable("volume", &["time", "lat"], &[]),
            variable("flag", &["lat", "time"], &[("ancillary_variables", "self")]),
            variable("n", &["profile"], &[]),
            // This attribute names a variable that has more dimensions.
            variable("mean", &["time"], &[("ancillary_variables", "self")]),
        ]);
        assert_eq!(found, ["self", "volume", "flag", "n", "mean"]);
    }

    #[test]
    fn geometries_and_lists_of_grid_mappings_are_helpers() {
        let nodes =
            [("node_coordinates", "x y"), ("node_count", "count"), ("interior_ring", "ring")];
        let names = [("geometry", "outline"), ("grid_mapping", "crs: px py wgs84: lat")];
        let found = data(vec![
            variable("rain", &["time", "river"], &names),
            variable("outline", &[], &nodes),
            variable("x", &["node"], &[]),
            variable("y", &["node"], &[]),
            variable("count", &["river"], &[]),
            variable("ring", &["part"], &[]),
            variable("crs", &[], &[]),
            variable("wgs84", &[], &[]),
            variable("lat", &["river"], &[]),
        ]);
        assert_eq!(found, ["rain"]);
    }

    #[test]
    fn paths_begin_in_their_group() {
        let variables =
            ["lat", "a/lat", "a/b/lat"].map(|path| variable(path, &["y"], &[])).to_vec();
        let hierarchy = Hierarchy { variables, ..Hierarchy::default() };
        let roles = Roles::new(&hierarchy).unwrap();
        for (group, name, expected) in [
            ("a/b", "lat", Some(2)),
            ("a/b", "./lat", Some(2)),
            ("a/b", "../lat", Some(1)),
            ("a/b", "../../lat", Some(0)),
            ("a/b", "../../../lat", None),
            ("a/c", "../b/lat", Some(2)),
            ("a/c", "./lat", None),
            ("", "../lat", None),
            ("a/c", "lat", Some(1)),
        ] {
            assert_eq!(roles.find(group, name), expected, "{group} {name}");
        }
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
