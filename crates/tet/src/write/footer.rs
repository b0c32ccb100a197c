//! The bytes behind the payloads: zone maps, metadata and the tail (sections 8 to 10 of the format).

use std::collections::BTreeMap;

use gridfusion_core::{Error, Result};
use serde_json::{Map, Value, json};

use super::dataset::NewDataset;
use super::image::hex;

/// The most bytes of the JSON with inline metadata.
const MOST_INLINE: usize = 64 << 10;
/// The most bytes of metadata before the JSON.
const MOST_METADATA: usize = 16 << 20;
/// The version of footers with zone maps.
const VERSION: u32 = 2;

/// Returns the bytes behind the payloads, which end at `payload_end`: zone maps, metadata and the tail.
///
/// # Errors
/// `Unsupported` if there is too much metadata.
pub(super) fn footer(zones: &[u8], metadata: &Value, payload_end: u64) -> Result<Vec<u8>> {
    let reference = |offset: u64, bytes: &[u8]| json!({"offset": offset, "len": bytes.len()});
    let zones_ref = reference(payload_end, zones);
    let inline =
        bytes_of(&json!({"history": [], "metadata": metadata, "zone_maps_ref": zones_ref}))?;
    let (spilled, footer) = match inline.len() <= MOST_INLINE {
        true => (vec![], inline),
        false => {
            let spilled = bytes_of(metadata)?;
            if spilled.len() > MOST_METADATA {
                return Err(Error::unsupported(format!(
                    "{} bytes of attributes and labels, and a .tet file has at most {MOST_METADATA}",
                    spilled.len()
                )));
            }
            let metadata_ref = reference(payload_end + zones.len() as u64, &spilled);
            let footer =
                json!({"history": [], "metadata_ref": metadata_ref, "zone_maps_ref": zones_ref});
            (spilled, bytes_of(&footer)?)
        }
    };
    let mut bytes = zones.to_vec();
    bytes.extend(spilled);
    let json_len = footer.len() as u64;
    bytes.extend(footer);
    bytes.extend(json_len.to_le_bytes());
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(b"THST");
    Ok(bytes)
}

/// Returns the metadata of all datasets. Each has names of dimensions; `labels` has the labels of some dimensions as texts.
pub(super) fn metadata(
    datasets: &[NewDataset],
    dimensions: &[Vec<String>],
    labels: &BTreeMap<String, Vec<String>>,
) -> Value {
    let of_dataset = |(dataset, names): (&NewDataset, &Vec<String>)| {
        let mut facts = Map::new();
        facts.insert("dim_names".to_owned(), json!(names));
        let known = names
            .iter()
            .filter_map(|name| Some((name.clone(), json!({"labels": labels.get(name)?}))));
        let known: Map<String, Value> = known.collect();
        if !known.is_empty() {
            facts.insert("coords".to_owned(), Value::Object(known));
        }
        if !dataset.attributes.is_empty() {
            facts.insert("attrs".to_owned(), json!(dataset.attributes));
        }
        (dataset.name.clone(), Value::Object(facts))
    };
    let all: Map<String, Value> = datasets.iter().zip(dimensions).map(of_dataset).collect();
    json!({"file": {"tool": "gridfusion"}, "datasets": all})
}

/// Returns the range of the values of each chunk, as JSON that names the generation of a package and the hash of the payloads.
pub(super) fn zone_maps(datasets: &[NewDataset], generation: u64, sha256: &str) -> Result<Vec<u8>> {
    let mut zones = vec![];
    for (id, dataset) in datasets.iter().enumerate() {
        for (number, chunk) in &dataset.chunks {
            let coordinates = dataset.grid.chunk_coordinates(*number);
            let cells = dataset.grid.extents(&coordinates).iter().product::<u64>();
            let mut zone = json!({
                "dataset_id": id,
                "chunk_index": coordinates,
                "element_count": cells,
                "null_count": chunk.statistics.nulls,
            });
            if let (Some((least, greatest)), Some(zone)) =
                (chunk.statistics.bounds, zone.as_object_mut())
            {
                let size = dataset.element.size() as usize;
                zone.insert("min_le".to_owned(), json!(hex(&least[..size])));
                zone.insert("max_le".to_owned(), json!(hex(&greatest[..size])));
            }
            zones.push(zone);
        }
    }
    bytes_of(&json!({
        "version": 1,
        "generation": generation,
        "packed_sha256": sha256,
        "chunks": zones,
    }))
}

fn bytes_of(document: &Value) -> Result<Vec<u8>> {
    let bytes = serde_json::to_vec(document);
    bytes.map_err(|error| Error::internal(format!("a footer is no JSON: {error}")))
}
