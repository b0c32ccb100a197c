//! DataFusion's own command line, in which arrays are tables.
//!
//! Runs the statements that it is given, or else reads them from the terminal:
//!
//! ```sh
//! cargo run -- "SELECT lat, avg(t2m) FROM '../data/air.nc' GROUP BY lat ORDER BY lat"
//! ```

use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_cli::catalog::DynamicObjectStoreCatalog;
use datafusion_cli::exec::{exec_from_commands, exec_from_repl};
use datafusion_cli::object_storage::instrumented::InstrumentedObjectStoreRegistry;
use datafusion_cli::print_format::PrintFormat;
use datafusion_cli::print_options::{MaxRows, PrintOptions};
use gridfusion::GridfusionSessionContextExt;

/// Makes a session as that of datafusion-cli, with gridfusion.
fn session(stores: Arc<InstrumentedObjectStoreRegistry>) -> Result<SessionContext> {
    let config = SessionConfig::from_env()?.with_information_schema(true);
    let runtime = RuntimeEnvBuilder::new().with_object_store_registry(stores).build_arc()?;
    let ctx = SessionContext::new_with_config_rt(config, runtime);
    // These two lines are all that gridfusion needs. The second takes the place of `enable_url_table`.
    ctx.enable_gridfusion();
    ctx.enable_gridfusion_urls();
    // Registers the object stores of URLs, for the tables of gridfusion too.
    let catalogs = Arc::clone(ctx.state().catalog_list());
    ctx.register_catalog_list(Arc::new(DynamicObjectStoreCatalog::new(
        catalogs,
        ctx.state_weak_ref(),
    )));
    Ok(ctx)
}

#[tokio::main]
async fn main() -> Result<()> {
    let stores = Arc::new(InstrumentedObjectStoreRegistry::new());
    let ctx = session(Arc::clone(&stores))?;
    let mut print = PrintOptions {
        format: PrintFormat::Automatic,
        quiet: true,
        maxrows: MaxRows::Limited(40),
        color: false,
        instrumented_registry: stores,
    };
    let statements: Vec<String> = std::env::args().skip(1).collect();
    if statements.is_empty() {
        let ended = exec_from_repl(&ctx, &mut print).await;
        return ended.map_err(|error| DataFusionError::External(Box::new(error)));
    }
    exec_from_commands(&ctx, statements, &print).await
}
