//! The checks of a TileDB array, in the order in which they are reported.
//!
//! `FORMAT.md` describes each check. Opening the array has checked schema, fragments and delete
//! conditions already. All visible fragments are verified, also tiles that newer fragments override.

use std::sync::Arc;

use super::fragment_checks::{FragmentChecks, driven};
use crate::bytes::{ArrayKind, Block};
use crate::columns::enumeration_errors;
use crate::reader::TileDbReader;
use crate::view::TileDbView;
use gridfusion_core::verify::{Check, Depth, Finding, Progress, Report, counted};

/// Verifies the array with all fragments that are visible to `reader`. [`Depth::Cells`] decodes some
/// tiles per core at a time in tokio tasks, and so needs a tokio runtime. Dropping the future stops
/// the verification.
pub async fn verify(reader: &TileDbReader, depth: Depth, progress: &Arc<Progress>) -> Report {
    let mut report = Report::new(depth);
    let (schema, fragments) = (reader.tiledb().schema(), reader.tiledb().fragments());
    let dimensions = counted(schema.dimensions.len() as u64, "dimension");
    let attributes = counted(schema.attributes.len() as u64, "attribute");
    let detail = format!("format version {}, {dimensions}, {attributes}", schema.version);
    let mut check = Check::new("schema").with_detail(detail);
    let enumerations = (0..schema.attributes.len()).map(|it| reader.tiledb().enumeration(it));
    check.extend(enumerations.filter_map(|it| Some(Finding::from_error(&it.err()?))));
    report.add(check);
    let mut table = Check::new("table");
    // Whether SQL can query the array. If not, it may still be valid.
    let view = TileDbView::default();
    let errors = enumeration_errors(reader.tiledb(), &view);
    for error in reader.array(&view).err().into_iter().chain(errors) {
        table.add(Finding::from_error(&error).into_warning());
    }
    report.add(table);
    report.add(match reader.metadata().await {
        Ok(pairs) => Check::new("metadata").with_detail(counted(pairs.len() as u64, "key")),
        Err(error) => Check::new("metadata").with(Finding::from_error(&error)),
    });
    report.add(Check::new("fragments").with_detail(format!("{} visible", fragments.len())));
    let mut files = Check::new("fragment_files");
    for fragment in fragments {
        files.extend(fragment.data_file_errors().iter().map(Finding::from_error));
    }
    report.add(files);
    if schema.kind == ArrayKind::Sparse {
        report.add(delete_conditions(reader).await);
    }
    verify_tiles(reader, depth, progress, &mut report).await;
    report.relative_to(reader.location())
}

/// Checks that the fragments' lists of applied delete conditions can be read.
async fn delete_conditions(reader: &TileDbReader) -> Check {
    let array = reader.tiledb();
    let detail = format!("{} visible", array.deletions().len());
    let mut check = Check::new("delete_conditions").with_detail(detail);
    for (number, fragment) in array.fragments().iter().enumerate() {
        if fragment.delete_time_field().is_none() {
            continue;
        }
        let machine = array.read_blocks([Block::AppliedConditions(number)]);
        if let Err(error) = driven(machine, reader).await {
            check.add(Finding::from_error(&error));
        }
    }
    check
}

async fn verify_tiles(
    reader: &TileDbReader,
    depth: Depth,
    progress: &Arc<Progress>,
    report: &mut Report,
) {
    for fragment in reader.tiledb().fragments() {
        let fields = fragment.stored_fields().count() as u64;
        progress.expect(fragment.tiles.saturating_mul(fields));
    }
    let mut checks = FragmentChecks::new(reader, depth, progress);
    // An error here is one of a decoding task. Errors of fragments and tiles are findings.
    let died = checks.each_fragment().await.err();
    checks.finish(died).await.into_iter().for_each(|check| report.add(check));
}
