//! [`TileDbAppender`]: the writer of new cells of an array that is there.
//!
//! ```text
//!   tiles, metadata of the fragment, labels ─▶ no reader finds them
//!   without a current domain    publish the commit of the fragment
//!   with a current domain       commit the fragment, which lies beyond it ─▶ publish a schema with a longer one
//! ```
//!
//! A fragment may also have cells that are there already, which readers find in the last fragment.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::ArrayRef;
use gridfusion_core::format::{Content, Publish, Write, Writer};
use gridfusion_core::tile::{Objects, drive};
use gridfusion_core::write::{ArrayWriter, NewArray, NewChunk, in_threads};
use gridfusion_core::{Error, Result};
use tokio::runtime::Handle;

use super::label_array::label_fragment;
use super::names::{now, timed_name};
use super::schema::schema_file;
use super::tiles::NewTiles;
use crate::bytes::{ArraySchema, CoordinateRange, OpenArray, OpenOptions, TileDbArray};
use crate::labels::AxisLabels;

/// The dimension that becomes longer.
#[derive(Debug)]
pub(super) struct AppendedAxis {
    pub(super) axis: usize,
    /// The last coordinate, from then on.
    pub(super) last: i128,
    /// The array of labels; `None` if labels are coordinates.
    pub(super) labels: Option<AxisLabels>,
    /// All labels.
    pub(super) all: ArrayRef,
    /// The indices of new labels.
    pub(super) added: Range<u64>,
}

/// Appends a fragment to an array.
#[derive(Debug)]
pub(super) struct TileDbAppender {
    array: Arc<TileDbArray>,
    objects: Arc<Objects>,
    /// The array with the rows: the variables are those that have a column.
    rows: NewArray,
    tiles: NewTiles,
    /// The coordinate of the first index of each dimension.
    low: Vec<i128>,
    /// `None` if all labels are there.
    grown: Option<AppendedAxis>,
    /// When the fragment was written, in milliseconds since 1970.
    time: u64,
}

impl TileDbAppender {
    pub(super) fn new(
        (array, objects): (Arc<TileDbArray>, Arc<Objects>),
        rows: NewArray,
        tiles: NewTiles,
        low: Vec<i128>,
        grown: Option<AppendedAxis>,
        time: u64,
    ) -> Self {
        Self { array, objects, rows, tiles, low, grown, time }
    }

    /// Fails if another program has written a fragment since the array was opened: its cells would hide behind those that were read before.
    async fn check_unchanged(&self) -> Result<()> {
        let now = drive(OpenArray::new(OpenOptions::default()), &self.objects).await?;
        let names = |array: &TileDbArray| {
            array.fragments().iter().map(|it| it.name.clone()).collect::<BTreeSet<String>>()
        };
        match names(&now) == names(&self.array) {
            true => Ok(()),
            false => Err(Error::usage(
                "another program has written to the array meanwhile; nothing is changed, run the statement again",
            )),
        }
    }

    /// Returns the writes of new labels, which lie beyond those that the array shows.
    fn labels(&self) -> Result<Vec<Write>> {
        let Some(AppendedAxis { axis, labels: Some(labels), all, added, .. }) = &self.grown else {
            return Ok(vec![]);
        };
        let label = self.array.schema().labels.iter().find(|it| it.dimension == *axis);
        let root = label.map(|label| format!("{}/", label.uri)).unwrap_or_default();
        let schema = (labels.array.schema(), labels.array.schema_name());
        label_fragment(&root, schema, all, self.low[*axis], added.clone(), self.time)
    }

    /// Returns the file of the schema with a longer current domain; `None` if the array has none.
    fn longer_schema(&self) -> Result<Option<Vec<u8>>> {
        let Some(AppendedAxis { axis, last, .. }) = &self.grown else { return Ok(None) };
        let mut schema = ArraySchema::clone(self.array.schema());
        let Some(ranges) = &mut schema.current_domain else { return Ok(None) };
        if let Some((low, _)) = ranges[*axis].integers() {
            ranges[*axis] = CoordinateRange::Integer(low, *last);
        }
        schema_file(&schema, None).map(Some)
    }
}

impl ArrayWriter for TileDbAppender {
    fn array(&self) -> &NewArray {
        &self.rows
    }

    fn memory(&self) -> u64 {
        self.tiles.memory()
    }

    fn chunk_memory(&self) -> u64 {
        self.tiles.merge_memory()
    }

    fn write_many(&mut self, chunks: Vec<NewChunk>, threads: usize) -> Result<Vec<Write>> {
        self.tiles.write_many(&chunks, threads)
    }

    fn write_rest(&mut self) -> Result<Vec<Write>> {
        self.tiles.rest()
    }
}

impl Writer for TileDbAppender {
    type Chunk = NewChunk;

    fn write(&mut self, chunk: NewChunk) -> Result<Vec<Write>> {
        self.write_many(vec![chunk], 1)
    }

    fn finish(&mut self) -> Result<(Vec<Write>, Publish)> {
        // Readers do not see what is dated in the future, and two fragments may be of one millisecond.
        std::thread::sleep(Duration::from_millis(self.time.saturating_sub(now())));
        let mut writes = self.tiles.complete()?;
        let schema = self.array.schema();
        let covered = self.tiles.covered(&schema.dimensions, &self.low);
        writes.extend(self.tiles.fragment.finish(self.array.schema_name(), &covered)?);
        writes.extend(self.labels()?);
        if self.tiles.changes_cells() {
            in_threads(&[Handle::current()], 1, |runtime| {
                runtime.block_on(self.check_unchanged())
            })?;
        }
        let commit = self.tiles.fragment.commit();
        Ok(match self.longer_schema()? {
            None => (writes, Publish::Create(commit)),
            Some(schema) => {
                writes.push(Write::Put(vec![commit]));
                let object = format!("__schema/{}", timed_name(self.time));
                (writes, Publish::Create(Content::new(object, schema)))
            }
        })
    }
}
