//! The metadata that NCZarr, the Zarr of the NetCDF library, writes beside that of Zarr.
//!
//! ```text
//!   .zarray      "_NCZARR_ARRAY": {"dimrefs": ["/time", "/g/x"]}     up to 4.9.2
//!   .zattrs      "_nczarr_array": {"dimrefs": [...]}                 since 4.9.3
//!   zarr.json    "_nczarr_array": {"dimension_references": [...]}    version 3
//! ```
//!
//! A reference is the path of a dimension: the groups that hold it, and its name. A scalar is an array of one element.

use serde_json::Value;

use super::json::Object;
use gridfusion_cf::hierarchy::{Attribute, Attributes};

/// The name of the only dimension of a scalar.
const SCALAR: &str = "_scalar_";

/// Whether an attribute or a member of a document is of NCZarr's own.
pub(super) fn is_internal(name: &str) -> bool {
    name.starts_with("_nczarr_") || name.starts_with("_NCZARR_")
}

/// The dimensions of an array, as NCZarr names them.
#[derive(Debug, Default)]
pub(super) struct Dimensions {
    /// The paths of the dimensions.
    references: Option<Vec<String>>,
    /// Whether the only element is the value of a scalar.
    is_scalar: bool,
}

impl Dimensions {
    /// Takes the dimensions from an array's attributes or its document.
    pub(super) fn new(attributes: &Attributes, metadata: &Object) -> Self {
        const NAMES: [&str; 2] = ["_nczarr_array", "_NCZARR_ARRAY"];
        let of_document = NAMES.iter().find_map(|name| metadata.get(*name));
        // Attributes keep objects as texts.
        let of_attributes = || NAMES.iter().find_map(|name| attributes.get(*name)?.text());
        let own = match of_document {
            Some(Value::String(text)) => serde_json::from_str(text).ok(),
            Some(own) => Some(own.clone()),
            None => of_attributes().and_then(|text| serde_json::from_str(text).ok()),
        };
        let own = own.unwrap_or(Value::Null);
        let references = ["dimrefs", "dimension_references"].iter().find_map(|it| own.get(*it));
        let references = references.and_then(Value::as_array).map(|all| {
            all.iter().filter_map(|it| it.as_str().map(str::to_owned)).collect::<Vec<_>>()
        });
        let listed = attributes.get("_ARRAY_DIMENSIONS").and_then(Attribute::text);
        let is_scalar = own.get("scalar").is_some_and(|it| *it == 1 || *it == true)
            || own.get("storage").and_then(Value::as_str) == Some("scalar")
            || listed == Some(SCALAR)
            || references.as_deref().is_some_and(|all| all.iter().any(|it| it.ends_with(SCALAR)));
        Self { references, is_scalar }
    }

    /// Whether the only element of the array is the value of a scalar.
    pub(super) fn is_scalar(&self) -> bool {
        self.is_scalar
    }

    /// Returns the names of the dimensions, if there are any.
    pub(super) fn names(&self) -> Option<Vec<Option<String>>> {
        let references = self.references.as_ref()?;
        let name = |path: &String| path.rsplit('/').next().unwrap_or_default().to_owned();
        Some(references.iter().map(|path| Some(name(path)).filter(|it| !it.is_empty())).collect())
    }

    /// Returns the path of the variable that labels an axis of this name, if there is one: the one that has the path of the
    /// dimension.
    pub(super) fn labels(&self, axis: usize, name: Option<&str>) -> Option<String> {
        let path = self.references.as_ref()?.get(axis)?.strip_prefix('/')?;
        (path.rsplit('/').next() == name).then(|| path.to_owned())
    }
}
