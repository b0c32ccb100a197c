//! Stores that have only half of the marks of a Zarr store.
//!
//! kerchunk and VirtualiZarr write references in Parquet as a folder with a `.zmetadata` document. Its chunks are no objects:
//!
//! ```text
//!   refs.parq/.zmetadata        { "metadata": {…}, "record_size": 10000 }
//!   refs.parq/t2m/refs.0.parq   path, offset, size, raw of the first 10000 chunks
//! ```
//!
//! Read as a plain store, each of its chunks would be absent, and so each cell the fill value.

use serde_json::Value;

use super::json::Object;
use gridfusion_core::{Error, Result};

/// Fails for consolidated metadata of version 2 of a folder that is no plain store.
///
/// # Errors
/// `Unsupported` for references in Parquet, and for another version of the document.
pub(super) fn check_consolidated(metadata: &Object) -> Result<()> {
    if metadata.contains_key("record_size") {
        return Err(parquet_references());
    }
    match metadata.get("zarr_consolidated_format").map(Value::as_u64) {
        None | Some(Some(1)) => Ok(()),
        Some(_) => {
            let version = &metadata["zarr_consolidated_format"];
            Err(Error::unsupported(format!("consolidated metadata of version {version}")))
        }
    }
}

/// Whether an object with this name has references in Parquet: `refs.0.parq`.
pub(super) fn is_parquet_references(name: &str) -> bool {
    let number = name.strip_prefix("refs.").and_then(|rest| rest.strip_suffix(".parq"));
    number.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The error for references in Parquet.
pub(super) fn parquet_references() -> Error {
    Error::unsupported(
        "references of kerchunk in Parquet (`record_size` in `.zmetadata`, `refs.0.parq`), whose chunks lie in other files; \
         write the references as JSON, or open the files themselves",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridfusion_core::ErrorKind;

    #[test]
    fn halves_are_named() {
        let check = |text: &str| check_consolidated(&serde_json::from_str(text).unwrap());
        assert!(check(r#"{"metadata": {}}"#).is_ok());
        assert!(check(r#"{"metadata": {}, "zarr_consolidated_format": 1}"#).is_ok());
        let error = check(r#"{"metadata": {}, "record_size": 10000}"#).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("kerchunk"), "{error}");
        assert!(check(r#"{"metadata": {}, "zarr_consolidated_format": 2}"#).is_err());
        let names = ["refs.0.parq", "refs.12.parq", "refs..parq", "refs.x.parq", "refs.0.parquet"];
        assert_eq!(names.map(is_parquet_references), [true, true, false, false, false]);
    }
}
