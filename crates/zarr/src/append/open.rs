//! Opens a [`ZarrTarget`]: finds the arrays that columns are, and all that new cells of them need.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use gridfusion_cf::conventions::{HierarchyGroup, HierarchyView, VariableStore};
use gridfusion_core::array::{LabelOrder, ReadOptions};
use gridfusion_core::format::{ByteRange, Location};
use gridfusion_core::options::ResolvedOptions;
use gridfusion_core::source::{ArrayGroup, OpenedArray};
use gridfusion_core::tile::Objects;
use gridfusion_core::write::TargetDimension;
use gridfusion_core::{Error, Result};
use serde_json::Value;

use super::documents::StoreDocuments;
use super::metadata::{Roles, are_same, axis_of, parse, roles};
use super::sides::SideArray;
use super::staged::{STAGED, StagedObjects};
use super::target::{MOST_LEFT, ZarrTarget};
use super::variable::TargetVariable;
use crate::bytes::ZarrArray;
use crate::journal::{JOURNAL, Journal};
use crate::store::ZarrReader;
use crate::write::DOCUMENT;

impl ZarrTarget {
    /// Opens a store whose variables and dimensions have these names. `fills_others` tells that other arrays get NULL, too.
    pub(super) async fn opened(
        objects: Arc<Objects>,
        columns: &[&str],
        fills_others: bool,
    ) -> Result<Self> {
        let named = |error| objects.named(error);
        let (root, left) = first_documents(&objects).await?;
        let staged = staged(&objects, left.as_ref()).await?;
        let all = StoreDocuments::read(&objects, root, left.as_ref()).await.map_err(named)?;
        let roles = roles(&all.metadata, columns).map_err(named)?;
        let names = roles.arrays();
        all.check_lengths(&names, &roles.dimensions).map_err(named)?;
        let documents = all.documents(&objects, &names).await?;
        let of_left = left.iter().flat_map(|left| [Some(&left.dimension), left.finer.as_ref()]);
        let of_left: Vec<&str> = of_left.flatten().map(String::as_str).collect();
        let others = all.documents_beside(&objects, &of_left, &names).await?;
        let of_filled = roles.dimensions.iter().filter(|_| fills_others).map(String::as_str);
        let of_filled: Vec<&str> = of_filled.collect();
        let of_filled = all.documents_beside(&objects, &of_filled, &names).await?;
        let StoreDocuments { root, metadata, reader, .. } = all;
        let store = StoreArrays::new(&objects, reader, &metadata)?;
        let mut labels = store.variables(&names, documents).await.map_err(named)?;
        let filled = store.each(of_filled).await;
        let Roles { dimensions, variables, sides } = roles;
        let of_sides = labels.split_off(dimensions.len() + variables.len()).into_iter();
        let sides =
            of_sides.zip(&sides).map(|(it, (_, names))| SideArray::new(it, names, &dimensions));
        let sides = sides.collect();
        let variables = labels.split_off(dimensions.len());
        let dimensions = target_dimensions(dimensions, &variables)?;
        let target = Self {
            root,
            metadata,
            dimensions,
            labels,
            variables,
            sides,
            filled,
            left,
            staged,
            refines_times: false,
            others,
        };
        target.check_documents().map_err(named)?;
        Ok(target)
    }

    /// Fails if the document of an array differs from its copy in the root, unless a program was stopped between the two.
    fn check_documents(&self) -> Result<()> {
        for variable in self.arrays() {
            let name = variable.name();
            let (mut own, listed) = (parse(&variable.document)?, &self.metadata[name]);
            if self.left.as_ref().is_some_and(|left| left.finer.as_deref() == Some(name)) {
                own = parse(&self.with_units_of_root(name, &variable.document)?)?;
            }
            if let Some(left) = &self.left
                && let Some(axis) = axis_of(listed, &left.dimension)
                && own["shape"][axis] == left.from
                && listed["shape"][axis] == left.to
            {
                own["shape"][axis] = Value::from(left.to);
            }
            if !are_same(&own, listed) {
                return Err(Error::usage(format!(
                    "the metadata of \"{name}\" in the root's zarr.json is not that of {name}/zarr.json: another program has written \
                     without consolidating; run zarr.consolidate_metadata"
                )));
            }
        }
        Ok(())
    }
}

