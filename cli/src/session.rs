//! The session: DataFusion's context with tables of arrays, paths and URLs as tables, and limits.

use std::env;
use std::sync::Arc;

use datafusion::catalog::CatalogProvider;
use datafusion::common::plan_datafusion_err;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use gridfusion::{GridUrlTables, GridfusionSessionStateBuilderExt, UrlCatalogs};

use crate::catalog::UrlTables;
use crate::engine::Engine;
use crate::memory;
use crate::pager::Pager;
use crate::print::{Format, MaxRows, PrintOptions};
use crate::progress::Progress;
use crate::stdin::Stdin;
use crate::store::Stores;

/// Everything a statement needs.
pub(crate) struct Session {
    /// Where statements run.
    pub(crate) ctx: SessionContext,
    /// The default catalog itself, not what `ctx` wraps around it: the place to register schemas.
    pub(crate) catalog: Arc<dyn CatalogProvider>,
    /// The schema of `catalog` in which bare table names are looked up.
    pub(crate) default_schema: String,
    /// What is shown; all rows of a table, unless that is changed.
    pub(crate) output: Output,
}

/// What is shown of statements.
#[derive(Clone)]
pub(crate) struct Output {
    /// How results are printed.
    pub(crate) print: PrintOptions,
    /// Whether to say how long each statement took.
    pub(crate) timing: bool,
    /// Whether to show how far queries are.
    pub(crate) progress: bool,
    /// What shows long results; the prompt sets it.
    pub(crate) pager: Pager,
}

impl Session {
    /// The session that the command line asks for, still without tables. If SQL comes from standard
    /// input, data cannot.
    pub(crate) fn new(engine: &Engine, is_stdin_sql: bool) -> Result<Self> {
        let ctx = context(engine, is_stdin_sql)?;
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
            quiet: engine.quiet,
            color: false,
        };
        let output = Output {
            print,
            timing: engine.timing,
            progress: !engine.no_progress && Progress::is_possible(),
            pager: Pager::default(),
        };
        Ok(Self { ctx, catalog, default_schema: names.default_schema.clone(), output })
    }
}

fn context(engine: &Engine, is_stdin_sql: bool) -> Result<SessionContext> {
    let stores = Stores::new(Stdin::new(is_stdin_sql));
    let runtime = RuntimeEnvBuilder::new().with_object_store_registry(Arc::new(stores));
    let runtime = memory::limited(runtime, engine.memory_limit);
    let state = SessionStateBuilder::new()
        .with_config(config(engine)?)
        .with_runtime_env(runtime.build_arc()?)
        .with_default_features()
        .with_gridfusion()
        .build();
    Ok(SessionContext::new_with_state(state))
}

fn config(engine: &Engine) -> Result<SessionConfig> {
    let mut options = ConfigOptions::from_env()?;
    if env::var_os("DATAFUSION_FORMAT_NULL").is_none() {
        // A missing value must not look like an empty text.
        options.format.null = "NULL".to_owned();
    }
    memory::adapt(&mut options, engine.memory_limit)?;
    let mut config = SessionConfig::from(options).with_information_schema(true);
    if let Some(rows) = engine.batch_size {
        config = config.with_batch_size(rows.get());
    }
    Ok(config)
}
