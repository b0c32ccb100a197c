//! Small Zarr stores with the coordinates and attributes that tests need.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

/// A Zarr store of a single chunk per variable.
pub(crate) struct Store {
    folder: TempDir,
}

impl Store {
    /// Makes an empty store.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("x.zarr")).unwrap();
        let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
        fs::write(folder.path().join("x.zarr/zarr.json"), group.to_string()).unwrap();
        Self { folder }
    }

    /// The path of the store.
    pub(crate) fn path(&self) -> String {
        self.folder.path().join("x.zarr").to_str().unwrap().to_owned()
    }

    /// The path of a file beside the store.
    pub(crate) fn beside(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file beside the store, and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.beside(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Adds a variable of 64-bit floats.
    pub(crate) fn with(
        self,
        name: &str,
        dims: &[&str],
        shape: &[usize],
        attributes: Value,
        cells: &[f64],
    ) -> Self {
        let bytes = cells.iter().flat_map(|it| it.to_le_bytes()).collect();
        self.with_bytes(name, "float64", dims, shape, attributes, bytes)
    }

    /// Adds a variable of 32-bit floats.
    pub(crate) fn with_singles(
        self,
        name: &str,
        dims: &[&str],
        shape: &[usize],
        attributes: Value,
        cells: &[f32],
    ) -> Self {
        let bytes = cells.iter().flat_map(|it| it.to_le_bytes()).collect();
        self.with_bytes(name, "float32", dims, shape, attributes, bytes)
    }

    fn with_bytes(
        self,
        name: &str,
        data_type: &str,
        dims: &[&str],
        shape: &[usize],
        attributes: Value,
        bytes: Vec<u8>,
    ) -> Self {
        let mut metadata = json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shape}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
            "fill_value": "NaN", "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            "dimension_names": dims,
        });
        metadata["attributes"] = attributes;
        let root = self.folder.path().join("x.zarr");
        if let Some((group, _)) = name.split_once('/') {
            fs::create_dir_all(root.join(group)).unwrap();
            fs::copy(root.join("zarr.json"), root.join(group).join("zarr.json")).unwrap();
        }
        let folder = root.join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("zarr.json"), metadata.to_string()).unwrap();
        let zeros = vec!["0"; shape.len()].join(".");
        fs::write(folder.join(format!("c.{zeros}")), bytes).unwrap();
        self
    }

    /// A store with the variable `v (lat, lon)`, whose cells are `1000 lat + lon` by index.
    pub(crate) fn of_degrees(lat: &[f64], lon: &[f64]) -> Self {
        let cell = |at: usize| 1000.0 * (at / lon.len()) as f64 + (at % lon.len()) as f64;
        let cells: Vec<f64> = (0..lat.len() * lon.len()).map(cell).collect();
        Self::new()
            .with("lat", &["lat"], &[lat.len()], json!({"units": "degrees_north"}), lat)
            .with("lon", &["lon"], &[lon.len()], json!({"units": "degrees_east"}), lon)
            .with("v", &["lat", "lon"], &[lat.len(), lon.len()], json!({}), &cells)
    }
}

/// Returns evenly spaced labels.
pub(crate) fn steps(first: f64, step: f64, count: usize) -> Vec<f64> {
    (0..count).map(|at| first + step * at as f64).collect()
}

/// The polygon of a box, as WKT.
pub(crate) fn boxed([west, east]: [f64; 2], [south, north]: [f64; 2]) -> String {
    format!(
        "POLYGON (({west} {south}, {east} {south}, {east} {north}, {west} {north}, {west} {south}))"
    )
}
