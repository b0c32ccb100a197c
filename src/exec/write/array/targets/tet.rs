//! `COPY … TO 'x.tet'`: a Tetration file.

use async_trait::async_trait;
use datafusion::common::plan_err;
use datafusion::error::Result;
use gridfusion_core::write::{ArrayWriter, NewArray};
use gridfusion_tet::{TetEncoding, TetWriter};

use super::TargetFormat;
use crate::exec::write::array::options::{WriteMode, WriteOptions};

pub(super) const NAME: &str = "tet";

/// The codecs of chunks with their levels.
pub(super) const CODECS: &[(&str, Option<i32>)] = &[("zstd", Some(3)), ("none", None)];

/// Returns the encoding that options choose.
///
/// # Errors
/// For attributes of the whole array.
pub(super) fn encoding(options: &WriteOptions) -> Result<TetEncoding> {
    if let Some(name) = options.attributes.of_array.keys().next() {
        return plan_err!(
            "the attribute '{name}' of the whole array: a .tet file has attributes of columns only, as in '{{\"t2m\": {{\"{name}\": …}}}}'"
        );
    }
    let (_, zstd) = options.codec(CODECS)?;
    let max_bytes = options.max_bytes.unwrap_or(TetEncoding::default().max_bytes);
    Ok(TetEncoding { zstd, max_bytes })
}

/// One file, whose payloads are held in memory.
#[derive(Debug)]
pub(super) struct TetTarget;

#[async_trait]
impl TargetFormat for TetTarget {
    fn name(&self) -> &'static str {
        NAME
    }

    fn names(&self) -> &'static [&'static str] {
        &["tet"]
    }

    fn is_one_file(&self) -> bool {
        true
    }

    fn modes(&self) -> &'static [WriteMode] {
        &[WriteMode::Create, WriteMode::Overwrite]
    }

    fn options(&self) -> &'static [&'static str] {
        &["max_bytes", "unlock"]
    }

    fn codecs(&self) -> &'static [(&'static str, Option<i32>)] {
        CODECS
    }

    fn writer(
        &self,
        array: NewArray,
        object: &str,
        options: &WriteOptions,
    ) -> Result<Box<dyn ArrayWriter>> {
        if options.unlocks {
            return plan_err!("'unlock' takes the lock of a package, and this is one file");
        }
        Ok(Box::new(TetWriter::try_new(array, object, encoding(options)?)?))
    }
}
