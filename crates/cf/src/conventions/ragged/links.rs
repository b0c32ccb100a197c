//! [`Links`]: which dimension counts the samples of which instances.
//!
//! | variable | attribute | meaning |
//! |---|---|---|
//! | `row_size (station)` | `sample_dimension = "obs"` | the number of samples of each station, one after the other |
//! | `station_index (obs)` | `instance_dimension = "station"` | the station of each sample |
//!
//! A file may have both: profiles have levels, and trajectories have profiles.

use std::collections::{HashMap, HashSet};

use crate::hierarchy::{Attribute, Hierarchy, Variable};

/// The links between dimensions of a file.
#[derive(Debug, Default)]
pub(in crate::conventions) struct Links {
    pub(super) all: Vec<Link>,
}

/// A variable that tells the instances of samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    /// The number of the variable.
    pub(super) variable: usize,
    /// The sample dimension.
    pub(super) samples: String,
    /// The instance dimension.
    pub(super) instances: String,
    /// Whether the variable has a count per instance, rather than an index per sample.
    pub(super) counts: bool,
    /// The group of the variable.
    group: String,
    /// The length of the sample dimension there, if a variable of the group has it.
    pub(super) len: Option<u64>,
}

impl Links {
    /// Finds the variables with these attributes.
    pub(in crate::conventions) fn new(hierarchy: &Hierarchy) -> Self {
        let variables = hierarchy.variables.iter().enumerate();
        let mut all: Vec<Link> =
            variables.filter_map(|(number, it)| Link::of(number, it)).collect();
        let mut lens = HashMap::new();
        for variable in hierarchy.variables.iter().filter(|_| !all.is_empty()) {
            let axes = variable.axes.iter().filter_map(|axis| Some((axis.name.as_deref()?, axis)));
            axes.for_each(|(name, axis)| {
                _ = lens.entry((variable.group(), name)).or_insert(axis.len)
            });
        }
        for link in &mut all {
            link.len = lens.get(&(link.group.as_str(), link.samples.as_str())).copied();
        }
        Self { all }
    }

    /// Returns the links of a sample dimension of this length that variables of a group use. A group may define a dimension of
    /// an outer one again.
    pub(super) fn of<'a>(
        &'a self,
        group: &'a str,
        samples: &'a str,
        len: u64,
    ) -> impl Iterator<Item = &'a Link> + 'a {
        self.all.iter().filter(move |it| {
            let is_here = it.counts && it.group == group;
            it.samples == samples
                && is_within(group, &it.group)
                && (is_here || it.len.is_none_or(|own| own == len))
        })
    }

    /// Returns the variables that are no instance's: those over samples, where there are any. Counts and indices are left out,
    /// too, unless all columns are `as_stored`.
    pub(super) fn samples<'a>(
        &self,
        data: Vec<(&'a str, &'a Variable)>,
        as_stored: bool,
    ) -> Vec<(&'a str, &'a Variable)> {
        if self.all.is_empty() {
            return data;
        }
        // Dimensions of the data, as the groups above see them, too.
        let mut used: HashSet<(&str, &str)> = HashSet::new();
        for (_, variable) in &data {
            for name in variable.axes.iter().filter_map(|axis| axis.name.as_deref()) {
                let mut group = Some(variable.group());
                while let Some(seen) = group.filter(|seen| used.insert((seen, name))) {
                    let outer = seen.rsplit_once('/').map_or("", |(outer, _)| outer);
                    group = (!seen.is_empty()).then_some(outer);
                }
            }
        }
        let is_used = |link: &&Link| used.contains(&(link.group.as_str(), link.samples.as_str()));
        let mut parents: HashSet<&str> =
            self.all.iter().filter(is_used).map(|it| it.instances.as_str()).collect();
        // Trajectories of profiles of which there are samples.
        for _ in 0..self.all.len().min(MOST_LEVELS) {
            let of_parents = self.all.iter().filter(|it| parents.contains(it.samples.as_str()));
            let further: Vec<&str> = of_parents.map(|it| it.instances.as_str()).collect();
            parents.extend(further);
        }
        let is_of_instances = |variable: &Variable| {
            let own = |name: &String| parents.contains(name.as_str());
            matches!(variable.axes.as_slice(), [axis] if axis.name.as_ref().is_some_and(own))
        };
        let is_link = |variable: &Variable| !as_stored && kind(variable).is_some();
        let samples = data.iter().filter(|(_, it)| !is_of_instances(it) && !is_link(it));
        let samples: Vec<_> = samples.copied().collect();
        if samples.is_empty() { data } else { samples }
    }
}

/// The most dimensions that depend on one another.
pub(super) const MOST_LEVELS: usize = 8;

/// Returns the dimension that the attribute of a variable names, and whether the variable counts. It has one axis.
fn kind(variable: &Variable) -> Option<(&str, bool)> {
    let text = |name: &str| {
        let text = variable.attributes.get(name).and_then(Attribute::text)?.trim();
        (!text.is_empty()).then_some(text)
    };
    let [_] = variable.axes.as_slice() else { return None };
    let counts = text("sample_dimension").map(|it| (it, true));
    counts.or_else(|| text("instance_dimension").map(|it| (it, false)))
}

impl Link {
    fn of(number: usize, variable: &Variable) -> Option<Self> {
        let (named, counts) = kind(variable)?;
        let own = variable.axes.first()?.name.clone()?;
        let named = named.to_owned();
        let (samples, instances) = if counts { (named, own) } else { (own, named) };
        let group = variable.group().to_owned();
        let link = Self { variable: number, samples, instances, counts, group, len: None };
        (link.samples != link.instances).then_some(link)
    }

    /// Whether samples in a group may have another dimension of that name, although nothing tells.
    pub(super) fn may_be_another(&self, group: &str) -> bool {
        self.counts && self.len.is_none() && group != self.group
    }

    /// Whether a variable is one value per instance.
    pub(super) fn has_instances(&self, variable: &Variable) -> bool {
        let [axis] = variable.axes.as_slice() else { return false };
        let is_near =
            is_within(variable.group(), &self.group) || is_within(&self.group, variable.group());
        is_near && axis.name.as_deref() == Some(self.instances.as_str())
    }
}

/// Whether `group` is `outer` or a group in it, so that it sees the dimensions there.
fn is_within(group: &str, outer: &str) -> bool {
    let rest = group.strip_prefix(outer);
    outer.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
