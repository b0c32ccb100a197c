//! Arrays from a `SessionContext`.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::CatalogProvider;
use datafusion::common::{TableReference, plan_datafusion_err};
use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionContext;

use super::{
    ArrayOpener, GridCatalog, GridUrlTables, GridfusionSessionStateBuilderExt, Locations,
    UrlCatalogs,
};
use crate::exec::GridfusionConfig;
use crate::options::ArrayOptions;
use crate::source::ArrayFormat;

/// Reaching arrays from a [`SessionContext`], whatever their format.
///
/// ```
/// use datafusion::prelude::SessionContext;
/// use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionContext::new();
/// ctx.register_array_schema("stations", "examples/data/stations.tet", ArrayOptions::default()).await?;
/// let hottest = ctx.sql("SELECT station, max(value) FROM stations.temperature GROUP BY station").await?;
/// assert_eq!(hottest.count().await?, 6);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait GridfusionSessionContextExt {
    /// Gives this session everything that gridfusion adds, as
    /// [`with_gridfusion`](GridfusionSessionStateBuilderExt::with_gridfusion) has it: `CREATE EXTERNAL TABLE …
    /// STORED AS ARRAY`, table functions, aggregation as array reduction, and its settings.
    /// The session's state is rebuilt, which forgets prepared statements: call it first.
    fn enable_gridfusion(&self);

    /// Adds a format, so that all of the above reads it too; call it before or after
    /// [`enable_gridfusion`](Self::enable_gridfusion).
    fn register_array_format(&self, format: Arc<dyn ArrayFormat>);

    /// Registers the arrays at `locations` as the table `name`: a dataset of a file or package, an array, all
    /// data variables of a place, or those of many places; see [`ArrayOpener::table`].
    ///
    /// ```
    /// use datafusion::prelude::SessionContext;
    /// use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> datafusion::error::Result<()> {
    /// let ctx = SessionContext::new();
    /// let then = ArrayOptions::default().with_option("timestamp", 20);
    /// ctx.register_array("overlap", "tests/data/tiledb/overlap", then).await?;
    /// assert_eq!(ctx.sql("SELECT * FROM overlap").await?.count().await?, 30);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the arrays cannot be opened, or it is not clear which are meant.
    async fn register_array(
        &self,
        name: impl Into<TableReference> + Send,
        locations: impl Into<Locations> + Send,
        options: ArrayOptions,
    ) -> Result<()>;

    /// The arrays at `locations` as a [`DataFrame`].
    ///
    /// # Errors
    /// As [`register_array`](Self::register_array).
    async fn read_array(
        &self,
        locations: impl Into<Locations> + Send,
        options: ArrayOptions,
    ) -> Result<DataFrame>;

    /// Registers a file, package, array or group of arrays as the schema `name` of the default catalog: each
    /// array is a table of it.
    ///
    /// # Errors
    /// If there is no array, the options name one, or the default catalog takes no schemas.
    async fn register_array_schema(
        &self,
        name: &str,
        location: &str,
        options: ArrayOptions,
    ) -> Result<()>;

    /// Registers a directory as the catalog `name`: each file, package, array or group in it is a schema, as
    /// [`GridCatalog`] has it.
    ///
    /// ```
    /// use datafusion::prelude::SessionContext;
    /// use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> datafusion::error::Result<()> {
    /// let ctx = SessionContext::new();
    /// ctx.register_array_catalog("climate", "examples/data", ArrayOptions::default()).await?;
    /// let frame = ctx.sql("SELECT station, value FROM climate.stations.elevation").await?;
    /// assert_eq!(frame.count().await?, 6);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`GridCatalog::open`].
    async fn register_array_catalog(
        &self,
        name: &str,
        location: &str,
        options: ArrayOptions,
    ) -> Result<()>;

    /// Makes quoted paths and URLs tables, as [`GridUrlTables`] has it: those of arrays, and those that
    /// [`SessionContext::enable_url_table`] knows, which need not be called.
    ///
    /// As with that function, whoever may run SQL may then read every file that the process can read.
    ///
    /// ```
    /// use datafusion::prelude::SessionContext;
    /// use gridfusion::GridfusionSessionContextExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> datafusion::error::Result<()> {
    /// let ctx = SessionContext::new();
    /// ctx.enable_gridfusion_urls();
    /// let frame = ctx.sql("SELECT * FROM 'examples/data/stations.tet#elevation'").await?;
    /// assert_eq!(frame.count().await?, 6);
    /// # Ok(())
    /// # }
    /// ```
    fn enable_gridfusion_urls(&self);
}

#[async_trait]
impl GridfusionSessionContextExt for SessionContext {
    fn enable_gridfusion(&self) {
        let state = self.state_ref();
        let mut state = state.write();
        let session_id = state.session_id().to_owned();
        *state = SessionStateBuilder::new_from_existing(state.clone())
            .with_session_id(session_id)
            .with_gridfusion()
            .build();
    }

    fn register_array_format(&self, format: Arc<dyn ArrayFormat>) {
        let state = self.state_ref();
        {
            let mut state = state.write();
            let mut config = GridfusionConfig::of(state.config_options());
            config.formats = config.formats.with(format);
            state.config_mut().options_mut().extensions.insert(config);
        }
        // Factories and functions of formats are made from the settings.
        self.enable_gridfusion();
    }

    async fn register_array(
        &self,
        name: impl Into<TableReference> + Send,
        locations: impl Into<Locations> + Send,
        options: ArrayOptions,
    ) -> Result<()> {
        let name = name.into();
        let table = opener(self).table(locations, None, &options).await?;
        self.register_table(name, Arc::new(table))?;
        Ok(())
    }

    async fn read_array(
        &self,
        locations: impl Into<Locations> + Send,
        options: ArrayOptions,
    ) -> Result<DataFrame> {
        let table = opener(self).table(locations, None, &options).await?;
        self.read_table(Arc::new(table))
    }

    async fn register_array_schema(
        &self,
        name: &str,
        location: &str,
        options: ArrayOptions,
    ) -> Result<()> {
        let schema = opener(self).schema(location, None, &options).await?;
        default_catalog(self)?.register_schema(name, Arc::new(schema))?;
        Ok(())
    }

    async fn register_array_catalog(
        &self,
        name: &str,
        location: &str,
        options: ArrayOptions,
    ) -> Result<()> {
        let catalog = GridCatalog::open(location, &options, &opener(self)).await?;
        self.register_catalog(name, Arc::new(catalog));
        Ok(())
    }

    fn enable_gridfusion_urls(&self) {
        let catalogs = Arc::clone(self.state_ref().read().catalog_list());
        let tables = Arc::new(GridUrlTables::new(self));
        self.register_catalog_list(Arc::new(UrlCatalogs::new(catalogs, tables)));
    }
}

fn opener(ctx: &SessionContext) -> ArrayOpener {
    ArrayOpener::of(&*ctx.state_ref().read())
}

fn default_catalog(ctx: &SessionContext) -> Result<Arc<dyn CatalogProvider>> {
    let name = ctx.copied_config().options().catalog.default_catalog.clone();
    ctx.catalog(&name).ok_or_else(|| plan_datafusion_err!("there is no catalog \"{name}\""))
}
