//! Extension traits: arrays from a `SessionContext`, and the SQL parts in a session builder.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, TableFunction, TableFunctionImpl};
use datafusion::common::{TableReference, plan_datafusion_err, plan_err};
use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::ensure_requirements::EnsureRequirements;
use datafusion::prelude::SessionContext;

use super::named_arguments::NamedArguments;
use super::{
    GridCatalog, GridUrlTables, Locations, TetFunction, TetSchema, TetTableFactory, TileDbFunction,
    TileDbSchema, TileDbTableFactory, UrlCatalogs, open, open_table, open_tiledb_table,
};
use crate::exec::{BestFirstRule, GridReduceRule, GridfusionConfig, to_datafusion};
use crate::options::{TableDefaults, TetReadOptions, TileDbReadOptions};

/// Reaching `.tet` files and TileDB arrays from a [`SessionContext`].
///
/// ```
/// use datafusion::prelude::SessionContext;
/// use gridfusion::{GridfusionSessionContextExt, TetReadOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionContext::new();
/// ctx.register_tet_schema("stations", "examples/data/stations.tet", TetReadOptions::default()).await?;
/// let hottest = ctx.sql("SELECT station, max(value) FROM stations.temperature GROUP BY station").await?;
/// assert_eq!(hottest.count().await?, 6);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait GridfusionSessionContextExt {
    /// Gives this session everything that gridfusion adds: `CREATE EXTERNAL TABLE … STORED AS TET` or
    /// `TILEDB`, table functions ([`TetFunction`], [`TileDbFunction`]), aggregation as array reduction
    /// ([`GridReduceRule`]) and its settings ([`GridfusionConfig`]).
    /// The session's state is rebuilt, which forgets prepared statements: call it first.
    fn enable_gridfusion(&self);

    /// Registers what is at `locations` as the table `name`: a dataset of a file or package, all data variables
    /// of it, or those of many files; see [`open_table`].
    ///
    /// # Errors
    /// If the file or the dataset cannot be opened, or it is not clear which dataset is meant.
    async fn register_tet(
        &self,
        name: impl Into<TableReference> + Send,
        locations: impl Into<Locations> + Send,
        options: TetReadOptions,
    ) -> Result<()>;

    /// Registers a file or package as the schema `name` of the default catalog: each dataset is a table
    /// of it.
    ///
    /// # Errors
    /// If the file cannot be opened, the options name a dataset, or the default catalog takes no
    /// schemas.
    async fn register_tet_schema(
        &self,
        name: &str,
        location: &str,
        options: TetReadOptions,
    ) -> Result<()>;

    /// A dataset of a file or package as a [`DataFrame`].
    ///
    /// # Errors
    /// Those of [`GridfusionSessionContextExt::register_tet`].
    async fn read_tet(
        &self,
        locations: impl Into<Locations> + Send,
        options: TetReadOptions,
    ) -> Result<DataFrame>;

    /// Registers a TileDB array as the table `name`.
    ///
    /// ```
    /// use datafusion::prelude::SessionContext;
    /// use gridfusion::{GridfusionSessionContextExt, TileDbReadOptions};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> datafusion::error::Result<()> {
    /// let ctx = SessionContext::new();
    /// let then = TileDbReadOptions::default().with_timestamp(20);
    /// ctx.register_tiledb("overlap", "tests/data/tiledb/overlap", then).await?;
    /// ctx.sql("SELECT * FROM overlap LIMIT 3").await?.show().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the array cannot be opened, or is sparse.
    async fn register_tiledb(
        &self,
        name: impl Into<TableReference> + Send,
        locations: impl Into<Locations> + Send,
        options: TileDbReadOptions,
    ) -> Result<()>;

    /// Registers a TileDB group, or a folder with arrays in it, as the schema `name` of the default
    /// catalog: each array is a table of it.
    ///
    /// # Errors
    /// If there is no array, or the default catalog takes no schemas.
    async fn register_tiledb_schema(
        &self,
        name: &str,
        location: &str,
        options: TileDbReadOptions,
    ) -> Result<()>;

    /// Registers a directory as the catalog `name`: each `.tet` file, package, and TileDB array or group in
    /// it is a schema, as [`GridCatalog`] has it. Of the options, those of all formats hold for TileDB too.
    ///
    /// ```
    /// use datafusion::prelude::SessionContext;
    /// use gridfusion::{GridfusionSessionContextExt, TetReadOptions};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> datafusion::error::Result<()> {
    /// let ctx = SessionContext::new();
    /// ctx.register_grid_catalog("climate", "examples/data", TetReadOptions::default()).await?;
    /// let frame = ctx.sql("SELECT station, value FROM climate.stations.elevation").await?;
    /// assert_eq!(frame.count().await?, 6);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`GridCatalog::open`].
    async fn register_grid_catalog(
        &self,
        name: &str,
        location: &str,
        options: TetReadOptions,
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

    /// A TileDB array as a [`DataFrame`].
    ///
    /// # Errors
    /// Those of [`GridfusionSessionContextExt::register_tiledb`].
    async fn read_tiledb(
        &self,
        locations: impl Into<Locations> + Send,
        options: TileDbReadOptions,
    ) -> Result<DataFrame>;
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

    async fn register_tet(
        &self,
        name: impl Into<TableReference> + Send,
        locations: impl Into<Locations> + Send,
        options: TetReadOptions,
    ) -> Result<()> {
        let name = name.into();
        let options = options.with_defaults(&defaults(self));
        let table = open_table(locations, &options, &self.runtime_env()).await;
        self.register_table(name, Arc::new(table.map_err(to_datafusion)?))?;
        Ok(())
    }

    async fn register_tet_schema(
        &self,
        name: &str,
        location: &str,
        options: TetReadOptions,
    ) -> Result<()> {
        if let Some(dataset) = options.dataset {
            return plan_err!(
                "a schema holds every dataset of its file; option 'dataset' ('{dataset}') does not apply"
            );
        }
        let options = options.with_defaults(&defaults(self));
        let file = open(location, &options, &self.runtime_env()).await.map_err(to_datafusion)?;
        let schema = TetSchema::new(file, options.read());
        default_catalog(self)?.register_schema(name, Arc::new(schema))?;
        Ok(())
    }

    async fn read_tet(
        &self,
        locations: impl Into<Locations> + Send,
        options: TetReadOptions,
    ) -> Result<DataFrame> {
        let options = options.with_defaults(&defaults(self));
        let table = open_table(locations, &options, &self.runtime_env()).await;
        self.read_table(Arc::new(table.map_err(to_datafusion)?))
    }

    async fn register_tiledb(
        &self,
        name: impl Into<TableReference> + Send,
        locations: impl Into<Locations> + Send,
        options: TileDbReadOptions,
    ) -> Result<()> {
        let name = name.into();
        let options = options.with_defaults(&defaults(self));
        let table = open_tiledb_table(locations, &options, &self.runtime_env()).await;
        self.register_table(name, Arc::new(table.map_err(to_datafusion)?))?;
        Ok(())
    }

    async fn register_tiledb_schema(
        &self,
        name: &str,
        location: &str,
        options: TileDbReadOptions,
    ) -> Result<()> {
        let options = options.with_defaults(&defaults(self));
        let schema = TileDbSchema::open(location, options, self.runtime_env()).await;
        let schema = schema.map_err(to_datafusion)?;
        default_catalog(self)?.register_schema(name, Arc::new(schema))?;
        Ok(())
    }

    async fn register_grid_catalog(
        &self,
        name: &str,
        location: &str,
        options: TetReadOptions,
    ) -> Result<()> {
        let options = options.with_defaults(&defaults(self));
        let catalog = GridCatalog::open(location, options, self.runtime_env()).await;
        self.register_catalog(name, Arc::new(catalog.map_err(to_datafusion)?));
        Ok(())
    }

    fn enable_gridfusion_urls(&self) {
        let catalogs = Arc::clone(self.state_ref().read().catalog_list());
        let tables = Arc::new(GridUrlTables::new(self));
        self.register_catalog_list(Arc::new(UrlCatalogs::new(catalogs, tables)));
    }

    async fn read_tiledb(
        &self,
        locations: impl Into<Locations> + Send,
        options: TileDbReadOptions,
    ) -> Result<DataFrame> {
        let options = options.with_defaults(&defaults(self));
        let table = open_tiledb_table(locations, &options, &self.runtime_env()).await;
        self.read_table(Arc::new(table.map_err(to_datafusion)?))
    }
}

