//! Opening tables again from their origins, in this process or another.

use std::sync::Arc;

use super::array_table::{AlignedTable, ArrayTable};
use super::files::Unreadable;
use super::opener::{ArrayOpener, Chosen};
use crate::error::Result;
use crate::source::{OriginPlace, TableOrigin};

impl ArrayOpener {
    /// Opens a table again, in this process or another, from its origin.
    ///
    /// # Errors
    /// As [`ArrayOpener::table`].
    pub async fn reopen(&self, origin: &TableOrigin) -> Result<ArrayTable> {
        let mut joined = vec![];
        for part in origin.side_by_side.iter() {
            let table = Box::pin(self.reopen(&part.origin)).await?;
            let (axes, ranges) = (part.axes.clone(), part.ranges.clone());
            joined.push(AlignedTable { table, axes, ranges });
        }
        if !joined.is_empty() {
            return Ok(ArrayTable::side_by_side(&joined)?.with_origin(origin.clone()));
        }
        let (places, each) = self.chosen_again(origin).await?;
        if let (false, [place], [chosen]) = (origin.is_many, places.as_slice(), each.as_slice()) {
            return self.one(&self.place(place)?, chosen, origin.clone()).await;
        }
        let name = origin.locations.name();
        let combined = self.combined(name, &places, &each, Unreadable::Refused).await?;
        Ok(combined.table.with_origin(origin.clone()))
    }

    /// Returns the places of a table, and the formats and options that they were opened with.
    pub(super) async fn chosen_again(
        &self,
        origin: &TableOrigin,
    ) -> Result<(Vec<String>, Vec<Chosen>)> {
        let mut each = Vec::with_capacity(origin.places.len());
        for OriginPlace { location, format, options } in origin.places.iter() {
            let format = self.formats.of_place(&self.place(location)?, Some(format)).await?;
            let options = options.as_ref().unwrap_or(&origin.options);
            let options = self.formats.resolve(&format, options, &origin.defaults)?;
            each.push(Chosen { format, options: Arc::new(options) });
        }
        Ok((origin.places.iter().map(|it| it.location.clone()).collect(), each))
    }
}
