//! Formats with one fault each, which a check must find.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::arrays::arrays;
use super::checks::{health, predicates, queries, rows};
use super::format::{Capabilities, FormatUnderTest};
use super::logical::{Cell, Labels, Logical};
use super::subject::Subject;
use super::tet::Tet;

/// The `.tet` format, with a function that changes the array before it is written.
struct Wrong(fn(&mut Logical));

impl FormatUnderTest for Wrong {
    fn name(&self) -> &'static str {
        Tet.name()
    }

    fn suffix(&self) -> &'static str {
        Tet.suffix()
    }

    fn capabilities(&self) -> Capabilities {
        Tet.capabilities()
    }

    fn write(&self, array: &Logical, path: &Path) {
        let mut array = array.clone();
        (self.0)(&mut array);
        Tet.write(&array, path);
    }

    /// The payloads instead of metadata: damage to them goes unnoticed.
    fn metadata(&self, path: &Path) -> (PathBuf, Range<usize>) {
        let file = std::fs::read(path).unwrap();
        let word = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
        let index_end = word(16) + word(24);
        (path.to_owned(), index_end..file.len())
    }
}

/// The array of integers: many chunks, with different bounds.
fn counts() -> Logical {
    arrays().into_iter().find(|array| array.name == "counts").unwrap()
}

#[tokio::test]
#[should_panic(expected = "\"counts\" in tet: t")]
async fn another_cell_is_found() {
    let wrong = Wrong(|array| array.values[0].cells[77] = Cell::Number(-1));
    rows::all_rows(&Subject::new(&wrong, &counts())).await;
}

#[tokio::test]
#[should_panic(expected = "\"counts\" in tet")]
async fn another_name_is_found() {
    let wrong = Wrong(|array| array.axes[1].name = "hour");
    rows::columns_and_types(&Subject::new(&wrong, &counts())).await;
}

#[tokio::test]
#[should_panic(expected = "16 of 8 chunks")]
async fn other_chunks_are_found() {
    let wrong = Wrong(|array| array.axes[1].chunk = 3);
    predicates::labels_prune_chunks(&Subject::new(&wrong, &counts())).await;
}

#[tokio::test]
#[should_panic(expected = "GROUP BY \"year\"")]
async fn another_label_is_found() {
    let wrong = Wrong(|array| match &mut array.axes[0].labels {
        Labels::Integers(years) => years[3] = 1900,
        _ => unreachable!("years are integers"),
    });
    queries::groups_become_reductions(&Subject::new(&wrong, &counts())).await;
}

#[tokio::test]
#[should_panic(expected = "a damaged file")]
async fn damage_that_is_passed_over_is_found() {
    health::damaged_metadata_is_an_error(&Subject::new(&Wrong(|_| {}), &counts())).await;
}
