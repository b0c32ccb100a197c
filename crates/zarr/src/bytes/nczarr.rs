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
        // Without one of them, the others would name other axes.
        let references = references.and_then(Value::as_array).and_then(|all| {
            all.iter().map(|it| it.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        let listed = attributes.get("_ARRAY_DIMENSIONS").and_then(Attribute::text);
        let is_scalar = own.get("scalar").is_some_and(|it| *it == 1 || *it == true)
            || own.get("storage").and_then(Value::as_str) == Some("scalar")
            || listed == Some(SCALAR)
            || references.as_deref().is_some_and(|all| matches!(all, [it] if last(it) == SCALAR));
        Self { references, is_scalar }
    }

    /// Whether the only element of the array is the value of a scalar.
    pub(super) fn is_scalar(&self) -> bool {
        self.is_scalar
    }

    /// Returns the names of the dimensions, if there are any.
    pub(super) fn names(&self) -> Option<Vec<Option<String>>> {
        let references = self.references.as_ref()?;
        let name = |path: &String| Some(last(path).to_owned()).filter(|it| !it.is_empty());
        Some(references.iter().map(name).collect())
    }

    /// Returns the path of the variable that labels an axis of this name, if there is one: the one that has the path of the
    /// dimension.
    pub(super) fn labels(&self, axis: usize, name: Option<&str>) -> Option<String> {
        let path = self.references.as_ref()?.get(axis)?.strip_prefix('/')?;
        (Some(last(path)) == name).then(|| path.to_owned())
    }
}

/// Returns the name at the end of a path.
fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dimensions(references: &str) -> Dimensions {
        let own = format!(r#"{{"_NCZARR_ARRAY": {{"dimrefs": {references}}}}}"#);
        let metadata: Value = serde_json::from_str(&own).unwrap();
        Dimensions::new(&Attributes::new(), metadata.as_object().unwrap())
    }

    #[test]
    fn names_are_those_of_all_axes_or_none() {
        let named = |it: &str| Some(it.to_owned());
        assert_eq!(dimensions(r#"["/g/x", "/y"]"#).names(), Some(vec![named("x"), named("y")]));
        let odd = dimensions(r#"["/g/x", 5, "/y"]"#);
        assert_eq!((odd.names(), odd.labels(1, Some("y"))), (None, None));
    }

    #[test]
    fn a_scalar_has_one_dimension_of_that_name() {
        for (references, expected) in [
            (r#"["/_scalar_"]"#, true),
            (r#"["/g/_scalar_"]"#, true),
            (r#"["/my_scalar_"]"#, false),
            (r#"["/_scalar_/x"]"#, false),
            (r#"["/_scalar_", "/x"]"#, false),
        ] {
            assert_eq!(dimensions(references).is_scalar(), expected, "{references}");
        }
    }
}
