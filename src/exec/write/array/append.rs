//! [`append_plan`]: appends the rows of a plan to the array at a place.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::not_impl_err;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::datasource::physical_plan::{FileOutputMode, FileSinkConfig};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::physical_plan::ExecutionPlan;
use gridfusion_core::write::ExistingCells;

use super::format::WrittenFormat;
use super::options::WriteMode;
use super::targets::targets;

/// Work that follows when rows have been appended.
#[async_trait]
pub trait AfterAppend: Debug + Send + Sync {
    /// Does the work.
    ///
    /// # Errors
    /// If the array cannot be read with its new rows.
    async fn appended(&self, context: &TaskContext) -> Result<()>;
}

/// Returns a plan that appends the rows of `input` to the array at a location, of the format with this name. Then it does the work of `after`.
/// `op` tells what becomes of cells that are there: they are refused, get the values of the rows, or are also cleared before.
///
/// # Errors
/// If the format is not appended to, or the array lacks the columns.
pub async fn append_plan(
    input: Arc<dyn ExecutionPlan>,
    session: &dyn Session,
    location: &str,
    format: &str,
    op: InsertOp,
    after: Arc<dyn AfterAppend>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut appendable = targets().into_iter().filter(|it| it.modes().contains(&WriteMode::Append));
    let Some(target) = appendable.find(|it| it.name() == format) else {
        return not_impl_err!("INSERT INTO an array of the format {format}");
    };
    let existing = match op {
        InsertOp::Append => ExistingCells::Refuse,
        InsertOp::Overwrite => ExistingCells::Clear,
        InsertOp::Replace => ExistingCells::Overwrite,
    };
    let url = ListingTableUrl::parse(location)?;
    let config = FileSinkConfig {
        original_url: location.to_owned(),
        object_store_url: url.object_store(),
        file_group: Default::default(),
        table_paths: vec![url],
        output_schema: input.schema(),
        table_partition_cols: vec![],
        insert_op: op,
        keep_partition_by_columns: false,
        file_extension: format.to_owned(),
        file_output_mode: FileOutputMode::Automatic,
    };
    let format = WrittenFormat::appending(target, existing, after);
    format.create_writer_physical_plan(input, session, config, None).await
}
