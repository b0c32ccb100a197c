//! `COPY … TO 'x.zarr'`: a Zarr store of version 3.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::plan_err;
use datafusion::error::Result;
use gridfusion_core::format::Publish;
use gridfusion_core::format::codecs::BloscCompressor;
use gridfusion_core::tile::Objects;
use gridfusion_core::write::{AppendTarget, ArrayWriter, NewArray};
use gridfusion_zarr::{ZarrBlosc, ZarrCompressor, ZarrEncoding, ZarrGroup, ZarrWriter};

use super::{AddedArray, NewWriter, TargetFormat};
use crate::exec::write::array::options::{WriteMode, WriteOptions};

/// The codecs of chunks with their levels.
const CODECS: &[(&str, Option<i32>)] = &[
    ("zstd", Some(3)),
    ("gzip", Some(5)),
    ("blosc", Some(5)),
    ("blosc:zstd", Some(5)),
    ("blosc:lz4", Some(5)),
    ("blosc:zlib", Some(5)),
    ("none", None),
];

/// A folder of objects.
#[derive(Debug)]
pub(super) struct ZarrTarget;

#[async_trait]
impl TargetFormat for ZarrTarget {
    fn name(&self) -> &'static str {
        "zarr"
    }

    fn names(&self) -> &'static [&'static str] {
        &["zarr"]
    }

    fn is_one_file(&self) -> bool {
        false
    }

    fn modes(&self) -> &'static [WriteMode] {
        &[WriteMode::Create, WriteMode::Append, WriteMode::Overwrite]
    }

    fn finds_arrays_by_name(&self) -> bool {
        true
    }

    fn marks(&self) -> &'static [&'static str] {
        &["zarr.json", ".zmetadata", ".zgroup", ".zarray"]
    }

    fn options(&self) -> &'static [&'static str] {
        &["checksums", "existing", "group", "others", "shards", "times", "unlock", "version"]
    }

    fn codecs(&self) -> &'static [(&'static str, Option<i32>)] {
        CODECS
    }

    fn writer(
        &self,
        array: NewArray,
        _: &str,
        options: &WriteOptions,
    ) -> Result<Box<dyn ArrayWriter>> {
        let writer = new_writer(array, options)?;
        Ok(Box::new(match is_version_2(options)? {
            true => writer.in_version_2()?,
            false => writer,
        }))
    }

    async fn open(
        &self,
        objects: Arc<Objects>,
        columns: &[&str],
        options: &WriteOptions,
    ) -> Result<Box<dyn AppendTarget>> {
        use gridfusion_zarr::ZarrTarget;
        Ok(Box::new(match options.fills_others {
            false => ZarrTarget::open(objects, columns).await?,
            true => ZarrTarget::open_filling_others(objects, columns).await?,
        }))
    }

    async fn listing_update(
        &self,
        store: &Objects,
        group: &str,
        may_create: bool,
    ) -> Result<Option<Publish>> {
        Ok(gridfusion_zarr::listing_update(store, group, may_create).await?)
    }

    async fn listing_removal(&self, store: &Objects, group: &str) -> Result<Option<Publish>> {
        Ok(gridfusion_zarr::listing_removal(store, group).await?)
    }

    async fn open_folder(
        &self,
        objects: &Objects,
        _: bool,
        options: &WriteOptions,
    ) -> Result<AddedArray> {
        let group = ZarrGroup::open(objects, path_of_group(options)).await?;
        Ok(AddedArray { repair: vec![], writer: group_writer(group, options.clone()) })
    }

    async fn replacing_group(&self, store: &Objects, options: &WriteOptions) -> Result<NewWriter> {
        let group = ZarrGroup::replacing(store, path_of_group(options)).await?;
        Ok(group_writer(group, options.clone()))
    }
}

fn path_of_group(options: &WriteOptions) -> &str {
    options.group.as_deref().unwrap_or_default()
}

fn group_writer(group: ZarrGroup, options: WriteOptions) -> NewWriter {
    Box::new(move |array| {
        let writer = new_writer(array, &options)?.in_group(group);
        Ok(match is_version_2(&options)? {
            true => Box::new(writer.in_version_2()?) as _,
            false => Box::new(writer) as _,
        })
    })
}

fn is_version_2(options: &WriteOptions) -> Result<bool> {
    match options.version.as_deref() {
        None | Some("3") => Ok(false),
        Some("2") => Ok(true),
        Some(other) => plan_err!("there is no version '{other}' of Zarr; there are 2 and 3"),
    }
}

fn new_writer(array: NewArray, options: &WriteOptions) -> Result<ZarrWriter> {
    let encoding = ZarrEncoding {
        compressor: match options.codec(CODECS)? {
            ("zstd", Some(level)) => Some(ZarrCompressor::Zstd(level)),
            ("gzip", Some(level)) => match u32::try_from(level) {
                Ok(level) => Some(ZarrCompressor::Gzip(level)),
                Err(_) => return plan_err!("gzip has levels from 0 to 9"),
            },
            ("blosc:lz4", Some(level)) => Some(blosc(BloscCompressor::Lz4, level)?),
            ("blosc:zlib", Some(level)) => Some(blosc(BloscCompressor::Zlib, level)?),
            ("blosc" | "blosc:zstd", Some(level)) => Some(blosc(BloscCompressor::Zstd, level)?),
            _ => None,
        },
        has_checksums: options.checksums,
        shard_chunks: shard_chunks(&array, options),
    };
    Ok(ZarrWriter::try_new(array, encoding)?)
}

fn blosc(compressor: BloscCompressor, level: i32) -> Result<ZarrCompressor> {
    match u8::try_from(level) {
        // The writer knows the levels.
        Ok(level) => Ok(ZarrCompressor::Blosc(ZarrBlosc::new(compressor, level))),
        Err(_) => plan_err!("blosc has levels from 0 to 9"),
    }
}

/// Returns the chunks of a shard along each axis, as far as the array has so many; `None` without shards.
fn shard_chunks(array: &NewArray, options: &WriteOptions) -> Option<Vec<u64>> {
    let grid = array.grid();
    let along = |((dimension, len), chunk): ((&str, &u64), u64)| {
        let all = len.div_ceil(chunk).max(1);
        let shard = options.shards.get(dimension);
        shard.map_or(all, |shard| (shard / chunk).clamp(1, all))
    };
    let names = array.dimensions().iter().map(|it| it.name.as_str());
    let axes = names.zip(grid.shape()).zip(grid.chunk_shape());
    (!options.shards.is_empty()).then(|| axes.map(along).collect())
}
