//! Whether the coordinates of a file of polygons are longitudes and latitudes.

use serde_json::Value;

/// The kind of coordinates that a file declares by its coordinate reference system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Crs {
    /// Longitudes and latitudes, also of another datum than WGS 84: these differ by some metres.
    Geographic,
    /// Coordinates of a projection.
    Projected,
    /// The file does not tell, or in a way that is not known here.
    #[default]
    Unknown,
}

impl Crs {
    /// Returns that of a GeoJSON file by its member `crs`, which the GeoJSON of 2008 had. Without it, coordinates
    /// are longitudes and latitudes (RFC 7946, section 4).
    pub(super) fn from_geojson(crs: Option<&Value>) -> Self {
        let Some(crs) = crs else { return Self::Geographic };
        let name = crs.get("properties").and_then(|it| it.get("name")).and_then(Value::as_str);
        name.map_or(Self::Unknown, Self::from_name)
    }

    /// Returns that of a GeoParquet column by its member `crs`, which is PROJJSON. Without it, coordinates are
    /// longitudes and latitudes (GeoParquet 1.1, "crs").
    fn from_geoparquet(crs: Option<&Value>) -> Self {
        let Some(crs) = crs else { return Self::Geographic };
        match crs.get("type").and_then(Value::as_str) {
            Some("GeographicCRS") => Self::Geographic,
            Some("ProjectedCRS") => Self::Projected,
            _ => Self::Unknown,
        }
    }

    /// Returns that of a name such as `urn:ogc:def:crs:EPSG::4326`. EPSG has geographic systems from 4001 to 4999.
    fn from_name(name: &str) -> Self {
        let code = name.rsplit(':').next().and_then(|it| it.parse::<u32>().ok());
        let is_epsg = name.to_ascii_uppercase().contains("EPSG");
        match (name.ends_with("CRS84"), is_epsg, code) {
            (true, ..) | (_, true, Some(4001..=4999)) => Self::Geographic,
            (_, true, Some(3857 | 32601..=32660 | 32701..=32760)) => Self::Projected,
            _ => Self::Unknown,
        }
    }
}

/// Returns the column of geometries that the metadata `geo` of a GeoParquet file names as primary, and its coordinates; or those of the
/// column `wanted`.
///
/// ```
/// use gridfusion_spatial::{Crs, geoparquet_column};
///
/// let text = r#"{"primary_column": "shape", "columns": {"shape": {}, "old": {"crs": null}}}"#;
/// assert_eq!(geoparquet_column(text, None), Some(("shape".to_owned(), Crs::Geographic)));
/// assert_eq!(geoparquet_column(text, Some("old")), Some(("old".to_owned(), Crs::Unknown)));
/// ```
pub fn geoparquet_column(metadata: &str, wanted: Option<&str>) -> Option<(String, Crs)> {
    let metadata: Value = serde_json::from_str(metadata).ok()?;
    let name = wanted.or_else(|| metadata.get("primary_column")?.as_str())?;
    let column = metadata.get("columns").and_then(|it| it.get(name));
    let crs = match column {
        // A column that the file does not list is none of its geometries.
        None if wanted.is_some() => Crs::Unknown,
        column => Crs::from_geoparquet(column.and_then(|it| it.get("crs"))),
    };
    Some((name.to_owned(), crs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_geojson() {
        let named = |name: &str| {
            Crs::from_geojson(Some(
                &serde_json::json!({"type": "name", "properties": {"name": name}}),
            ))
        };
        assert_eq!(Crs::from_geojson(None), Crs::Geographic);
        assert_eq!(Crs::from_geojson(Some(&Value::Null)), Crs::Unknown);
        assert_eq!(named("urn:ogc:def:crs:OGC:1.3:CRS84"), Crs::Geographic);
        assert_eq!(named("urn:ogc:def:crs:EPSG::4258"), Crs::Geographic);
        assert_eq!(named("EPSG:32633"), Crs::Projected);
        assert_eq!(named("urn:ogc:def:crs:EPSG::3035"), Crs::Unknown);
    }

    #[test]
    fn systems_of_geoparquet() {
        let of = |crs: &str| {
            let text = format!(r#"{{"primary_column": "g", "columns": {{"g": {{{crs}}}}}}}"#);
            geoparquet_column(&text, None).unwrap().1
        };
        assert_eq!(of(""), Crs::Geographic);
        assert_eq!(of(r#""crs": null"#), Crs::Unknown);
        assert_eq!(of(r#""crs": {"type": "ProjectedCRS", "name": "UTM"}"#), Crs::Projected);
        assert_eq!(of(r#""crs": {"type": "GeographicCRS"}"#), Crs::Geographic);
        let without = r#"{"primary_column": "g", "columns": {}}"#;
        assert_eq!(geoparquet_column(without, Some("h")), Some(("h".to_owned(), Crs::Unknown)));
        assert_eq!(geoparquet_column("{", None), None);
    }
}
