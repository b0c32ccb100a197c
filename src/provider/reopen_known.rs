//! Opening tables of many files again, without opening all files.

use std::sync::Arc;

use async_trait::async_trait;

use super::array_table::ArrayTable;
use super::files::open_files;
use super::opener::{ArrayOpener, Chosen};
use crate::error::{Error, Result};
use crate::io::OpenFiles;
use crate::source::{FileArrays, KnownFiles, OpensFiles, TableOrigin};

impl ArrayOpener {
    /// Opens a table of many files again. Opens only the first of these, and queries open the others when they read them.
    ///
    /// # Errors
    /// As [`ArrayOpener::table`], and `Io` if the first file was written since.
    pub(crate) async fn reopen_known(
        &self,
        origin: &TableOrigin,
        known: &KnownFiles,
    ) -> Result<ArrayTable> {
        let (places, each) = self.chosen_again(origin).await?;
        let mosaic = each.first().map(Chosen::mosaic).unwrap_or_default();
        let pool = open_files(&each);
        let files = TableFiles { opener: self.clone(), places, each, pool };
        let arranged = known.arrange(Arc::new(files)).await?;
        let array = arranged.into_array(origin.locations.name(), &mosaic)?;
        Ok(ArrayTable::from(array).with_origin(origin.clone()))
    }
}

/// The files of a table, each of which is opened when it is read.
#[derive(Debug)]
struct TableFiles {
    opener: ArrayOpener,
    places: Vec<String>,
    each: Vec<Chosen>,
    pool: Arc<OpenFiles>,
}

#[async_trait]
impl OpensFiles for TableFiles {
    async fn open(&self, place: usize) -> Result<FileArrays> {
        match (self.places.get(place), self.each.get(place)) {
            (Some(location), Some(chosen)) => {
                self.opener.opening().begin(1);
                self.opener.file(location, chosen, &self.pool).await
            }
            _ => Err(Error::corrupt_region("plan", "a file that is none of the table's places")),
        }
    }
}
