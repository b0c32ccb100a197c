//! [`GridfusionDataFrameExt`]: a method of a `DataFrame` that writes its rows as an array.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::UInt64Type;
use async_trait::async_trait;
use datafusion::common::{GetExt, plan_err};
use datafusion::dataframe::DataFrame;
use datafusion::datasource::file_format::format_as_file_type;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlanBuilder;

use crate::exec::ArrayFormatFactory;
use crate::options::ArrayOptions;

/// A method of a [`DataFrame`] that writes its rows as an array.
#[async_trait]
pub trait GridfusionDataFrameExt {
    /// Writes the rows as an array, as `COPY (…) TO 'location'` does. Returns the number of rows. The end of the name chooses the format, and
    /// the option `format` does so for other names. The other options are those of `COPY`.
    ///
    /// ```
    /// use datafusion::prelude::SessionContext;
    /// use gridfusion::{ArrayOptions, GridfusionDataFrameExt, GridfusionSessionContextExt};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> datafusion::error::Result<()> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("warm.zarr").display().to_string();
    /// let ctx = SessionContext::new();
    /// ctx.enable_gridfusion();
    /// let air = ctx.read_array("examples/data/air.nc", ArrayOptions::default()).await?;
    /// let july = air.filter(datafusion::prelude::col("time").gt(datafusion::prelude::lit("2024-06-30")))?;
    /// let options = ArrayOptions::default().with_option("chunks", "time=1");
    /// assert_eq!(july.write_array(&path, options).await?, 6 * 15 * 24);
    /// assert_eq!(ctx.read_array(path, ArrayOptions::default()).await?.count().await?, 6 * 15 * 24);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// For an unknown format or option, and if the rows cannot be written as an array.
    async fn write_array(self, location: &str, options: ArrayOptions) -> Result<u64>;
}

#[async_trait]
impl GridfusionDataFrameExt for DataFrame {
    async fn write_array(self, location: &str, options: ArrayOptions) -> Result<u64> {
        let options = options.iter().map(|(name, value)| (name.to_owned(), value.to_string()));
        let mut options: HashMap<String, String> = options.collect();
        let ending = Path::new(location.trim_end_matches('/')).extension();
        let ending = ending.and_then(|it| it.to_str()).unwrap_or_default().to_owned();
        let format = options.remove("format").unwrap_or(ending).to_lowercase();
        let named = |it: &ArrayFormatFactory| it.get_ext() == format;
        let Some(factory) = ArrayFormatFactory::all().into_iter().find(named) else {
            let mut known: Vec<String> =
                ArrayFormatFactory::all().iter().map(|it| it.get_ext()).collect();
            // The last part of an ending is none that a name could have alone.
            known.retain(|it| it != "d");
            return plan_err!(
                "'{location}' names no format of arrays, which are {}; set the option 'format'",
                known.join(", ")
            );
        };
        let (state, plan) = self.into_parts();
        let file_type = format_as_file_type(Arc::new(factory));
        let copy =
            LogicalPlanBuilder::copy_to(plan, location.to_owned(), file_type, options, vec![])?;
        let written = Self::new(state, copy.build()?).collect().await?;
        let counts =
            written.iter().flat_map(|it| it.column(0).as_primitive::<UInt64Type>().values());
        Ok(counts.sum())
    }
}
