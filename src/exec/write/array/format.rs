//! [`ArrayFormatFactory`]: the file formats of `COPY` that are arrays.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{GetExt, Statistics, not_impl_err, plan_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::physical_plan::{
    ArrowSource, FileScanConfig, FileSinkConfig, FileSource,
};
use datafusion::datasource::sink::DataSinkExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr::{LexRequirement, PhysicalSortRequirement};
use datafusion::physical_plan::ExecutionPlan;
use gridfusion_core::tile::Objects;
use gridfusion_core::write::TargetDimension;
use object_store::{ObjectMeta, ObjectStore};

use super::append::AfterWrite;
use super::dimensions::{DimensionColumn, dimension_columns};
use super::options::{WriteMode, WriteOptions};
use super::place::TargetPlace;
use super::replacement::explained;
use super::sink::ArraySink;
use super::targets::{TargetFormat, target_at, targets};

/// Makes a format that `COPY (…) TO 'x.zarr'` and `COPY (…) TO 'x' STORED AS ZARR` write, by one of its names.
///
/// [`with_gridfusion`](crate::GridfusionSessionStateBuilderExt::with_gridfusion) adds all of them to a session:
///
/// ```
/// use datafusion::prelude::SessionContext;
/// use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("means.zarr");
/// # let path = path.display();
/// let ctx = SessionContext::new();
/// ctx.enable_gridfusion();
/// ctx.register_array_schema("stations", "examples/data/stations.tet", ArrayOptions::default()).await?;
/// let means = "SELECT station, avg(value) AS mean FROM stations.temperature GROUP BY station";
/// ctx.sql(&format!("COPY ({means}) TO '{path}'")).await?.collect().await?;
/// let written = ctx.read_array(path.to_string(), ArrayOptions::default()).await?;
/// assert_eq!(written.count().await?, 6);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ArrayFormatFactory {
    target: &'static dyn TargetFormat,
    name: &'static str,
}

impl ArrayFormatFactory {
    /// Returns the factories of all formats and names.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let named = |target: &'static dyn TargetFormat| {
            target.names().iter().map(move |name| Self { target, name })
        };
        targets().into_iter().flat_map(named).collect()
    }
}

impl GetExt for ArrayFormatFactory {
    fn get_ext(&self) -> String {
        self.name.to_owned()
    }
}

impl FileFormatFactory for ArrayFormatFactory {
    fn create(
        &self,
        _: &dyn Session,
        options: &HashMap<String, String>,
    ) -> Result<Arc<dyn FileFormat>> {
        let options = WriteOptions::try_new(options, self.target)?;
        Ok(Arc::new(WrittenFormat::new(self, options)))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(WrittenFormat::new(self, WriteOptions::default()))
    }
}

/// Writes rows as an array. Tables read arrays, and not this format.
#[derive(Debug)]
pub(super) struct WrittenFormat {
    options: WriteOptions,
    target: &'static dyn TargetFormat,
    name: &'static str,
    after: Option<Arc<dyn AfterWrite>>,
    snapshot: Vec<String>,
}

impl WrittenFormat {
    fn new(factory: &ArrayFormatFactory, options: WriteOptions) -> Self {
        let ArrayFormatFactory { target, name } = *factory;
        Self { options, target, name, after: None, snapshot: vec![] }
    }

    /// Sets the versions of the array that its table has read.
    pub(super) fn with_snapshot(self, snapshot: Vec<String>) -> Self {
        Self { snapshot, ..self }
    }

    /// Returns the format with options, and work that follows.
    pub(super) fn with_work_after(
        target: &'static dyn TargetFormat,
        options: WriteOptions,
        after: Arc<dyn AfterWrite>,
    ) -> Self {
        Self { options, target, name: target.name(), after: Some(after), snapshot: vec![] }
    }

