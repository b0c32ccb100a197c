//! From parsed objects to variables.

use std::collections::HashMap;
use std::sync::Arc;

use super::attributes::attributes;
use super::blocks::FileBlocks;
use super::context::Context;
use super::dimensions::{Dimensions, is_variable, variable_path};
use super::file::Hdf5File;
use super::inner::Inner;
use super::metadata_memory::MetadataMemory;
use super::parse::Object;
use super::parsed_objects::{ParsedObjects, Whole};
use super::stored_variable::StoredVariable;
use super::tree::Tree;
use super::variable::variable;
use crate::hierarchy::{Hierarchy, Unreadable, Variable};
use gridfusion_core::{Error, Result};

/// Makes the file of its objects. `kept` counts what they take, and `read` bytes were read of the file.
pub(super) fn file(
    whole: Whole,
    mut parsed: ParsedObjects,
    blocks: FileBlocks,
    (mut kept, read): (MetadataMemory, u64),
) -> Result<Hdf5File> {
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
    // An object of several paths is made once.
    let mut made = HashMap::new();
    for (in_file, address) in &tree.datasets {
        let path = variable_path(in_file);
        match made.entry(*address).or_insert_with(|| made_of(&context, &parsed, *address)) {
            Some(Ok((variable, place))) => {
                kept.add_variable(variable);
                hierarchy.variables.push(Variable { path, ..variable.clone() });
                stored.push(Arc::clone(place));
            }
            Some(Err(error)) => hierarchy.unreadable.push(unreadable(path, error.clone())),
            None => continue,
        }
        kept.add_path(in_file);
        kept.check(read)?;
    }
    for (path, error) in tree.unreadable {
        kept.add_path(&path);
        hierarchy.unreadable.push(unreadable(path, error));
    }
    let mut of_groups = HashMap::new();
    for (path, address) in tree.groups {
        if let Some(Ok(Object::Group(group))) = parsed.get(&address) {
            kept.add_path(&path);
            let own = of_groups.entry(address);
            let own = own.or_insert_with(|| Arc::new(attributes(&group.attributes)));
            hierarchy.groups.insert(path, Arc::clone(own));
        }
    }
    kept.check(read)?;
    let (superblock_version, kept) = (whole.superblock_version, kept.bytes());
    let inner = Inner { hierarchy, stored, kept, superblock_version, is_netcdf, widths, blocks };
    Ok(Hdf5File(Arc::new(inner)))
}

/// The variable that a dataset is, without its path, and how it is stored; or the reason why it cannot be read.
type AssembledVariable = Result<(Variable, Arc<StoredVariable>)>;

/// Makes a variable of the object at an address; `None` if it is none.
fn made_of(
    context: &Context<'_>,
    parsed: &ParsedObjects,
    address: u64,
) -> Option<AssembledVariable> {
    match parsed.get(&address)? {
        Ok(Object::Dataset(dataset)) if is_variable(dataset) => {
            let made = variable(context, address, dataset);
            Some(made.map(|(variable, place)| (variable, Arc::new(place))))
        }
        Ok(_) => None,
        Err(error) => Some(Err(error.clone())),
    }
}

fn no_root() -> Error {
    Error::corrupt_region("superblock", "its root is not a group")
}

fn unreadable(path: String, error: Error) -> Unreadable {
    let error = error.about(&format!("dataset {path:?}"));
    Unreadable::new(path, error)
}

fn has_netcdf_attributes(root: u64, parsed: &ParsedObjects) -> bool {
    match parsed.get(&root) {
        Some(Ok(Object::Group(group))) => group.attributes.iter().any(|(name, _)| {
            name == "_NCProperties" || name == "_nc3_strict" || name.starts_with("_Netcdf4")
        }),
        _ => false,
    }
}
