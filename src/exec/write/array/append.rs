//! [`append_plan`] and [`NewArrayPlan`]: the rows of a plan become a part of the array at a place, or a new array.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{not_impl_err, plan_err};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::datasource::physical_plan::{FileOutputMode, FileSinkConfig};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::physical_plan::ExecutionPlan;
use gridfusion_core::write::ExistingCells;

use super::format::WrittenFormat;
use super::options::{WriteMode, WriteOptions};
use super::place::TargetPlace;
use super::targets::{TargetFormat, target_at, targets};

/// Work that follows when rows have been written.
#[async_trait]
pub trait AfterWrite: Debug + Send + Sync {
    /// Does the work.
    ///
    /// # Errors
    /// If the array cannot be read with its new rows.
    async fn written(&self, context: &TaskContext) -> Result<()>;
}

/// The array that rows of a table are appended to.
#[derive(Debug)]
pub struct AppendPlace<'a> {
    /// The location of the array.
    pub location: &'a str,
    /// The name of its format.
    pub format: &'a str,
    /// The group of the store there.
    pub group: Option<String>,
    /// The versions of the array that the table has read; none if that does not matter.
    pub snapshot: Vec<String>,
}

/// Returns a plan that appends the rows of `input` to an array. Then it does the work of `after`. `op` tells what becomes of cells that are
/// there: they are refused, get the values of the rows, or are also cleared before.
///
/// # Errors
/// If the format is not appended to, or the array lacks the columns.
pub async fn append_plan(
    input: Arc<dyn ExecutionPlan>,
    session: &dyn Session,
    place: AppendPlace<'_>,
    op: InsertOp,
    after: Arc<dyn AfterWrite>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let AppendPlace { location, format, group, snapshot } = place;
    let mut appendable = targets().into_iter().filter(|it| it.modes().contains(&WriteMode::Append));
    let Some(target) = appendable.find(|it| it.name() == format) else {
        return not_impl_err!("INSERT INTO an array of the format {format}");
    };
    let existing = match op {
        InsertOp::Append => ExistingCells::Refuse,
        InsertOp::Overwrite => ExistingCells::Clear,
        InsertOp::Replace => ExistingCells::Overwrite,
    };
    let config = sink_config(location, format, input.schema())?;
    let options = WriteOptions::of_append(existing, group);
    let format = WrittenFormat::with_work_after(target, options, after).with_snapshot(snapshot);
    format.create_writer_physical_plan(input, session, config, None).await
}

/// Whether rows that are appended to this format find the arrays of a store by the names of their columns.
pub(crate) fn finds_arrays_by_name(format: &str) -> bool {
    targets().iter().any(|it| it.name() == format && it.finds_arrays_by_name())
}

fn sink_config(location: &str, format: &str, schema: SchemaRef) -> Result<FileSinkConfig> {
    let url = ListingTableUrl::parse(location)?;
    Ok(FileSinkConfig {
        original_url: location.to_owned(),
        object_store_url: url.object_store(),
        file_group: Default::default(),
        table_paths: vec![url],
        output_schema: schema,
        table_partition_cols: vec![],
        insert_op: InsertOp::Append,
        keep_partition_by_columns: false,
        file_extension: format.to_owned(),
        file_output_mode: FileOutputMode::Automatic,
    })
}

/// A new array at a place, whose rows are yet to come.
#[derive(Debug, Clone)]
pub struct NewArrayPlan {
    target: &'static dyn TargetFormat,
    options: WriteOptions,
    location: String,
    schema: SchemaRef,
}

impl NewArrayPlan {
    /// Reads the options of a new array with these columns, in the format with this name.
    ///
    /// # Errors
    /// If the format is not written, or an option is unknown.
    pub fn try_new(
        format: &str,
        location: &str,
        schema: &SchemaRef,
        options: &HashMap<String, String>,
    ) -> Result<Self> {
        let Some(target) = targets().into_iter().find(|it| it.name() == format) else {
            return plan_err!(
                "a table of the format {format} takes its columns from the stored arrays; leave the column list out"
            );
        };
        let target = target_at(target, location)?;
        let options = WriteOptions::try_new(options, target)?;
        let (location, schema) = (location.to_owned(), Arc::clone(schema));
        Ok(Self { target, options, location, schema })
    }

    /// Fails unless the dimensions are named, and are columns.
    pub fn check(&self) -> Result<()> {
        let Some(dimensions) = &self.options.dimensions else {
            return plan_err!("a new table needs its dimensions: OPTIONS (dimensions 'time, lat')");
        };
        let lacks = |name: &&String| self.schema.index_of(name).is_err();
        if let Some(name) = dimensions.iter().find(lacks) {
            return plan_err!("'dimensions' names '{name}', which is no column of the table");
        }
        match self.options.mode {
            WriteMode::Create => Ok(()),
            _ => plan_err!("the option 'mode' is for COPY; INSERT INTO appends"),
        }
    }

    /// The group of a store that the array becomes.
    pub fn group(&self) -> Option<&str> {
        self.options.group.as_deref()
    }

    /// Whether a column is a dimension.
    pub fn is_dimension(&self, name: &str) -> bool {
        self.options.dimensions.iter().flatten().any(|it| it == name)
    }

    fn config(&self) -> Result<FileSinkConfig> {
        sink_config(&self.location, self.target.name(), Arc::clone(&self.schema))
    }

    /// Whether nothing is at the place.
    ///
    /// # Errors
    /// If the place cannot be listed.
    pub async fn is_place_empty(&self, session: &dyn Session) -> Result<bool> {
        let (config, runtime) = (self.config()?, session.runtime_env());
        let group = self.options.group.as_deref();
        let place = TargetPlace::try_new(&config, session.config(), runtime, self.target, group)?;
        Ok(place.found().await?.is_none() && !place.is_file().await?)
    }

    /// Returns a plan that writes the rows of `input`, and then does the work of `after`.
    ///
    /// # Errors
    /// If the rows cannot be an array.
    pub async fn plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        session: &dyn Session,
        after: Arc<dyn AfterWrite>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let format = WrittenFormat::with_work_after(self.target, self.options.clone(), after);
        format.create_writer_physical_plan(input, session, self.config()?, None).await
    }
}