/// What the session says for tables that say nothing.
fn defaults(ctx: &SessionContext) -> TableDefaults {
    GridfusionConfig::of(ctx.copied_config().options()).tables
}

fn default_catalog(ctx: &SessionContext) -> Result<Arc<dyn CatalogProvider>> {
    let name = ctx.copied_config().options().catalog.default_catalog.clone();
    ctx.catalog(&name).ok_or_else(|| plan_datafusion_err!("there is no catalog \"{name}\""))
}

/// The SQL parts of gridfusion in a session that is being built.
///
/// ```
/// use datafusion::execution::SessionStateBuilder;
/// use datafusion::prelude::SessionContext;
/// use gridfusion::GridfusionSessionStateBuilderExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let state = SessionStateBuilder::new().with_default_features().with_gridfusion().build();
/// let ctx = SessionContext::new_with_state(state);
/// ctx.sql(
///     "CREATE EXTERNAL TABLE temperature STORED AS TET LOCATION 'examples/data/stations.tet'
///      OPTIONS ('dataset' 'temperature')",
/// )
/// .await?;
/// # Ok(())
/// # }
/// ```
pub trait GridfusionSessionStateBuilderExt {
    /// Adds `CREATE EXTERNAL TABLE … STORED AS TET` or `TILEDB`, table functions ([`TetFunction`], [`TileDbFunction`]),
    /// aggregation as array reduction ([`GridReduceRule`], before the rules that add repartitioning)
    /// and its settings ([`GridfusionConfig`]), and the order in which a TopK reads chunks
    /// ([`BestFirstRule`]). Rules and settings that are there already stay as they are.
    #[must_use]
    fn with_gridfusion(self) -> Self;
}

