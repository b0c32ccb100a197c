//! The verification of manifests: they agree with the snapshot, and the objects that they name are long enough.

use std::collections::HashMap;

use super::reader::IcechunkReader;
use crate::bytes::icechunk::{ListedChunk, ListedManifest};
use gridfusion_cf::conventions::VariableStore;
use gridfusion_core::format::Entry;
use gridfusion_core::{Error, Result};

/// The lengths of the objects in the folder `chunks`, by their names.
pub(super) type Sizes = HashMap<String, u64>;

/// The chunks that are looked up at once.
const AT_ONCE: usize = 4096;

/// Checks all manifests of a variable. Returns the number of chunks, or shards, that they list.
///
/// # Errors
/// `Corrupt` for a manifest that contradicts the snapshot, and for an object that is absent or too short. `Io` for a
/// manifest that is absent.
pub(super) async fn check_variable(reader: &IcechunkReader, variable: usize) -> Result<u64> {
    if variable == 0 {
        for manifest in reader.store.other_manifests() {
            let bytes = reader.read(&[&manifest]).await?;
            bytes.iter().try_for_each(|bytes| reader.store.check_other(&manifest, bytes))?;
        }
    }
    let mut count = 0;
    for manifest in reader.store.manifests(variable)? {
        let bytes = reader.read(&[&manifest]).await?;
        for bytes in &bytes {
            let chunks = reader.store.listed(variable, &manifest, bytes)?;
            reader.check_memory()?;
            check_chunks(reader, variable, &manifest, &chunks).await?;
            count += chunks.len() as u64;
        }
    }
    Ok(count)
}

/// Checks the chunks that a manifest lists.
async fn check_chunks(
    reader: &IcechunkReader,
    variable: usize,
    manifest: &ListedManifest,
    chunks: &[ListedChunk],
) -> Result<()> {
    if let Some(sizes) = sizes(reader).await? {
        for ListedChunk { index, native, len } in chunks {
            let Some((name, offset)) = native else { continue };
            let end = offset.saturating_add(*len);
            let message = match sizes.get(name) {
                Some(size) if end <= *size => continue,
                Some(size) => {
                    format!(
                        "the chunk {index:?} ends at byte {end} of chunks/{name}, which has {size} bytes"
                    )
                }
                None => format!("the chunk {index:?} is in chunks/{name}, which is not there"),
            };
            return Err(Error::corrupt_region("manifest", message).in_file(&manifest.object));
        }
    }
    for some in chunks.chunks(AT_ONCE) {
        let looked_up = some.iter().filter_map(|it| reader.store.first_chunk(variable, &it.index));
        // A shard may lack its first chunk, and an array that became shorter the whole object.
        let is_sharded = reader.store.is_sharded(variable);
        let at: Vec<Vec<u64>> = looked_up.collect();
        let found = reader.locate(variable, at.clone()).await?;
        let absent = at.iter().zip(&found).find(|(_, it)| it.layers.is_empty() && !is_sharded);
        if let Some((at, _)) = absent {
            let message = format!("it lists the chunk {at:?}, which a query does not find");
            return Err(Error::corrupt_region("manifest", message).in_file(&manifest.object));
        }
    }
    Ok(())
}

/// Returns the lengths of objects with chunks; `None` if they cannot be listed, as on a web server.
async fn sizes(reader: &IcechunkReader) -> Result<Option<&Sizes>> {
    if let Some(known) = reader.sizes.get() {
        return Ok(known.as_ref());
    }
    let listed = match reader.objects().list(vec!["chunks".to_owned()]).await {
        Ok(listed) => Some(listed),
        Err(error) if reader.is_remote => {
            log::debug!("cannot be listed: {error}");
            None
        }
        Err(error) => return Err(error),
    };
    let entries = |listed: Vec<Vec<Entry>>| -> Sizes {
        listed.into_iter().flatten().filter_map(|it| Some((it.name, it.size?))).collect()
    };
    Ok(reader.sizes.get_or_init(|| listed.map(entries)).as_ref())
}
