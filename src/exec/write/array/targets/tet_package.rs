//! `COPY … TO 'x.tet.d'`: a generation of a Tetration package.

use async_trait::async_trait;
use datafusion::error::Result;
use gridfusion_core::tile::Objects;
use gridfusion_core::write::{ArrayWriter, NewArray, VersionTarget};
use gridfusion_tet::TetPackageWriter;

use super::TargetFormat;
use super::tet::{CODECS, encoding};
use crate::exec::write::array::options::{WriteMode, WriteOptions};

pub(super) const NAME: &str = "tet.d";

/// A folder of generations, which are a file each.
#[derive(Debug)]
pub(super) struct TetPackageTarget;

#[async_trait]
impl TargetFormat for TetPackageTarget {
    fn name(&self) -> &'static str {
        NAME
    }

    /// The last part of the ending `.tet.d`, by which `COPY` chooses a format.
    fn names(&self) -> &'static [&'static str] {
        &["d"]
    }

    fn is_one_file(&self) -> bool {
        false
    }

    fn marks(&self) -> &'static [&'static str] {
        &["PROTOCOL"]
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
        _: &str,
        options: &WriteOptions,
    ) -> Result<Box<dyn ArrayWriter>> {
        Ok(Box::new(TetPackageWriter::try_new(array, encoding(options)?)?))
    }

    fn keeps_versions(&self) -> bool {
        true
    }

    async fn open_versions(
        &self,
        objects: &Objects,
        options: &WriteOptions,
    ) -> Result<Box<dyn VersionTarget>> {
        let encoding = encoding(options)?;
        let opened = gridfusion_tet::TetPackageTarget::open(objects, encoding, options.unlocks);
        Ok(Box::new(opened.await?))
    }
}
