//! From parsed objects to variables.

use std::sync::Arc;

use super::attributes::attributes;
use super::blocks::Blocks;
use super::context::Context;
use super::dimensions::{Dimensions, is_variable, variable_path};
use super::file::Hdf5File;
use super::inner::Inner;
use super::parse::Object;
use super::parsed::{Parsed, Whole};
use super::tree::Tree;
use super::variable::variable;
use crate::error::{Error, Result};
use crate::format::hierarchy::{Hierarchy, Unreadable};

/// Makes the file of its objects.
pub(super) fn file(whole: Whole, mut parsed: Parsed, blocks: Blocks) -> Result<Hdf5File> {
    if let Some(Err(_)) = parsed.get(&whole.root) {
        return Err(parsed.remove(&whole.root).and_then(Result::err).unwrap_or_else(no_root));
    }
    if !matches!(parsed.get(&whole.root), Some(Ok(Object::Group(_)))) {
        return Err(no_root());
    }
    let tree = Tree::new(whole.root, &parsed);
    let dimensions = Dimensions::new(&tree, &parsed);
    let is_netcdf = !dimensions.is_empty() || has_netcdf_attributes(whole.root, &parsed);
    let (widths, file_len) = (whole.widths, blocks.size());
    let context = Context { dimensions: &dimensions, widths, file_len, is_netcdf };

    let (mut hierarchy, mut stored) = (Hierarchy::default(), vec![]);
    for (path, address) in &tree.datasets {
        let path = variable_path(path);
        let made = match parsed.get(address) {
            Some(Ok(Object::Dataset(dataset))) if is_variable(dataset) => {
                variable(&context, *address, path.clone(), dataset)
            }
            Some(Err(error)) => Err(error.clone()),
            _ => continue,
        };
        match made {
            Ok((variable, place)) => {
                hierarchy.variables.push(variable);
                stored.push(place);
            }
            Err(error) => hierarchy.unreadable.push(unreadable(path, error)),
        }
    }
    for (path, error) in tree.unreadable {
        hierarchy.unreadable.push(unreadable(path, error));
    }
    for (path, address) in tree.groups {
        if let Some(Ok(Object::Group(group))) = parsed.get(&address) {
            hierarchy.groups.insert(path, attributes(&group.attributes));
        }
    }
    let superblock_version = whole.superblock_version;
    let inner = Inner { hierarchy, stored, superblock_version, is_netcdf, widths, blocks };
    Ok(Hdf5File(Arc::new(inner)))
}

fn no_root() -> Error {
    Error::corrupt_region("superblock", "its root is not a group")
}

fn unreadable(path: String, error: Error) -> Unreadable {
    let error = error.about(&format!("dataset {path:?}"));
    Unreadable { path, error }
}

fn has_netcdf_attributes(root: u64, parsed: &Parsed) -> bool {
    match parsed.get(&root) {
        Some(Ok(Object::Group(group))) => group.attributes.iter().any(|(name, _)| {
            name == "_NCProperties" || name == "_nc3_strict" || name.starts_with("_Netcdf4")
        }),
        _ => false,
    }
}
