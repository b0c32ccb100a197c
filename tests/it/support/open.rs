//! Arrays opened by the library, for tests that look at more than tables.

use std::sync::Arc;

use datafusion::prelude::SessionContext;
use gridfusion::array::ReadOptions;
use gridfusion::options::ResolvedOptions;
use gridfusion::source::Place;
use gridfusion::verify::{Depth, Progress, Report};
use gridfusion::{ArrayGroup, ArrayOpener, ArrayOptions, Result};
use gridfusion_tet::TetReader;
use gridfusion_tiledb::bytes::{EncryptionKey, OpenOptions};
use gridfusion_tiledb::{TileDbReader, TileDbView};

/// The arrays at a location.
pub(crate) async fn open(
    location: &str,
    options: &ArrayOptions,
    ctx: &SessionContext,
) -> Result<Arc<dyn ArrayGroup>> {
    ArrayOpener::from_session(&ctx.state()).group(location, None, options).await
}

/// Resolves options for a format.
pub(crate) fn resolved(format: &str, options: &ArrayOptions) -> Result<ResolvedOptions> {
    let formats = gridfusion::built_in_formats();
    let format = formats.get(format).expect("a registered format");
    formats.resolve(format, options, &ArrayOptions::default())
}

/// The view of a TileDB array under these options.
pub(crate) fn view(options: &ArrayOptions) -> TileDbView {
    TileDbView::new(&resolved("tiledb", options).expect("valid options for TileDB"))
}

fn place(location: &str, options: &ResolvedOptions, ctx: &SessionContext) -> Result<Place> {
    Ok(ArrayOpener::from_session(&ctx.state()).place(location)?.with_io(options.io()))
}

/// A `.tet` file, or a generation of a package.
pub(crate) async fn open_tet(
    location: &str,
    options: &ArrayOptions,
    ctx: &SessionContext,
) -> Result<TetReader> {
    let options = resolved("tet", options)?;
    TetReader::open_place(&place(location, &options, ctx)?, &options).await
}

/// A TileDB array.
pub(crate) async fn open_tiledb(
    location: &str,
    options: &ArrayOptions,
    ctx: &SessionContext,
) -> Result<TileDbReader> {
    let options = resolved("tiledb", options)?;
    TileDbReader::open_place(&place(location, &options, ctx)?, &options).await
}

/// The report about one file or array.
pub(crate) async fn verify(
    location: &str,
    options: &ArrayOptions,
    depth: Depth,
    ctx: &SessionContext,
) -> Report {
    let progress = Arc::new(Progress::default());
    match open(location, options, ctx).await {
        Ok(group) => group.verify(depth, &progress).await.remove(0).1,
        Err(error) => Report::from_error(location, depth, &error),
    }
}

/// The times that fragments of a TileDB array must lie in to be visible, and the key.
pub(crate) fn open_options(options: &ArrayOptions) -> OpenOptions {
    let options = resolved("tiledb", options).expect("valid options for TileDB");
    let key = options.secret("encryption_key");
    let key = key.map(|key| EncryptionKey::new(key.expose().as_bytes()).expect("a valid key"));
    let start = options.number("timestamp_start").unwrap_or_default();
    OpenOptions::new(start, options.number("timestamp")).with_key(key)
}

/// How stored data of a `.tet` file becomes SQL values.
pub(crate) fn read_options(options: &ArrayOptions) -> ReadOptions {
    resolved("tet", options).expect("valid options for .tet").read(&ReadOptions::default())
}
