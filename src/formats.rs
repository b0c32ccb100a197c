//! The formats that this crate brings, each from a crate of its own.

use std::sync::Arc;

use gridfusion_core::source::{ArrayFormat, Formats};

/// Returns the built-in formats, in the order in which they are tried.
///
/// ```
/// let formats = gridfusion::built_in_formats();
/// assert!(formats.get("netcdf").is_some());
/// ```
#[must_use]
pub fn built_in_formats() -> Formats {
    let formats: Vec<Arc<dyn ArrayFormat>> = vec![
        Arc::new(gridfusion_tet::Tet),
        #[cfg(feature = "tiledb")]
        Arc::new(gridfusion_tiledb::TileDb),
        #[cfg(feature = "zarr")]
        Arc::new(gridfusion_zarr::Zarr),
        #[cfg(feature = "zarr")]
        Arc::new(gridfusion_zarr::Icechunk),
        Arc::new(gridfusion_cf::NetCdf),
    ];
    Formats::new(formats).with_settings(crate::settings::SETTINGS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArrayOptions, OptionValue};

    #[test]
    fn names() {
        let formats = built_in_formats();
        for (name, expected) in [
            ("a.tet", Some("a .tet file")),
            ("dir/A.TET", Some("a .tet file")),
            ("a.tet.d/", Some("a .tet.d package")),
            ("a.csv", None),
            ("tet", None),
            ("ätet", None),
        ] {
            let found = formats.of_name(name).map(|(found, _)| found.recognised.what);
            assert_eq!(found.as_deref(), expected, "{name}");
        }
        for (name, expected) in [
            ("stations.tet", "stations"),
            ("soil.v1.tet", "soil.v1"),
            ("demo.tet.d", "demo"),
            ("forecast.TDB", "forecast"),
            ("runs", "runs"),
            (".tet", ".tet"),
        ] {
            assert_eq!(formats.stem(name), expected, "{name}");
        }
    }

    #[test]
    fn what_is_unknown_is_explained() {
        let formats = built_in_formats();
        let unknown = |format: &str, name: &str| {
            let given = ArrayOptions::default().with_option(name, OptionValue::Flag(true));
            let format = formats.get(format).unwrap();
            formats.resolve(format, &given, &ArrayOptions::default()).unwrap_err().to_string()
        };
        let found = unknown("tet", "datset");
        let expected = "unknown option 'datset', did you mean 'dataset'? The options are dataset, concat_dimension, stack, union_by_name, overlap, skip_unreadable, generation, ";
        assert!(found.starts_with(expected), "{found}");
        let found = unknown("tet", "timestamp");
        assert!(found.contains("'timestamp', which is for TileDB tables only; the"), "{found}");
        let setting = |name: &str| formats.setting(name).unwrap_err().to_string();
        assert!(setting("oi").starts_with("unknown setting 'gridfusion.oi'; the settings are"));
        assert!(setting("nan_is_null").contains("did you mean 'gridfusion.nan_as_null'?"));
        assert!(unknown("tiledb", "").contains("unknown option ''; the options are"));
    }
}