    /// Returns the columns that are the dimensions of the array that rows are appended to, in its order.
    async fn dimensions_of_array(
        &self,
        config: &FileSinkConfig,
        session: &dyn Session,
    ) -> Result<Vec<DimensionColumn>> {
        let (of_session, runtime) = (session.config(), session.runtime_env());
        let group = self.options.group_of_append();
        let place = TargetPlace::try_new(config, of_session, runtime, self.target, group)?;
        let columns: Vec<&str> =
            config.output_schema.fields().iter().map(|it| it.name().as_str()).collect();
        let (folder, _) = place.existing()?;
        let objects = Arc::new(Objects::many_rewritten(folder));
        let array = match self.target.open(objects, &columns, &self.options).await {
            Ok(array) => array,
            Err(error) => return Err(explained(&place, error).await),
        };
        let dimension = |it: &TargetDimension| {
            let column = columns.iter().position(|column| *column == it.name);
            let order = SortOptions { descending: it.descends, nulls_first: false };
            column.map(|column| DimensionColumn { column, order })
        };
        let found: Option<Vec<_>> = array.dimensions().iter().map(dimension).collect();
        let found = found.unwrap_or_default();
        let named = self.options.dimensions.as_deref().unwrap_or_default();
        let is_dimension = |name: &str| array.dimensions().iter().any(|it| it.name == name);
        match named.iter().find(|name| !is_dimension(name)) {
            Some(name) => {
                plan_err!("'dimensions' names '{name}', which is no dimension of the array")
            }
            None => Ok(found),
        }
    }
}

/// Whether DataFusion took a file or a folder for one that it reads in a format of arrays: an error of this format.
pub fn is_taken_for_rows(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::Plan(message) if message == READ)
}

const READ: &str = "this is an array; read it as one: STORED AS ARRAY, or read_array";

#[async_trait]
impl FileFormat for WrittenFormat {
    fn get_ext(&self) -> String {
        self.name.to_owned()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        match compression.is_compressed() {
            true => plan_err!("an array has compressed chunks; choose the option 'codec'"),
            false => Ok(self.get_ext()),
        }
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        None
    }

    async fn infer_schema(
        &self,
        _: &dyn Session,
        _: &Arc<dyn ObjectStore>,
        _: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        plan_err!("{READ}")
    }

    async fn infer_stats(
        &self,
        _: &dyn Session,
        _: &Arc<dyn ObjectStore>,
        _: SchemaRef,
        _: &ObjectMeta,
    ) -> Result<Statistics> {
        not_impl_err!("{READ}")
    }

    async fn create_physical_plan(
        &self,
        _: &dyn Session,
        _: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        not_impl_err!("{READ}")
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        session: &dyn Session,
        config: FileSinkConfig,
        _: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !config.table_partition_cols.is_empty() {
            return plan_err!("an array has no PARTITIONED BY; its chunks divide it");
        }
        if config.table_paths.iter().any(|url| url.get_glob().is_some()) {
            return plan_err!(
                "the name '{}' has one of the characters ?, * and [",
                config.original_url
            );
        }
        let name = config.original_url.trim_end_matches('/').to_ascii_lowercase();
        if name.ends_with(".zip") || name.ends_with(".icechunk") {
            return plan_err!(
                "gridfusion reads zip files and Icechunk repositories, and does not write them; write '{}' under another name",
                config.original_url
            );
        }
        let target = target_at(self.target, &config.original_url)?;
        let dimensions = match self.options.mode {
            WriteMode::Append => self.dimensions_of_array(&config, session).await?,
            _ => dimension_columns(&input, self.options.dimensions.as_deref())?,
        };
        let order = dimensions.iter().map(|dimension| {
            let name = config.output_schema.field(dimension.column).name();
            let column = Arc::new(PhysicalColumn::new(name, dimension.column));
            PhysicalSortRequirement::new(column, Some(dimension.order))
        });
        let order = LexRequirement::new(order);
        let sink = ArraySink::try_new(config, dimensions, self.options.clone(), target)?;
        let sink = sink.with_work_after(self.after.clone()).with_snapshot(self.snapshot.clone());
        Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), order)))
    }

    fn file_source(&self, schema: TableSchema) -> Arc<dyn FileSource> {
        // Never read: each way to a scan fails before.
        Arc::new(ArrowSource::new_file_source(schema))
    }
}
