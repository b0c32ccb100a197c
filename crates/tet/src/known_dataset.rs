//! The facts about a dataset in the form that all formats share, and the columns of `tet_info`.

use super::info::DatasetInfo;
use gridfusion_core::source::{ARRAY_INFO, Column, KnownDataset, Role};

/// Converts the facts about a dataset to the form that all formats share.
pub(super) fn known_dataset(known: &DatasetInfo) -> KnownDataset {
    let attribute = |key: &str| known.attributes.get(key).cloned();
    let grid = known.grid.as_ref();
    KnownDataset {
        name: known.name.clone(),
        variable: None,
        role: Some(if known.is_coordinate { Role::Coordinate } else { Role::Data }),
        data_type: None,
        element_type: known.element.map(|element| element.to_string()),
        shape: Some(known.shape.clone()),
        chunk_shape: grid.map(|grid| grid.chunk_shape().collect()),
        chunks: grid.map(|grid| grid.chunks()),
        dimensions: known.dimensions.clone(),
        stored_chunks: Some(known.stored.chunks),
        stored_bytes: Some(known.stored.bytes),
        raw_bytes: Some(known.stored.raw_bytes),
        codec: known.stored.codec.map(|codec| codec.name().to_owned()),
        units: attribute("units"),
        long_name: attribute("long_name"),
        has_zone_maps: Some(known.has_zone_maps),
        warnings: known.warnings.clone(),
    }
}

/// Returns the columns of `tet_info`: those of the field `datasets` in the document of `gridfusion info --json`, in the
/// same order, and the warnings.
pub(super) fn tet_info_columns() -> Vec<Column<KnownDataset>> {
    let all = [
        ARRAY_INFO,
        &[Column::flag("is_coordinate", |it: &KnownDataset| Some(it.is_coordinate())).required()],
    ];
    let names = [
        "dataset",
        "element_type",
        "shape",
        "chunk_shape",
        "dimensions",
        "chunks",
        "stored_chunks",
        "stored_bytes",
        "raw_bytes",
        "ratio",
        "codec",
        "units",
        "long_name",
        "is_coordinate",
        "has_zone_maps",
        "warnings",
    ];
    Column::named(&all.concat(), &names)
}
