//! `COPY … TO 'x.tet.d'`: a generation of a Tetration package.

use async_trait::async_trait;
use datafusion::error::Result;
use gridfusion_core::tile::Objects;
use gridfusion_core::write::{ArrayWriter, NewArray};
use gridfusion_tet::TetPackageWriter;

use super::tet::{CODECS, encoding};
use super::{AddedArray, TargetFormat};
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

    async fn open_folder(
        &self,
        objects: &Objects,
        is_new: bool,
        options: &WriteOptions,
    ) -> Result<AddedArray> {
        let encoding = encoding(options)?;
        if is_new {
            let writer =
                move |array| Ok(Box::new(TetPackageWriter::try_new(array, encoding)?) as _);
            return Ok(AddedArray { repair: vec![], writer: Box::new(writer) });
        }
        let opened = gridfusion_tet::TetPackageTarget::open(objects, encoding, options.unlocks);
        let mut versions = opened.await?;
        let repair = versions.repair();
        Ok(AddedArray {
            repair,
            writer: Box::new(move |array| Ok(Box::new(versions.writer(array)?) as _)),
        })
    }
}
