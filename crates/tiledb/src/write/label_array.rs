//! The array of a dimension label: the labels of a dimension, in an array of one dimension.

use std::ops::Range;

use arrow::array::{Array, ArrayRef};
use gridfusion_core::format::{Content, Write};
use gridfusion_core::write::{Attributes, NewArray, NewChunk, NewDimension, NewVariable};
use gridfusion_core::{Error, Result};

use super::cell_type::CellType;
use super::fragment::NewFragment;
use super::names::{FIRST_SCHEMA, fragment_name};
use super::schema::{dense_schema, schema_file};
use super::tile::{CellEncoder, Nulls};
use super::tiles::NewTiles;
use crate::bytes::{ArraySchema, DimensionDomain, DimensionLabel, DimensionSchema, Pipeline};
use crate::labels::LABEL_ATTRIBUTE;

/// The most labels of a tile.
const LABELS: i128 = 1 << 16;

/// Returns the writes of the array of a dimension label, of this time. No reader finds it before the schema of the array that names it.
///
/// # Errors
/// `Internal` errors only.
pub(super) fn label_array(
    label: &DimensionLabel,
    of: &DimensionSchema,
    labels: &ArrayRef,
    of_bytes: &Pipeline,
    time: u64,
) -> Result<Vec<Write>> {
    let cell = CellType::new(labels.data_type())?;
    let mut attribute = cell.attribute(LABEL_ATTRIBUTE, &cell.default_fill(), of_bytes.clone())?;
    attribute.datatype = label.datatype;
    let mut index = DimensionSchema { name: "index".to_owned(), ..of.clone() };
    if let DimensionDomain::Integer { low, high, extent } = &mut index.domain {
        // As many labels as possible, if the last tile ends where the domain does.
        let most = LABELS.min(labels.len() as i128).max(1);
        let own = extent.unwrap_or(1);
        let fits = |tiles: &i128| (*high - *low + 1) % (tiles * own) == 0;
        let all = (most / own).max(1);
        let halves = std::iter::successors(Some(1 << all.ilog2()), |it| Some(it / 2));
        let tiles = std::iter::once(all).chain(halves.take_while(|it| *it > 0)).find(fits);
        *extent = Some(tiles.unwrap_or(1) * own);
    }
    let schema = dense_schema(vec![index], vec![attribute], vec![], None, of_bytes);
    let root = format!("{}/", label.uri);
    let all = 0..labels.len() as u64;
    let low = schema.dimensions[0].tile_axis()?.low;
    let mut writes = label_fragment(&root, (&schema, FIRST_SCHEMA), labels, low, all, time)?;
    let file = schema_file(&schema, Some(label.order))?;
    let object = format!("{root}__schema/{FIRST_SCHEMA}");
    writes.push(Write::Overwrite(vec![Content::new(object, file)]));
    Ok(writes)
}

/// Returns the writes of a fragment with labels, of which it has those of this range. The first of all labels has the coordinate `low`.
///
/// # Errors
/// `Usage` if a label has no place in the array, `Unsupported` for arrays that are not written.
pub(super) fn label_fragment(
    root: &str,
    (schema, schema_name): (&ArraySchema, &str),
    labels: &ArrayRef,
    low: i128,
    range: Range<u64>,
    time: u64,
) -> Result<Vec<Write>> {
    let ([dimension], [attribute]) = (&schema.dimensions[..], &schema.attributes[..]) else {
        return Err(Error::unsupported("labels in an array of several dimensions or attributes"));
    };
    let axis = dimension.tile_axis()?;
    if (low - axis.low) % i128::from(axis.extent) != 0
        || low + i128::from(range.end) - 1 > axis.high
    {
        return Err(Error::usage(format!(
            "{} labels in an array from {} to {}; write the array anew with room",
            labels.len(),
            axis.low,
            axis.high
        )));
    }
    let of_bytes = &schema.offsets_pipeline;
    let is_text = attribute.is_variable();
    let filter = attribute.pipeline.not_written(is_text).or(of_bytes.not_written(false));
    if let Some(filter) = filter {
        return Err(Error::unsupported(format!("writing labels with the filter {filter}")));
    }
    let new = NewDimension {
        name: "index".to_owned(),
        labels: ArrayRef::clone(labels),
        attributes: Attributes::new(),
    };
    let variable = NewVariable {
        name: LABEL_ATTRIBUTE.to_owned(),
        data_type: labels.data_type().clone(),
        fill: None,
        attributes: Attributes::new(),
    };
    let array = NewArray::try_new(vec![new], vec![variable], &[axis.extent])?;
    let array = array.with_region(vec![range.clone()])?;
    let cell = CellType::of_attribute(labels.data_type(), attribute.datatype)?;
    let padding = cell.default_fill();
    let encoder = CellEncoder::new(cell, attribute, Nulls::Refused, padding, of_bytes);
    let fragment = NewFragment::new(root.to_owned(), fragment_name(time));
    let mut tiles = NewTiles::try_new(array, fragment, vec![axis.extent], u64::MAX)?;
    tiles.add_field(0, encoder, false)?;
    let mut writes = vec![];
    for at in tiles.array.chunks_of_region().into_iter().flatten() {
        let Range { start, end } = tiles.array.ranges_in(&[at])[0].clone();
        let cells = labels.slice(start as usize, (end - start) as usize);
        let chunk = NewChunk { variable: 0, coordinates: vec![at], cells, given: None };
        writes.extend(tiles.write_many(&[chunk], 1)?);
    }
    let covered = tiles.covered(&schema.dimensions, &[low]);
    writes.extend(tiles.fragment.finish(schema_name, &covered)?);
    writes.push(Write::Put(vec![tiles.fragment.commit()]));
    Ok(writes)
}
