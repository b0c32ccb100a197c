//! Stores that have only half of the marks of a Zarr store.
//!
//! kerchunk and VirtualiZarr write references in Parquet as a folder with a `.zmetadata` document, whose `record_size` is their
//! mark (`reference_table`). Its chunks are no objects. Read as a plain store, each of its chunks would be absent, and so each
//! cell the fill value.

use serde_json::Value;

use super::json::{Object, document};
use gridfusion_core::{Error, Result};

/// Returns the most rows of a table of references, if consolidated metadata of version 2 is that of references in Parquet.
///
/// # Errors
/// `Corrupt` if it is no such number; `Unsupported` for references of version 3, whose chunks no writer has numbered.
pub(super) fn record_size(metadata: &Object) -> Result<Option<u64>> {
    let Some(size) = metadata.get("record_size") else { return Ok(None) };
    let rows = size.as_u64().filter(|rows| *rows > 0);
    let rows =
        rows.ok_or_else(|| Error::corrupt_region("metadata", format!("the record size {size}")))?;
    let documents = metadata.get("metadata").and_then(Value::as_object);
    let is_version_3 = |name: &String| name.rsplit('/').next() == Some("zarr.json");
    match documents.is_some_and(|documents| documents.keys().any(is_version_3)) {
        true => Err(Error::unsupported("references in Parquet to a store of version 3")),
        false => Ok(Some(rows)),
    }
}

/// Whether a document of consolidated metadata is that of references in Parquet.
pub(crate) fn has_reference_tables(consolidated: &[u8]) -> bool {
    document("metadata", consolidated).is_ok_and(|it| it.contains_key("record_size"))
}

/// Fails for consolidated metadata of version 2 in another form than is known.
///
/// # Errors
/// `Unsupported` for another version of the document.
pub(super) fn check_consolidated(metadata: &Object) -> Result<()> {
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

/// The error for references in Parquet in a store that does not declare them.
pub(super) fn parquet_references() -> Error {
    Error::unsupported(
        "references in Parquet (`refs.0.parq`), whose chunks lie in other files, without a `record_size` in `.zmetadata`; \
         open the folder that kerchunk or VirtualiZarr wrote",
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
        let rows = |text: &str| record_size(&serde_json::from_str(text).unwrap());
        assert_eq!(rows(r#"{"metadata": {}, "record_size": 10000}"#).unwrap(), Some(10_000));
        assert_eq!(rows(r#"{"metadata": {}}"#).unwrap(), None);
        for (text, kind) in [
            (r#"{"metadata": {}, "record_size": 0}"#, ErrorKind::Corrupt),
            (r#"{"metadata": {}, "record_size": "7"}"#, ErrorKind::Corrupt),
            (r#"{"metadata": {"a/zarr.json": {}}, "record_size": 7}"#, ErrorKind::Unsupported),
        ] {
            assert_eq!(rows(text).unwrap_err().kind(), kind, "{text}");
        }
        assert!(check(r#"{"metadata": {}, "zarr_consolidated_format": 2}"#).is_err());
        let names = ["refs.0.parq", "refs.12.parq", "refs..parq", "refs.x.parq", "refs.0.parquet"];
        assert_eq!(names.map(is_parquet_references), [true, true, false, false, false]);
    }
}
