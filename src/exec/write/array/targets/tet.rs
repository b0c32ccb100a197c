//! `COPY … TO 'x.tet'`: a Tetration file.

use async_trait::async_trait;
use datafusion::common::plan_err;
use datafusion::error::Result;
use gridfusion_core::write::{ArrayWriter, NewArray};
use gridfusion_tet::{TetEncoding, TetWriter};

use super::TargetFormat;
use crate::exec::write::array::options::{WriteMode, WriteOptions};

/// One file, whose payloads are held in memory.
#[derive(Debug)]
pub(super) struct TetTarget;

#[async_trait]
impl TargetFormat for TetTarget {
    fn name(&self) -> &'static str {
        "tet"
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
        &["max_bytes"]
    }

    fn codecs(&self) -> &'static [(&'static str, Option<i32>)] {
        &[("zstd", Some(3)), ("none", None)]
    }

    fn writer(
        &self,
        array: NewArray,
        object: &str,
        options: &WriteOptions,
    ) -> Result<Box<dyn ArrayWriter>> {
        if let Some(name) = array.attributes().keys().next() {
            return plan_err!(
                "the attribute '{name}' of the whole array: a .tet file has attributes of columns only, as in '{{\"t2m\": {{\"{name}\": …}}}}'"
            );
        }
        let (_, zstd) = options.codec(self.codecs())?;
        let max_bytes = options.max_bytes.unwrap_or(TetEncoding::default().max_bytes);
        Ok(Box::new(TetWriter::try_new(array, object, TetEncoding { zstd, max_bytes })?))
    }
}