impl GridfusionSessionStateBuilderExt for SessionStateBuilder {
    fn with_gridfusion(mut self) -> Self {
        let rules = &mut self.physical_optimizers().get_or_insert_default().rules;
        let ours: [Arc<dyn PhysicalOptimizerRule + Send + Sync>; 2] =
            [Arc::new(GridReduceRule), Arc::new(BestFirstRule)];
        for rule in ours {
            if !rules.iter().any(|it| it.name() == rule.name()) {
                // Repartitioning is added for what the reduction leaves to do.
                let before = EnsureRequirements::new();
                let at = rules.iter().position(|it| it.name() == before.name());
                rules.insert(at.unwrap_or(rules.len()), rule);
            }
        }
        let config = self.config().get_or_insert_default().options_mut();
        if config.extensions.get::<GridfusionConfig>().is_none() {
            config.extensions.insert(GridfusionConfig::default());
        }
        self.relation_planners().get_or_insert_default().push(Arc::new(NamedArguments));
        let functions = self.table_functions().get_or_insert_default();
        let mut add = |name: &str, function: Arc<dyn TableFunctionImpl>| {
            functions.insert(name.into(), Arc::new(TableFunction::new(name.into(), function)));
        };
        TetFunction::ALL.into_iter().for_each(|it| add(it.name(), Arc::new(it)));
        TileDbFunction::ALL.into_iter().for_each(|it| add(it.name(), Arc::new(it)));
        self.with_table_factory(TetTableFactory::FILE_TYPE.to_owned(), Arc::new(TetTableFactory))
            .with_table_factory(
                TileDbTableFactory::FILE_TYPE.to_owned(),
                Arc::new(TileDbTableFactory),
            )
    }
}