/// The arrays of a store, as queries read them.
struct StoreArrays<'a> {
    group: HierarchyGroup,
    arrays: Vec<Arc<ZarrArray>>,
    metadata: &'a BTreeMap<String, Value>,
}

impl<'a> StoreArrays<'a> {
    fn new(
        objects: &Objects,
        reader: ZarrReader,
        metadata: &'a BTreeMap<String, Value>,
    ) -> Result<Self> {
        let arrays = reader.arrays().to_vec();
        let store: Arc<dyn VariableStore> = Arc::new(reader);
        let view = HierarchyView::new(&ResolvedOptions::default(), &ReadOptions::default());
        Ok(Self { group: HierarchyGroup::new(objects.name(), store, view)?, arrays, metadata })
    }

    /// Opens arrays of these names, with their own documents.
    async fn variables(
        &self,
        names: &[&String],
        documents: Vec<Bytes>,
    ) -> Result<Vec<TargetVariable>> {
        let paths: Vec<String> = names.iter().map(|name| (*name).clone()).collect();
        let opened = paths.iter().zip(self.group.arrays(&paths).await?).zip(documents);
        opened.map(|((name, array), document)| self.variable(name, array, document)).collect()
    }

    /// Opens arrays one by one, each of which may fail.
    async fn each(&self, documents: Vec<(String, Bytes)>) -> Vec<(String, Result<TargetVariable>)> {
        let mut opened = vec![];
        for (name, document) in documents {
            let variables = self.variables(&[&name], vec![document]).await;
            let variable = variables.and_then(|mut it| {
                it.pop().ok_or_else(|| Error::internal(format!("no array {name}")))
            });
            opened.push((name, variable));
        }
        opened
    }

    fn variable(&self, name: &str, array: OpenedArray, document: Bytes) -> Result<TargetVariable> {
        let zarr = self.arrays.iter().find(|it| it.variable().path == name);
        let zarr = zarr.ok_or_else(|| Error::internal(format!("no array {name}")))?;
        let array = array.into_grid()?;
        let variable =
            TargetVariable::try_new(Arc::clone(zarr), array, &self.metadata[name], document)?;
        variable.check_cells().map(|()| variable)
    }
}

/// Returns the dimensions with their labels, as the first variable has them.
fn target_dimensions(
    names: Vec<String>,
    variables: &[TargetVariable],
) -> Result<Vec<TargetDimension>> {
    let dims = variables.iter().take(1).flat_map(TargetVariable::dims);
    let target = names.into_iter().zip(dims).map(|(name, dimension)| {
        let labels = dimension.labels();
        Ok(TargetDimension {
            name,
            labels: labels.slice(0..labels.len())?,
            descends: labels.order() == LabelOrder::Descending,
            is_sorted: labels.order() != LabelOrder::Unsorted,
        })
    });
    target.collect()
}

/// Reads the root's document, and the journal of a program that was stopped.
async fn first_documents(objects: &Objects) -> Result<(Bytes, Option<Journal>)> {
    let first = [DOCUMENT, JOURNAL].map(|object| Location::new(object, ByteRange::Whole));
    let found = objects.read_if_present(&first).await?;
    let [Some(root), left] = <[Option<Bytes>; 2]>::try_from(found).unwrap_or_default() else {
        let message = "there is no Zarr store of version 3 to append to: no zarr.json";
        return Err(objects.named(Error::usage(message)));
    };
    Ok((root, left.map(|bytes| Journal::parse(&bytes)).transpose()?))
}

/// Finds the objects that a program staged before it was stopped.
async fn staged(objects: &Objects, left: Option<&Journal>) -> Result<StagedObjects> {
    let Some(left) = left else { return Ok(StagedObjects::default()) };
    let names = objects.some_below(STAGED, MOST_LEFT + 1).await?;
    if names.len() > MOST_LEFT {
        let message =
            "too many objects that a program was to replace; remove it if no program writes";
        return Err(objects.named(Error::usage(message).in_file(STAGED)));
    }
    Ok(StagedObjects::from_names(&left.id, &names))
}
