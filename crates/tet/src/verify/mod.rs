//! Verification of `.tet` files and packages.
//!
//! ```text
//!   verify ──┬─ checks ──┬─ index     rows, grids, places of payloads
//!            │           ├─ zones     zone maps, in the file and beside it
//!            │           └─ cells     every payload decoded, zone maps computed again
//!            └─ package               manifests, hashes, other generations
//! ```

mod cells;
mod checks;
mod extents;
mod index;
mod package;
mod sidecars;
mod zones;

use std::sync::Arc;

use checks::verify_file;
use package::verify_package;
use zones::FoundZones;

use super::reader::TetReader;
use gridfusion_core::verify::{Depth, Progress, Report};

/// Verifies the file and, if it is a generation of a package, the package. [`Depth::Cells`] decodes one
/// chunk per core at a time in tokio tasks, and so needs a tokio runtime. Dropping the future stops the
/// verification.
pub async fn verify(reader: &TetReader, depth: Depth, progress: &Arc<Progress>) -> Report {
    let zones = FoundZones::used(reader).await;
    let mut report = verify_file(reader, depth, progress, &zones).await;
    if let Some(package) = reader.package() {
        let beside = verify_package(reader, package, depth, progress, &zones).await;
        report.append(beside.relative_to(package.folder().name()));
    }
    report
}
