//! Opening tables again from their origins, in this process or another.

use std::sync::Arc;

use async_trait::async_trait;

use super::array_table::ArrayTable;
use super::opener::{ArrayOpener, Chosen, open_files};
use crate::error::{Error, Result};
use crate::io::OpenFiles;
use crate::source::{FileArrays, KnownFiles, OpensFiles, OriginPlace, TableOrigin};

impl ArrayOpener {
    /// Opens a table again, in this process or another, from its origin.
    ///
    /// # Errors
    /// As [`ArrayOpener::table`].
    pub async fn reopen(&self, origin: &TableOrigin) -> Result<ArrayTable> {
        let (places, each) = self.chosen_again(origin).await?;
        let table = match (origin.is_many, places.as_slice(), each.as_slice()) {
            (false, [place], [chosen]) => self.one(&self.place(place)?, chosen).await?,
            _ => self.combined(origin.locations.name(), &places, each).await?.0,
        };
        Ok(table.with_origin(origin.clone()))
    }

    /// Opens a table of many files again. Opens only the first of these, and queries open the others when they read them.
    ///
    /// # Errors
    /// As [`ArrayOpener::table`], and `Io` if the first file was written since.
    #[cfg(feature = "codec")]
    pub(crate) async fn reopen_known(
        &self,
        origin: &TableOrigin,
        known: &KnownFiles,
    ) -> Result<ArrayTable> {
        let (places, each) = self.chosen_again(origin).await?;
        let mosaic = each.first().map(Chosen::mosaic).unwrap_or_default();
        let pool = open_files(&each);
        let files = Reopened { opener: self.clone(), places, each, pool };
        let arranged = known.arrange(Arc::new(files)).await?;
        let array = arranged.into_array(origin.locations.name(), &mosaic)?;
        Ok(ArrayTable::from(array).with_origin(origin.clone()))
    }

    /// Returns the places of a table, and the formats and options that they were opened with.
    async fn chosen_again(&self, origin: &TableOrigin) -> Result<(Vec<String>, Vec<Chosen>)> {
        let mut each = Vec::with_capacity(origin.places.len());
        for OriginPlace { location, format } in origin.places.iter() {
            let format = self.format_of(&self.place(location)?, Some(format)).await?;
            let options = self.formats.resolve(&format, &origin.options, &origin.defaults)?;
            each.push(Chosen { format, options: Arc::new(options) });
        }
        Ok((origin.places.iter().map(|it| it.location.clone()).collect(), each))
    }
}

/// The files of a table, each of which is opened when it is read.
#[cfg(feature = "codec")]
#[derive(Debug)]
struct Reopened {
    opener: ArrayOpener,
    places: Vec<String>,
    each: Vec<Chosen>,
    pool: Arc<OpenFiles>,
}

#[cfg(feature = "codec")]
#[async_trait]
impl OpensFiles for Reopened {
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
