//! The documents of a store of version 2, made of those of version 3.
//!
//! ```text
//!   t2m/.zarray     shape, chunks, dtype, compressor, filters, fill_value
//!   t2m/.zattrs     attributes, and the names of dimensions as xarray has them
//!   .zgroup .zattrs the group
//!   .zmetadata      all of these: readers find the store from here on
//! ```
//!
//! The bytes of chunks are the same in both versions. `fill_value` stands for NULL here, and is `null` without such a value.
//!
//! Facts: the specification of Zarr version 2, the codecs of numcodecs, and stores that xarray wrote.

use gridfusion_core::format::{Content, Publish, Write};
use gridfusion_core::write::Attributes;
use gridfusion_core::{Error, Result};
use serde_json::{Map, Value, json};

use super::metadata::{ArrayDocument, bytes_of};

/// The attribute with the names of dimensions.
const DIMENSIONS: &str = "_ARRAY_DIMENSIONS";

/// Returns the last writes of a store with these arrays, and the one after which readers know all of it.
pub(super) fn finish(
    attributes: &Attributes,
    arrays: &[ArrayDocument],
) -> Result<(Vec<Write>, Publish)> {
    let mut of_arrays = Map::new();
    for array in arrays {
        let [document, attributes] = documents(array)?;
        of_arrays.insert(format!("{}/.zarray", array.name), document);
        of_arrays.insert(format!("{}/.zattrs", array.name), attributes);
    }
    let mut of_group = Map::new();
    of_group.insert(".zattrs".to_owned(), json!(attributes));
    of_group.insert(".zgroup".to_owned(), json!({"zarr_format": 2}));
    let put = |documents: &Map<String, Value>| {
        let contents = documents.iter();
        let contents = contents.map(|(name, it)| Ok(Content::new(name.as_str(), bytes_of(it)?)));
        Ok::<_, Error>(Write::Put(contents.collect::<Result<_>>()?))
    };
    // The group is found only when its arrays are there.
    let writes = vec![put(&of_arrays)?, put(&of_group)?];
    of_arrays.append(&mut of_group);
    let all = json!({"zarr_consolidated_format": 1, "metadata": of_arrays});
    Ok((writes, Publish::Create(Content::new(".zmetadata", bytes_of(&all)?))))
}

/// Returns the document and the attributes of an array.
fn documents(array: &ArrayDocument) -> Result<[Value; 2]> {
    let of_3 = &array.document;
    let codecs = of_3["codecs"].as_array().map_or(&[][..], Vec::as_slice);
    let is_text = of_3["data_type"] == "string";
    let mut attributes = of_3["attributes"].as_object().cloned().unwrap_or_default();
    // In version 2, `fill_value` tells it.
    let null = if is_text { "missing_value" } else { "_FillValue" };
    let fill = match attributes.remove(null) {
        Some(_) => of_3["fill_value"].clone(),
        None => Value::Null,
    };
    attributes.insert(DIMENSIONS.to_owned(), of_3["dimension_names"].clone());
    let document = json!({
        "zarr_format": 2,
        "shape": of_3["shape"],
        "chunks": of_3["chunk_grid"]["configuration"]["chunk_shape"],
        "dtype": data_type(&of_3["data_type"])?,
        "compressor": compressor(codecs)?,
        "fill_value": fill,
        "order": "C",
        "filters": if is_text { json!([{"id": "vlen-utf8"}]) } else { Value::Null },
        "dimension_separator": SEPARATOR.to_string(),
    });
    Ok([document, Value::Object(attributes)])
}

/// The character between the coordinates of a chunk in the name of its object.
const SEPARATOR: char = '.';

/// Returns the name of the object with a chunk, such as `t2m/3.0`.
pub(super) fn key(name: &str, coordinates: &[u64]) -> String {
    let coordinates: Vec<String> = coordinates.iter().map(u64::to_string).collect();
    match coordinates.is_empty() {
        true => format!("{name}/0"),
        false => format!("{name}/{}", coordinates.join(&SEPARATOR.to_string())),
    }
}

/// Returns the type of cells as numpy writes it.
fn data_type(name: &Value) -> Result<&'static str> {
    Ok(match name.as_str().unwrap_or_default() {
        "bool" => "|b1",
        "int8" => "|i1",
        "int16" => "<i2",
        "int32" => "<i4",
        "int64" => "<i8",
        "uint8" => "|u1",
        "uint16" => "<u2",
        "uint32" => "<u4",
        "uint64" => "<u8",
        "float16" => "<f2",
        "float32" => "<f4",
        "float64" => "<f8",
        "string" => "|O",
        other => return Err(Error::internal(format!("the type {other} in version 2"))),
    })
}

/// Returns the compressor of codecs, the first of which makes bytes of cells.
fn compressor(codecs: &[Value]) -> Result<Value> {
    let (name, configuration) = match codecs {
        [_] => return Ok(Value::Null),
        [_, codec] => (codec["name"].as_str().unwrap_or_default(), &codec["configuration"]),
        _ => return Err(Error::usage("version 2 of Zarr has no checksums of chunks")),
    };
    Ok(match name {
        "zstd" | "gzip" => json!({"id": name, "level": configuration["level"]}),
        "blosc" => json!({
            "id": name,
            "cname": configuration["cname"],
            "clevel": configuration["clevel"],
            "shuffle": match configuration["shuffle"].as_str() {
                Some("shuffle") => 1,
                Some("bitshuffle") => 2,
                _ => 0,
            },
            "blocksize": configuration["blocksize"],
        }),
        "crc32c" => return Err(Error::usage("version 2 of Zarr has no checksums of chunks")),
        other => return Err(Error::internal(format!("the codec {other} in version 2"))),
    })
}
