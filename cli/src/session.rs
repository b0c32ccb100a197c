//! The session: DataFusion's context with arrays, paths and URLs as tables, and a memory limit.

use std::env;
use std::path::Path;
use std::sync::Arc;

use datafusion::catalog::CatalogProvider;
use datafusion::common::plan_datafusion_err;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use gridfusion::{GridUrlTables, GridfusionSessionStateBuilderExt, Root, UrlCatalogs};

use crate::catalog::UrlTables;
use crate::engine::Engine;
use crate::memory;
use crate::pager::Pager;
use crate::print::{Format, MaxRows, PrintOptions};
use crate::progress::Progress;
use crate::results::Results;
use crate::statement::refuse_secret_setting;
use crate::stdin::Stdin;
use crate::store::{StoreOptions, Stores};

/// The context of statements, and the settings of their output.
pub(crate) struct Session {
    /// The context that runs statements.
    pub(crate) ctx: SessionContext,
    /// The default catalog without the wrapper in `ctx`; schemas are registered here.
    pub(crate) catalog: Arc<dyn CatalogProvider>,
    /// The schema of `catalog` for table names without a schema.
    pub(crate) default_schema: String,
    /// How results are shown; at first, tables show all rows.
    pub(crate) output: Output,
}

/// How the results of statements are shown.
#[derive(Clone)]
pub(crate) struct Output {
    /// How results are printed.
    pub(crate) print: PrintOptions,
    /// Whether to print the time of each statement.
    pub(crate) timing: bool,
    /// Whether to show a progress line.
    pub(crate) progress: bool,
    /// The pager for long results, which the prompt sets.
    pub(crate) pager: Pager,
    /// Where results are written.
    pub(crate) results: Results,
    /// How often a query runs again if a worker fails.
    pub(crate) retries: usize,
    /// Whether queries may run on workers.
    pub(crate) has_workers: bool,
}

impl Session {
    /// Makes a session without tables. If standard input is SQL (`is_stdin_sql`), it cannot be a table.
    pub(crate) fn new(engine: &Engine, is_stdin_sql: bool, options: &StoreOptions) -> Result<Self> {
        let root = engine.root.as_ref().map(Root::new).transpose()?;
        let stores = Stores::new(Stdin::new(is_stdin_sql), options).within(root);
        let ctx = context(engine, Arc::new(stores))?;
        let plain = Arc::clone(ctx.state().catalog_list());
        let config = ctx.copied_config();
        let names = &config.options().catalog;
        let missing = || plan_datafusion_err!("there is no catalog \"{}\"", names.default_catalog);
        let catalog = plain.catalog(&names.default_catalog).ok_or_else(missing)?;

        let urls = Arc::new(UrlTables(GridUrlTables::new(&ctx)));
        ctx.register_catalog_list(Arc::new(UrlCatalogs::new(plain, urls)));
        let print = PrintOptions {
            format: Format::Automatic,
            maxrows: MaxRows::Unlimited,
            headers: true,
            quiet: engine.quiet,
            color: false,
        };
        let output = Output {
            print,
            timing: engine.timing,
            progress: !engine.no_progress && Progress::is_possible(),
            pager: Pager::default(),
            results: Results::Shown,
            retries: engine.cluster.retries,
            has_workers: !engine.cluster.workers.is_empty(),
        };
        Ok(Self { ctx, catalog, default_schema: names.default_schema.clone(), output })
    }
}

/// Returns a context that opens arrays and runs no SQL. Local files must be in the root, if there is one.
pub(crate) fn plain_context(options: &StoreOptions, root: Option<&Path>) -> Result<SessionContext> {
    let root = root.map(Root::new).transpose()?;
    let stores = Arc::new(Stores::new(Stdin::new(true), options).within(root));
    let config = SessionConfig::new().with_option_extension(stores.settings());
    Ok(SessionContext::new_with_config(stores.add_to(config)))
}

fn context(engine: &Engine, stores: Arc<Stores>) -> Result<SessionContext> {
    let config = stores.add_to(config(engine)?.with_option_extension(stores.settings()));
    let runtime = RuntimeEnvBuilder::new().with_object_store_registry(stores);
    let runtime = memory::limited(runtime, engine.memory_limit);
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime.build_arc()?)
        .with_default_features()
        .with_gridfusion();
    let state = engine.cluster.coordinate(state)?.build();
    Ok(SessionContext::new_with_state(state))
}

fn config(engine: &Engine) -> Result<SessionConfig> {
    let mut options = ConfigOptions::from_env()?;
    for entry in options.entries() {
        refuse_secret_setting(&entry.key, entry.value.as_deref().unwrap_or_default())?;
    }
    if env::var_os("DATAFUSION_FORMAT_NULL").is_none() {
        // NULL must look different from an empty text.
        options.format.null = "NULL".to_owned();
    }
    if env::var_os("DATAFUSION_EXECUTION_SKIP_PHYSICAL_AGGREGATE_SCHEMA_CHECK").is_none() {
        // Columns have attributes as metadata. For a `UNION ALL`, DataFusion 55 merges them differently in the logical
        // and in the physical plan. This check then fails a correct aggregation.
        options.execution.skip_physical_aggregate_schema_check = true;
    }
    memory::adapt(&mut options, engine.memory_limit)?;
    let mut config = SessionConfig::from(options).with_information_schema(true);
    if let Some(rows) = engine.batch_size {
        config = config.with_batch_size(rows.get());
    }
    Ok(config)
}
