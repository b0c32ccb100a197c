//! The facts about the attributes of an array, and about the dimensions of a sparse one, as rows of `array_info`.

use super::columns::{column_name, element};
use super::described_array::stored;
use super::labels::{ATTRIBUTE_KEY, DIMENSION_KEY};
use super::reader::TileDbReader;
use super::view::TileDbView;
use crate::bytes::{ArrayKind, Datatype, MetadataValue, OpenOptions, ReadMetadata};
use gridfusion_core::Result;
use gridfusion_core::array::ColumnSource;
use gridfusion_core::source::facts::KnownAttribute;
use gridfusion_core::source::{KnownDataset, OpenedArray, Place, Role};
use gridfusion_core::tile::{Objects, drive};

/// Returns a row per attribute of the array `name`. In a sparse array, dimensions are stored too, and have rows first.
pub(super) fn known_attributes(
    name: &str,
    opened: &TileDbReader,
    view: &TileDbView,
) -> Vec<KnownDataset> {
    let schema = opened.tiledb().schema();
    let (table, warnings) = match opened.array(view) {
        Ok(table) => (Some(table), vec![]),
        Err(error) => (None, vec![format!("not a table: {error}")]),
    };
    let grid = table.as_ref().and_then(OpenedArray::as_grid).map(|array| array.grid());
    let tiles = opened.tiledb().fragments().iter().map(|it| it.tiles);
    let tiles = tiles.fold(0, u64::saturating_add);
    let is_sparse = schema.kind == ArrayKind::Sparse;
    let array = KnownDataset {
        name: name.to_owned(),
        dimensions: match table.as_ref().and_then(OpenedArray::as_grid) {
            Some(array) => array.dims().iter().map(|it| it.name().to_owned()).collect(),
            None => schema.dimensions.iter().map(|it| it.name.clone()).collect(),
        },
        shape: grid.map(|grid| grid.shape().to_vec()),
        chunk_shape: grid.map(|grid| grid.chunk_shape().collect()),
        chunks: if is_sparse { Some(tiles) } else { grid.map(|grid| grid.chunks()) },
        // Several fragments may have a tile of the same cells.
        stored_chunks: is_sparse.then_some(tiles),
        warnings,
        ..KnownDataset::default()
    };
    let dimensions = schema.dimensions.iter().enumerate().filter(|_| is_sparse);
    let dimensions = dimensions.map(|(number, dimension)| {
        let own = Some(&dimension.pipeline).filter(|own| !own.is_empty());
        KnownDataset {
            variable: Some(dimension.name.clone()),
            role: Some(Role::Coordinate),
            data_type: table.as_ref().and_then(|table| column_type(table, number, true)),
            element_type: Some(element_name(dimension.datatype)),
            codec: Some(own.unwrap_or(&schema.coords_pipeline).to_string()),
            ..array.clone()
        }
    });
    let attributes = stored(opened).enumerate().map(|(number, stored)| KnownDataset {
        variable: Some(column_name(stored.attribute).to_owned()),
        role: Some(Role::Data),
        data_type: table.as_ref().and_then(|table| column_type(table, number, false)),
        element_type: Some(element_name(stored.attribute.datatype)),
        codec: Some(stored.attribute.pipeline.to_string()),
        stored_bytes: Some(stored.bytes),
        raw_bytes: stored.raw_bytes,
        ..array.clone()
    });
    dimensions.chain(attributes).collect()
}

/// Returns the name of a stored type: that of other formats, such as `f32`, or else TileDB's own.
fn element_name(datatype: Datatype) -> String {
    element(datatype).map_or_else(|| datatype.to_string(), |element| element.to_string())
}

/// Returns the type of the column of a dimension or an attribute.
fn column_type(table: &OpenedArray, number: usize, is_dimension: bool) -> Option<String> {
    let (schema, at) = match table {
        OpenedArray::Grid(array) => {
            let source = ColumnSource::Value(number);
            (array.schema(), array.columns().iter().position(|it| *it == source)?)
        }
        OpenedArray::Sparse(array) => {
            (array.schema(), if is_dimension { number } else { array.rank() + number })
        }
    };
    Some(schema.fields().get(at)?.data_type().to_string())
}

/// Reads the metadata of the array `name` as attributes of the array itself.
///
/// # Errors
/// As [`TileDbReader::metadata`].
pub(super) async fn metadata(name: &str, opened: &TileDbReader) -> Result<Vec<KnownAttribute>> {
    Ok(known(Some(name), opened.metadata().await?).collect())
}

/// Reads the metadata of the array `name` as attributes of the array, and of its columns. Keys of columns are those of TileDB-CF.
///
/// # Errors
/// As [`TileDbReader::metadata`].
pub(super) async fn array_attributes(
    name: &str,
    opened: &TileDbReader,
) -> Result<Vec<KnownAttribute>> {
    let schema = opened.tiledb().schema();
    let labels = schema.labels.iter().map(|it| &it.name);
    let dimensions = schema.dimensions.iter().map(|it| &it.name).chain(labels);
    let dimensions = dimensions.map(|name| (format!("{DIMENSION_KEY}{name}."), name));
    let attributes = schema.attributes.iter().map(|it| &it.name);
    let attributes = attributes.map(|name| (format!("{ATTRIBUTE_KEY}{name}."), name));
    let columns: Vec<(String, &String)> = dimensions.chain(attributes).collect();
    let of_column = |it: KnownAttribute| {
        // A name may begin with that of another column and a full stop.
        let known = columns.iter().filter(|(prefix, _)| it.key.starts_with(prefix));
        match known.max_by_key(|(prefix, _)| prefix.len()) {
            Some((prefix, column)) => {
                KnownAttribute { key: it.key[prefix.len()..].to_owned(), ..it }.of_variable(column)
            }
            None => it,
        }
    };
    Ok(metadata(name, opened).await?.into_iter().map(of_column).collect())
}

/// Reads the metadata of the group or folder at `place`, which has no path if it is the outermost one.
///
/// # Errors
/// `Corrupt` or `Io` if the metadata cannot be read.
pub(super) async fn group_metadata(
    path: &str,
    place: &Place,
    options: &OpenOptions,
) -> Result<Vec<KnownAttribute>> {
    let objects = Objects::many(place.folder()?);
    let pairs = drive(ReadMetadata::new(options.clone()), &objects).await?;
    let path = Some(path).filter(|path| !path.is_empty());
    Ok(known(path, pairs).map(|it| KnownAttribute { is_of_group: path.is_some(), ..it }).collect())
}

fn known(
    of: Option<&str>,
    pairs: Vec<(String, MetadataValue)>,
) -> impl Iterator<Item = KnownAttribute> {
    pairs.into_iter().map(move |(key, value)| KnownAttribute {
        kind: value.kind(),
        ..KnownAttribute::text(of, key, value.to_string())
    })
}
