//! Many files: a schema per file of a directory, and one query over all of them.
//!
//! ```sh
//! cargo run --release --example directory
//! ```

use std::path::Path;

use datafusion::error::Result;
use datafusion::prelude::{SessionContext, col};
use gridfusion::{GridfusionSessionContextExt, TetReadOptions};

#[tokio::main]
async fn main() -> Result<()> {
    let directory = tempfile::tempdir()?;
    for name in ["first.tet", "second.tet"] {
        let data = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/stations.tet");
        std::fs::copy(data, directory.path().join(name))?;
    }

    let ctx = SessionContext::new();
    ctx.enable_gridfusion();
    let schemas = register_directory(&ctx, directory.path()).await?;
    assert_eq!(schemas, ["first", "second"]);

    // UNION ALL keeps the files apart; each half is still a reduction of its own array.
    let halves = schemas.iter().map(|schema| {
        format!(
            "SELECT '{schema}' AS file, station, avg(value) AS mean
             FROM \"{schema}\".temperature GROUP BY station"
        )
    });
    let all = ctx.sql(&halves.collect::<Vec<_>>().join(" UNION ALL ")).await?;
    let all = all.sort_by(vec![col("file"), col("station")])?;
    assert_eq!(all.clone().count().await?, 12, "six stations in each file");
    all.show().await
}

/// Registers every `.tet` file of a directory under its name; gives the names in order.
async fn register_directory(ctx: &SessionContext, directory: &Path) -> Result<Vec<String>> {
    let mut schemas = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let (Some(stem), Some(location)) =
            (path.file_stem().and_then(|s| s.to_str()), path.to_str())
        else {
            continue; // SQL has no name for it
        };
        if path.extension().is_some_and(|extension| extension == "tet") {
            ctx.register_tet_schema(stem, location, TetReadOptions::default()).await?;
            schemas.push(stem.to_owned());
        }
    }
    schemas.sort();
    Ok(schemas)
}
