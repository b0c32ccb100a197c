//! The checks of a TileDB array, in the order in which they are reported.
//!
//! `docs/verify.md` describes each check. Opening the array has checked schema and fragments already. All
//! visible fragments are verified, also tiles that newer fragments override.

use std::sync::Arc;

use super::tiles::{TileChecks, located};
use crate::error::{Error, ErrorKind, Result};
use crate::format::tiledb::{ArrayKind, FragmentTiles};
use crate::source::tiledb::reader::TileDbReader;
use crate::source::tiledb::view::TileDbView;
use crate::tile::drive;
use crate::verify::{Check, Depth, Finding, Progress, Report, counted};

/// Verifies the array with all fragments that are visible to `reader`. [`Depth::Cells`] decodes one
/// tile per core at a time in tokio tasks, and so needs a tokio runtime. Dropping the future stops
/// the verification.
pub async fn verify(reader: &TileDbReader, depth: Depth, progress: &Arc<Progress>) -> Report {
    let mut report = Report::new(depth);
    let (schema, fragments) = (reader.tiledb().schema(), reader.tiledb().fragments());
    let dimensions = counted(schema.dimensions.len() as u64, "dimension");
    let attributes = counted(schema.attributes.len() as u64, "attribute");
    let detail = format!("format version {}, {dimensions}, {attributes}", schema.version);
    report.add(Check::new("schema").with_detail(detail));
    let mut table = Check::new("table");
    // Whether SQL can query the array. If not, it may still be valid.
    if let Err(error) = reader.array(&TileDbView::default()) {
        table.add(Finding::of_error(&error).into_warning());
    }
    report.add(table);
    report.add(match reader.metadata().await {
        Ok(pairs) => Check::new("metadata").with_detail(counted(pairs.len() as u64, "key")),
        Err(error) => Check::new("metadata").with(Finding::of_error(&error)),
    });
    report.add(Check::new("fragments").with_detail(format!("{} visible", fragments.len())));
    let mut files = Check::new("fragment_files");
    for fragment in fragments {
        files.extend(fragment.data_file_errors().iter().map(Finding::of_error));
    }
    report.add(files);
    verify_tiles(reader, depth, progress, &mut report).await;
    report.relative_to(reader.location())
}

async fn verify_tiles(
    reader: &TileDbReader,
    depth: Depth,
    progress: &Arc<Progress>,
    report: &mut Report,
) {
    let mut checks = Checks {
        offsets: Check::new("tile_offsets"),
        statistics: Check::new("tile_statistics"),
        cells: (depth == Depth::Cells).then(|| TileChecks::new(reader, progress)),
        progress,
        tiles: 0,
    };
    if reader.tiledb().schema().kind == ArrayKind::Sparse {
        let message = "the tiles of sparse arrays are not verified";
        return report.add(checks.offsets.with(Finding::warning(message)));
    }
    for fragment in reader.tiledb().fragments() {
        let attributes = fragment.schema().attributes.len() as u64;
        progress.expect(fragment.tiles.saturating_mul(attributes));
    }
    // An error here is one of a decoding task. Errors of fragments and tiles are findings.
    let died = each_fragment(reader, &mut checks).await.err();
    report.add(checks.offsets.with_detail(counted(checks.tiles, "tile")));
    report.add(checks.statistics);
    let Some(cells) = checks.cells else { return };
    let finished = match died {
        Some(error) => Err(error),
        None => cells.finish().await,
    };
    match finished {
        Ok(done) => done.into_iter().for_each(|check| report.add(check)),
        Err(error) => report.add(Check::new("tile_decode").with(Finding::of_error(&error))),
    }
}

/// Checks the tiles of each attribute of each fragment. The attributes are those of the fragment's own
/// schema.
async fn each_fragment(reader: &TileDbReader, checks: &mut Checks<'_>) -> Result<()> {
    for (number, fragment) in reader.tiledb().fragments().iter().enumerate() {
        for (field, attribute) in fragment.schema().attributes.iter().enumerate() {
            match fragment_tiles(reader, number, field).await {
                Ok(tiles) => checks.each_tile(&Arc::new(tiles)).await?,
                Err(error) => {
                    checks.progress.advance(fragment.tiles, 0);
                    let finding = Finding::of_error(&error).in_dataset(&attribute.name);
                    // An unsupported tile may be valid, so it is only a warning.
                    checks.offsets.add(match error.kind() {
                        ErrorKind::Unsupported => finding.into_warning(),
                        _ => finding,
                    });
                }
            }
        }
    }
    Ok(())
}

/// Reads the tile index and the statistics of an attribute. `fragment` is a number in the array, and
/// `field` one in the fragment's schema.
async fn fragment_tiles(
    reader: &TileDbReader,
    fragment: usize,
    field: usize,
) -> Result<FragmentTiles, Error> {
    drive(reader.tiledb().read_tiles(fragment, field)?, reader.objects()).await
}

/// The checks of tiles, which take the tiles one by one.
struct Checks<'a> {
    offsets: Check,
    statistics: Check,
    /// `None` for [`Depth::Structure`].
    cells: Option<TileChecks>,
    progress: &'a Progress,
    /// The number of tiles so far.
    tiles: u64,
}

impl Checks<'_> {
    /// Checks the location of each tile and, if requested, queues its cells for decoding.
    async fn each_tile(&mut self, tiles: &Arc<FragmentTiles>) -> Result<()> {
        if let Some(error) = tiles.statistics_error() {
            let finding = Finding::of_error(error).in_dataset(&tiles.attribute().name);
            self.statistics.add(finding);
        }
        for place in 0..tiles.fragment().tiles {
            self.tiles += 1;
            match (tiles.stored(place), &mut self.cells) {
                (Ok(layer), Some(cells)) => cells.add(tiles, place, layer).await?,
                (Ok(_), None) => self.progress.advance(1, 0),
                (Err(error), _) => {
                    self.offsets.add(located(tiles, place, Finding::of_error(&error)));
                    self.progress.advance(1, 0);
                }
            }
        }
        Ok(())
    }
}
