//! Forms of stores that no rows are appended to.

use std::path::Path;
use std::sync::Arc;

use gridfusion_core::io::RemoteStore;
use gridfusion_core::source::{ArrayFormat, Place, Stores};
use gridfusion_core::{Error, Result};
use url::Url;

use crate::{Icechunk, Zarr};

#[tokio::test]
async fn forms_that_are_only_read_take_no_rows() {
    #[derive(Debug)]
    struct NoStores;

    impl Stores for NoStores {
        fn store(&self, url: &Url) -> Result<RemoteStore> {
            Err(Error::usage(format!("no store of {url}")))
        }
    }

    let temporary = tempfile::tempdir().unwrap();
    let json = temporary.path().join("refs.json");
    std::fs::write(&json, r#"{"version": 1, "refs": {}}"#).unwrap();
    let icechunk: Arc<dyn ArrayFormat> = Arc::new(Icechunk);
    let zarr: Arc<dyn ArrayFormat> = Arc::new(Zarr);
    for (format, at, expected) in [
        (&zarr, "examples/data/sea.zarr", ""),
        (&zarr, "no/such.zarr", ""),
        (&zarr, "tests/data/zipped/sea.zarr.zip", "a zip file, which is only read; unpack it"),
        (&zarr, json.to_str().unwrap(), "references in JSON, which are only read; COPY"),
        (&zarr, "tests/data/references/fastparquet.parq", "references in Parquet, which are only"),
        (&icechunk, "tests/data/icechunk/spec2/small.icechunk", "an Icechunk repository, which"),
    ] {
        let at = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(at);
        let place = Place::new(at.to_str().unwrap(), Arc::new(NoStores)).unwrap();
        let checked = format.check_takes_rows(&place).await;
        let error = checked.err().map(|it| it.to_string()).unwrap_or_default();
        assert!(error.contains(expected) && error.is_empty() == expected.is_empty(), "{error}");
    }
}
