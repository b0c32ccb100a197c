//! [`GridfusionSessionContextExt`]: methods of a `SessionContext` that open and register arrays.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::CatalogProvider;
use datafusion::common::{TableReference, plan_datafusion_err};
use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionContext;

use super::{
    ArrayOpener, GridCatalog, GridUrlTables, GridfusionSessionStateBuilderExt, UrlCatalogs,
};
use crate::exec::GridfusionConfig;
use crate::options::ArrayOptions;
use crate::source::{ArrayFormat, Locations};

/// Methods of a [`SessionContext`] that open and register arrays of every format.
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
    /// Adds everything that [`with_gridfusion`](GridfusionSessionStateBuilderExt::with_gridfusion) adds:
    /// `CREATE EXTERNAL TABLE … STORED AS ARRAY`, table functions, array reductions and settings.
    ///
    /// Call it first: it rebuilds the session's state and so drops prepared statements.
    fn enable_gridfusion(&self);

    /// Adds a format to the session, and calls [`enable_gridfusion`](Self::enable_gridfusion).
    fn register_array_format(&self, format: Arc<dyn ArrayFormat>);

    /// Registers the arrays at `locations` as the table `name`: one dataset or array, all data variables of a
    /// file, or those of many files; see [`ArrayOpener::table`].
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
    /// If the arrays cannot be opened or cannot be one table.
    async fn register_array(
        &self,
        name: impl Into<TableReference> + Send,
        locations: impl Into<Locations> + Send,
        options: ArrayOptions,
    ) -> Result<()>;

    /// Opens the arrays at `locations` as a [`DataFrame`], without registering a table.
    ///
    /// # Errors
    /// As [`register_array`](Self::register_array).
    async fn read_array(
        &self,
        locations: impl Into<Locations> + Send,
        options: ArrayOptions,
    ) -> Result<DataFrame>;

    /// Registers a file, package, array or group of arrays as the schema `name` of the default catalog, with a
    /// table per array.
    ///
    /// # Errors
    /// If there is no array, the options name one, or the default catalog does not accept schemas.
    async fn register_array_schema(
        &self,
        name: &str,
        location: &str,
        options: ArrayOptions,
    ) -> Result<()>;

    /// Registers a directory as the catalog `name`, with a schema per file, package, array and group; see
    /// [`GridCatalog`].
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
    /// As [`GridCatalog::open`].
    async fn register_array_catalog(
        &self,
        name: &str,
        location: &str,
        options: ArrayOptions,
    ) -> Result<()>;

    /// Lets SQL name tables by quoted paths and URLs: arrays (see [`GridUrlTables`]), and the files that
    /// [`SessionContext::enable_url_table`] reads. That method need not be called.
    ///
    /// Like that method, this lets SQL read every file that the process can read.
    ///
    /// In SQL, a table of a URL has a name without its password and its query. `SessionContext::table` names the table by the whole
    /// URL, which headers and plans then show: use [`read_array`](Self::read_array) for such URLs.
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
            let mut config = GridfusionConfig::from_options(state.config_options()).into_owned();
            config.formats = config.formats.with(format);
            state.config_mut().options_mut().extensions.insert(config);
        }
        // This makes the factories and functions of the formats in the settings.
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
        self.register_table(name, table.into_provider())?;
        Ok(())
    }

    async fn read_array(
        &self,
        locations: impl Into<Locations> + Send,
        options: ArrayOptions,
    ) -> Result<DataFrame> {
        let table = opener(self).table(locations, None, &options).await?;
        self.read_table(table.into_provider())
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
    ArrayOpener::from_session(&*ctx.state_ref().read())
}

fn default_catalog(ctx: &SessionContext) -> Result<Arc<dyn CatalogProvider>> {
    let name = ctx.copied_config().options().catalog.default_catalog.clone();
    ctx.catalog(&name).ok_or_else(|| plan_datafusion_err!("there is no catalog \"{name}\""))
}
