//! [`Finder`]: finds the instances of the samples along each axis, and reads which samples they have.
//!
//! ```text
//!   temperature (obs) ─ row_size (profile) ─▶ profile ─ trajectory_index (profile) ─▶ trajectory
//! ```

use std::sync::Arc;

use super::super::labels::{read_line, variable};
use super::super::options::HierarchyView;
use super::super::roles::Roles;
use super::super::store::VariableStore;
use super::super::variable_array::{KnownLabels, open_variable};
use super::links::{Link, Links, MOST_LEVELS};
use super::members::Members;
use crate::hierarchy::{Hierarchy, Variable};
use gridfusion_core::{Error, ErrorKind, Result};

/// The advice of errors.
const WAY_OUT: &str = "the option 'coordinates => false' reads the samples without their instances";

/// Instances of the samples along one axis of the table.
pub(super) struct Level {
    pub(super) axis: usize,
    pub(super) link: Link,
    /// The number of instances, if the file has it.
    pub(super) len: Option<u64>,
    pub(super) members: Arc<Members>,
    /// The variables with counts or indices, from the samples on.
    pub(super) variables: Vec<usize>,
}

/// Finds instances.
pub(super) struct Finder<'a> {
    pub(super) store: &'a Arc<dyn VariableStore>,
    pub(super) roles: &'a Roles,
    pub(super) view: &'a HierarchyView,
}

/// Returns that the labels of a variable's dimension are ignored: counts, indices and values of instances need none.
pub(super) fn without_labels(
    hierarchy: &Hierarchy,
    roles: &Roles,
    variable: &Variable,
) -> KnownLabels {
    roles.labels_of(hierarchy, variable, 0, "").map(|labels| (labels, None)).into_iter().collect()
}

impl<'a> Finder<'a> {
    fn hierarchy(&self) -> &'a Hierarchy {
        self.store.hierarchy()
    }

    /// Finds the instances of all axes of a variable, and theirs.
    pub(super) async fn levels(&self, links: &Links, number: usize) -> Result<Vec<Level>> {
        let variable = variable(&**self.store, number)?;
        let mut levels: Vec<Level> = vec![];
        for (axis, dim) in variable.axes.iter().enumerate() {
            let Some(name) = dim.name.as_deref() else { continue };
            for link in links.of(variable.group(), name, dim.len) {
                levels.extend(self.level(variable, axis, link, dim.len).await?);
            }
        }
        let mut next = 0;
        while next < levels.len() && levels.len() < MOST_LEVELS {
            let of = next;
            next += 1;
            let Some(len) = levels[of].len else { continue };
            for link in links.of(variable.group(), &levels[of].link.instances.clone(), len) {
                let is_known = levels.iter().any(|it| it.link.instances == link.instances);
                let axis = levels[of].axis;
                if is_known || variable.axes[axis].name.as_deref() == Some(&link.instances) {
                    continue;
                }
                if let Some(level) = self.level(variable, axis, link, len).await? {
                    let members = levels[of].members.then(&level.members);
                    let variables = [levels[of].variables.clone(), level.variables].concat();
                    levels.push(Level { members: Arc::new(members), variables, ..level });
                }
            }
        }
        Ok(levels)
    }

    /// Reads the instances of `len` samples of a variable; `None` if the link is about another dimension of that name.
    async fn level(
        &self,
        of: &Variable,
        axis: usize,
        link: &Link,
        len: u64,
    ) -> Result<Option<Level>> {
        let variables = &self.hierarchy().variables;
        let first_len = |it: &Variable| it.axes.first().map(|axis| axis.len);
        let len_of_instances = match link.counts {
            true => variables.get(link.variable).and_then(first_len),
            false => variables.iter().find(|it| link.has_instances(it)).and_then(first_len),
        };
        let place = self.store.objects();
        match self.members(link, len, len_of_instances).await {
            Ok(members) => Ok(Some(Level {
                axis,
                link: link.clone(),
                len: len_of_instances,
                members: Arc::new(members),
                variables: vec![link.variable],
            })),
            Err(error) if error.kind() == ErrorKind::Corrupt && link.may_be_another(of.group()) => {
                let (place, why) = (place.name(), error.detail());
                log::warn!("{place}: \"{}\" has no columns of instances: {why}", of.path);
                Ok(None)
            }
            Err(error) => {
                let name = variables.get(link.variable).map_or("", |it| it.name());
                Err(place.named(error.about(&format!("\"{name}\"")).followed_by(WAY_OUT)))
            }
        }
    }

    async fn members(&self, link: &Link, len: u64, instances: Option<u64>) -> Result<Members> {
        let (store, roles, hierarchy) = (self.store, self.roles, self.hierarchy());
        let variable = variable(&**store, link.variable)?;
        let mut view = self.view.clone();
        // In version 2 of Zarr, the fill value is missing data. But 0 is a count and an index like others.
        if variable.fill_is_missing && variable.fill.iter().all(|byte| *byte == 0) {
            view.read.fill_as_null = false;
        }
        let mut known = without_labels(hierarchy, roles, variable);
        let array = open_variable(store, roles, link.variable, &view, &mut known).await?;
        let numbers = read_line(&array).await?;
        let numbers = numbers.ok_or_else(|| {
            Error::unsupported("it has many elements, but few are stored".to_owned())
        })?;
        match link.counts {
            true => Members::from_counts(&numbers, len),
            false => Members::from_indices(&numbers, instances),
        }
    }
}
