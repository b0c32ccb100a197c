//! `COPY … TO 'x.tdb'`: a dense TileDB array.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::plan_err;
use datafusion::error::Result;
use gridfusion_core::tile::Objects;
use gridfusion_core::write::{AppendTarget, ArrayWriter, NewArray};
use gridfusion_tiledb::{TileDbEncoding, TileDbFilter, TileDbWriter};

use super::TargetFormat;
use crate::exec::write::array::options::{WriteMode, WriteOptions};

/// A folder with a schema and a fragment.
#[derive(Debug)]
pub(super) struct TileDbTarget;

/// The filters without a level, by name.
const FILTERS: [(&str, TileDbFilter); 9] = [
    ("rle", TileDbFilter::RunLength),
    ("delta", TileDbFilter::Delta),
    ("double_delta", TileDbFilter::DoubleDelta),
    ("bit_width_reduction", TileDbFilter::BitWidthReduction),
    ("byteshuffle", TileDbFilter::Byteshuffle),
    ("bitshuffle", TileDbFilter::Bitshuffle),
    ("xor", TileDbFilter::Xor),
    ("md5", TileDbFilter::Md5),
    ("sha256", TileDbFilter::Sha256),
];

#[async_trait]
impl TargetFormat for TileDbTarget {
    fn name(&self) -> &'static str {
        "tiledb"
    }

    fn names(&self) -> &'static [&'static str] {
        &["tdb", "tiledb"]
    }

    fn is_one_file(&self) -> bool {
        false
    }

    fn marks(&self) -> &'static [&'static str] {
        &["__schema", "__array_schema.tdb"]
    }

    fn modes(&self) -> &'static [WriteMode] {
        &[WriteMode::Create, WriteMode::Append, WriteMode::Overwrite]
    }

    fn options(&self) -> &'static [&'static str] {
        &["can_grow", "checksums", "existing", "filters", "max_bytes", "unlock"]
    }

    fn codecs(&self) -> &'static [(&'static str, Option<i32>)] {
        &[("zstd", Some(3)), ("gzip", Some(6)), ("bzip2", Some(9)), ("none", None)]
    }

    fn writer(
        &self,
        array: NewArray,
        _: &str,
        options: &WriteOptions,
    ) -> Result<Box<dyn ArrayWriter>> {
        let mut filters = match &options.filters {
            Some(_) if options.chooses_codec() => {
                return plan_err!("'filters' has the codec, too; leave 'codec' and 'level' out");
            }
            Some(chosen) => {
                let named = chosen.iter().map(|(name, level)| self.filter(name, *level));
                named.collect::<Result<_>>()?
            }
            None => match options.codec(self.codecs())? {
                ("none", _) => vec![],
                (name, level) => vec![self.filter(name, level)?],
            },
        };
        if options.checksums {
            filters.push(TileDbFilter::Sha256);
        }
        let default = TileDbEncoding::default();
        let max_bytes = options.max_bytes.unwrap_or(default.max_bytes);
        let encoding = TileDbEncoding { filters, max_bytes, can_grow: options.can_grow };
        Ok(Box::new(TileDbWriter::try_new(array, encoding)?))
    }

    async fn open(
        &self,
        objects: Arc<Objects>,
        columns: &[&str],
        _: &WriteOptions,
    ) -> Result<Box<dyn AppendTarget>> {
        Ok(Box::new(gridfusion_tiledb::TileDbTarget::open(objects, columns).await?))
    }
}

impl TileDbTarget {
    /// Returns a filter by its name, with a level if it has some.
    fn filter(&self, name: &str, level: Option<i32>) -> Result<TileDbFilter> {
        let default = self.codecs().iter().find(|(codec, _)| *codec == name);
        let default = default.and_then(|(_, level)| *level).unwrap_or_default();
        let found = FILTERS.iter().find(|(known, _)| *known == name);
        match (name, found, level) {
            ("zstd", ..) => Ok(TileDbFilter::Zstd(level.unwrap_or(default))),
            ("gzip", ..) => Ok(TileDbFilter::Gzip(level.unwrap_or(default))),
            ("bzip2", ..) => Ok(TileDbFilter::Bzip2(level.unwrap_or(default))),
            (_, Some((_, filter)), None) => Ok(*filter),
            (_, Some(_), Some(_)) => plan_err!("the filter '{name}' has no level"),
            (_, None, _) => {
                let known = FILTERS.map(|(known, _)| known).join(", ");
                plan_err!("there is no filter '{name}'; there are zstd, gzip, bzip2, {known}")
            }
        }
    }
}
