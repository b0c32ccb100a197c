//! The arrays of a group that become the columns of one table.
//!
//! ```text
//!   dataset   none      all data variables over the same dimensions      t2m  tp
//!             t2m       one variable                                     value
//!             t2m, tp   several                                          t2m  tp
//!             forecast  those of a group                                 t2m  tp
//! ```

use super::array_format::{ArrayGroup, MatchedGroup, MatchedGroups, one};
use super::opened_array::{OpenedArray, TableArrays};
use crate::error::{Error, Result, shown_location};
use crate::options::ResolvedOptions;

impl dyn ArrayGroup + '_ {
    /// Opens the arrays that become columns of one table: those that the options name, as `columns` does. With the option
    /// `union_by_name`, their dimensions may differ.
    pub async fn chosen_columns(&self, options: &ResolvedOptions) -> Result<TableArrays> {
        self.chosen_columns_of(options.dataset(), options).await
    }

    /// As `chosen_columns`, with another `dataset` than that of the options.
    pub async fn chosen_columns_of(
        &self,
        dataset: Option<&str>,
        options: &ResolvedOptions,
    ) -> Result<TableArrays> {
        let mixes = options.flag("union_by_name").unwrap_or_default();
        self.columns_of(dataset, mixes).await
    }

    /// Opens the arrays that become columns of one table: one name, several with commas between them, or all
    /// data variables. The name of a group stands for its data variables. The column of a variable has its name, except in the
    /// table of one array, where it is `value`.
    pub async fn columns(&self, dataset: Option<&str>) -> Result<TableArrays> {
        self.columns_of(dataset, false).await
    }

    async fn columns_of(&self, dataset: Option<&str>, mixes: bool) -> Result<TableArrays> {
        if let Some(matched) = self.matched()? {
            return Box::pin(self.columns_of_all(matched, dataset, mixes)).await;
        }
        if let Some(name) = dataset.filter(|name| !self.has(name))
            && let Some(group) = self.group(name)?
        {
            return Box::pin(group.columns_of(None, mixes)).await;
        }
        let (opened, is_named) = match dataset {
            Some(names) => {
                let names = names_in(names, |name| self.has(name));
                // Other files may have the variables that this one lacks.
                let has = |name: &&String| self.has(name);
                let own: Vec<String> = names.iter().filter(has).cloned().collect();
                let chosen = if mixes && !own.is_empty() { &own } else { &names };
                (self.arrays(chosen).await?, names.len() > 1)
            }
            None if mixes && !self.is_array() => {
                (self.arrays(&self.data_variables().await?).await?, true)
            }
            None => (self.variables().await?, !self.is_array()),
        };
        let beside = self.beside(&opened).await?;
        let name = |it: OpenedArray| if is_named { it.with_variable_name() } else { it };
        let columns = opened.into_iter().map(name).collect();
        Ok(match TableArrays::new(self.file_name(), columns)? {
            TableArrays::Grids(file) => {
                let unreadable = if mixes { self.unreadable() } else { vec![] };
                let file = file.with_beside(beside)?.with_unreadable(unreadable);
                TableArrays::Grids(file.with_pinned_options(self.pinned_options()))
            }
            arrays => arrays,
        })
    }

    /// Opens the same columns of all groups that match a pattern.
    async fn columns_of_all(
        &self,
        matched: MatchedGroups,
        dataset: Option<&str>,
        mixes: bool,
    ) -> Result<TableArrays> {
        let file = shown_location(self.file_name());
        let (mut labels, mut all) = (vec![], vec![]);
        // A group of no arrays has no rows. Arrays that cannot be read are there.
        let has_arrays =
            |it: &MatchedGroup| !it.group.names().is_empty() || !it.group.unreadable().is_empty();
        for MatchedGroup { path, label, group } in matched.groups.into_iter().filter(has_arrays) {
            let name = format!("{file}#{path}");
            let columns = group.columns_of(dataset, mixes).await;
            let columns = columns.map_err(|error| {
                let error = error.in_file_instead(Some(name.clone()));
                error.followed_by("a narrower pattern in the option 'group' leaves this group out")
            })?;
            let TableArrays::Grids(mut columns) = columns else {
                return Err(
                    Error::unsupported("a sparse array in one of several groups").in_file(&name)
                );
            };
            labels.push(label);
            columns.name = name;
            all.push(columns);
        }
        if all.is_empty() {
            return Err(Error::usage("no group that matches has an array").in_file(&file));
        }
        let stacked = matched.pattern.stacked(&file, &labels, all, mixes)?;
        Ok(TableArrays::Grids(stacked.with_pinned_options(self.pinned_options())))
    }

    /// Opens the array `name`.
    pub async fn array(&self, name: &str) -> Result<OpenedArray> {
        one(self, name).await
    }
}

/// Splits the option `dataset` at its commas, unless `is_one` finds an array of the whole name.
/// `"u, v"` becomes `u` and `v`, but stays whole in a file that has a dataset of the name `u, v`.
pub(crate) fn names_in(dataset: &str, is_one: impl Fn(&str) -> bool) -> Vec<String> {
    match dataset.contains(',') && !is_one(dataset) {
        true => dataset.split(',').map(|name| name.trim().to_owned()).collect(),
        false => vec![dataset.to_owned()],
    }
}
