//! Of TileDB arrays, and of groups and folders of them.

use std::sync::Arc;

use datafusion::execution::runtime_env::RuntimeEnv;
use gridfusion::array::GridArray;
use gridfusion::format::tiledb;
use gridfusion::source::OpenedTileDb;
use gridfusion::{TileDbReadOptions, TileDbSchema, open_tiledb};

use super::document::{Array, Attribute, Dimension, Document, Folder, Fragment, Pair};
use super::text::utc_milliseconds;
use crate::args::InfoArgs;

/// What is known of the array at the path, or of those in the folder there.
pub(super) async fn describe(
    schema: &TileDbSchema,
    args: &InfoArgs,
    runtime: &Arc<RuntimeEnv>,
) -> gridfusion::Result<Document> {
    let located: Vec<(&str, &str)> = schema.arrays().collect();
    if let [(name, location)] = located[..]
        && location == args.path
    {
        return Ok(Document::Array(Box::new(
            array(name, location, args, schema.options(), runtime).await?,
        )));
    }
    let (mut arrays, mut warnings) = (Vec::new(), Vec::new());
    for (name, location) in located {
        match array(name, location, args, schema.options(), runtime).await {
            Ok(array) => arrays.push(array),
            Err(error) => warnings.push(format!("array \"{name}\": {error}")),
        }
    }
    Ok(Document::Folder(Folder {
        path: args.path.clone(),
        format: "tiledb_folder",
        arrays,
        warnings,
    }))
}

async fn array(
    name: &str,
    location: &str,
    args: &InfoArgs,
    options: &TileDbReadOptions,
    runtime: &RuntimeEnv,
) -> gridfusion::Result<Array> {
    let opened = open_tiledb(location, options, runtime).await?;
    let (schema, fragments) = (opened.tiledb().schema(), opened.tiledb().fragments());
    let (table, warnings) = match opened.array(&options.view()) {
        Ok(table) => (Some(table), vec![]),
        Err(error) => (None, vec![format!("not a table: {error}")]),
    };
    let metadata = match args.metadata {
        true => Some(pairs(opened.metadata().await?)),
        false => None,
    };
    let listed = args.listed().map(|most| fragments.iter().take(most).map(fragment).collect());
    Ok(Array {
        path: location.to_owned(),
        format: "tiledb",
        name: name.to_owned(),
        kind: schema.kind.to_string(),
        format_version: schema.version,
        tile_order: schema.tile_order.to_string(),
        cell_order: schema.cell_order.to_string(),
        shape: table.as_ref().map(|table| table.grid().shape().to_vec()),
        tile_shape: table.as_ref().map(|table| table.grid().chunk_shape().collect()),
        dimensions: dimensions(&opened, table.as_ref())?,
        attributes: attributes(&opened),
        fragments: fragments.len() as u64,
        stored_bytes: fragments.iter().map(|it| it.bytes()).fold(0, u64::saturating_add),
        written_from: fragments.iter().map(|it| it.t1).min().map(utc_milliseconds),
        written_to: fragments.iter().map(|it| it.t2).max().map(utc_milliseconds),
        warnings,
        metadata,
        fragment_list: listed,
    })
}

fn dimensions(
    opened: &OpenedTileDb,
    table: Option<&GridArray>,
) -> gridfusion::Result<Vec<Dimension>> {
    let described = opened.tiledb().schema().dimensions.iter().enumerate();
    let known = described.map(|(axis, dimension)| {
        let length = table.map(|table| table.grid().shape()[axis]);
        let ends = match (table, length.and_then(|length| length.checked_sub(1))) {
            (Some(table), Some(last)) => {
                let labels = table.dims()[axis].labels();
                [labels.text(0)?, labels.text(last)?]
            }
            _ => [None, None],
        };
        let [first, last] = ends;
        Ok(Dimension {
            name: dimension.name.clone(),
            length,
            data_type: Some(dimension.datatype.to_string()),
            first,
            last,
            units: None,
            domain: opened.domain_text(dimension),
            tile_extent: dimension.extent_text(),
        })
    });
    known.collect()
}

fn attributes(opened: &OpenedTileDb) -> Vec<Attribute> {
    let fragments = opened.tiledb().fragments();
    let known =
        opened.tiledb().schema().attributes.iter().enumerate().map(|(number, described)| {
            let name = described.name.as_str();
            let stored = fragments.iter().map(|it| it.attribute_bytes(name));
            let stored_bytes = stored.fold(0, u64::saturating_add);
            let raw_bytes = fragments
                .iter()
                .map(|it| it.attribute_raw_bytes(name))
                .try_fold(0_u64, |sum, bytes| sum.checked_add(bytes?));
            let enumeration = opened.tiledb().enumeration(number);
            Attribute {
                name: name.to_owned(),
                datatype: described.datatype.to_string(),
                values_per_cell: described.values_per_cell.to_string(),
                nullable: described.nullable,
                enumeration: enumeration.map(|it| it.name.clone()),
                filters: described.pipeline.to_string(),
                stored_bytes,
                raw_bytes,
                ratio: raw_bytes
                    .filter(|_| stored_bytes > 0)
                    .map(|raw_bytes| raw_bytes as f64 / stored_bytes as f64),
            }
        });
    known.collect()
}

fn fragment(known: &tiledb::Fragment) -> Fragment {
    Fragment {
        name: known.name.clone(),
        written_from: utc_milliseconds(known.t1),
        written_to: utc_milliseconds(known.t2),
        format_version: known.version,
        tiles: known.tiles,
        cells: known.cells,
        stored_bytes: known.bytes(),
    }
}

fn pairs(metadata: Vec<(String, tiledb::MetadataValue)>) -> Vec<Pair> {
    let pair = |(key, value): (String, tiledb::MetadataValue)| Pair {
        dataset: None,
        key,
        value: value.to_string(),
    };
    metadata.into_iter().map(pair).collect()
}
