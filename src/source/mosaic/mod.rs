//! Arrays side by side as one table: variables as columns, files one after the other.
//!
//! ```text
//!                 temperature      precipitation            chunks of the table: the coarsest cuts that
//!   2023.tet     ┌────┬────┐      ┌──┬──┬──┬──┐             are borders of every array there, so that
//!     time  0    │    │    │      │  │  │  │  │    ┌────┬────┐      each stored chunk lies in one of
//!           ⋮    ├────┼────┤      │  │  │  │  │ ─▶ │    │    │      them and is decoded once
//!         364    └────┴────┘      └──┴──┴──┴──┘    │    │    │
//!   2024.tet     ┌────┬────┐      ┌──┬──┬──┬──┐    ├────┼────┤      a file ends at a border
//!         365    ⋮    ⋮    ⋮      ⋮  ⋮  ⋮  ⋮  ⋮    ⋮    ⋮    ⋮
//! ```
//!
//! To everything above, a mosaic is a [`super::GridArray`] like any other, whose [`ChunkSource`] finds
//! the stored chunks of its parts and places them in the table's: predicates prune across files,
//! reductions and orders run over all of them.

mod agree;
mod along;
mod build;
mod cover;
mod grid;
mod zones;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, StreamExt, TryStreamExt};

pub use build::{FileArrays, MosaicOptions};
use cover::{Cover, Layout};
use zones::MosaicZones;

use crate::array::ChunkSource;
use crate::error::{Error, Result};
use crate::format::tet::MemoryBudget;
use crate::format::{ElementType, StoredChunk, Zones};
use crate::grid::{ChunkTask, Selection};
use crate::io::MAX_CONCURRENT_IO;
use crate::tile::Objects;

/// The stored side of arrays that are shown as one.
#[derive(Debug)]
struct Mosaic {
    objects: Arc<Objects>,
    layout: Arc<Layout>,
    /// Per variable, per file.
    parts: Vec<Vec<Part>>,
    /// What each value of the table is.
    values: Vec<PartValue>,
}

/// One array of one file.
#[derive(Debug)]
struct Part {
    source: Arc<dyn ChunkSource>,
    /// The number of its objects among those of the table.
    member: u32,
}

/// A value of the table as one of a variable's arrays.
#[derive(Debug, Clone, Copy)]
struct PartValue {
    variable: usize,
    /// Its number there.
    value: usize,
    /// How its bounds compare, if they do.
    element: Option<ElementType>,
}

/// Stored chunks of one part that are wanted, and where they go.
struct Wanted {
    variable: usize,
    file: usize,
    /// The places of the variable's values among those asked for.
    at: Vec<usize>,
    tasks: Vec<ChunkTask>,
    /// Per task of this part: the task of the table, and how it covers that.
    covers: Vec<(usize, Cover)>,
}

/// A task of the table, the place of a value among those asked for, and what is stored there.
type Located = (usize, usize, StoredChunk);

impl Mosaic {
    /// What `tasks` want of `values`, part by part.
    fn wanted(&self, tasks: &[ChunkTask], values: &[usize]) -> Vec<Wanted> {
        let mut wanted: Vec<Wanted> = Vec::new();
        for (variable, at) in self.by_variable(values) {
            let first = wanted.len();
            for (number, task) in tasks.iter().enumerate() {
                let file = self.layout.file_of(&task.coordinates);
                let place = match wanted[first..].iter().position(|it| it.file == file) {
                    Some(place) => first + place,
                    None => {
                        let (tasks, covers) = (vec![], vec![]);
                        wanted.push(Wanted { variable, file, at: at.clone(), tasks, covers });
                        wanted.len() - 1
                    }
                };
                let of_part = &mut wanted[place];
                let covers = self.layout.covers(variable, &task.coordinates, Some(&task.selection));
                for cover in covers {
                    of_part.tasks.push(cover.task(self.layout.grid_of(variable, file)));
                    of_part.covers.push((number, cover));
                }
            }
        }
        wanted
    }

    /// Per variable the places of its values among those asked for.
    fn by_variable(&self, values: &[usize]) -> BTreeMap<usize, Vec<usize>> {
        let mut places: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, &value) in values.iter().enumerate() {
            places.entry(self.values[value].variable).or_default().push(at);
        }
        places
    }

    async fn locate_wanted(&self, wanted: Wanted, values: &[usize]) -> Result<Vec<Located>> {
        let part = &self.parts[wanted.variable][wanted.file];
        let numbers: Vec<usize> =
            wanted.at.iter().map(|&at| self.values[values[at]].value).collect();
        let stored = part.source.locate(&wanted.tasks, &numbers).await?;
        let mut located = Vec::with_capacity(stored.len() * numbers.len());
        for ((task, cover), chunks) in wanted.covers.into_iter().zip(stored) {
            if chunks.len() != numbers.len() {
                return Err(Error::internal("a chunk that was not located"));
            }
            for (&at, chunk) in wanted.at.iter().zip(chunks) {
                located.push((task, at, cover.place(part.owned(chunk))));
            }
        }
        Ok(located)
    }
}

impl Part {
    /// A stored chunk whose objects are numbered as among those of the table.
    fn owned(&self, mut chunk: StoredChunk) -> StoredChunk {
        let layers = chunk.layers.iter_mut();
        layers.flat_map(|layer| layer.payloads_mut()).for_each(|it| it.at.member += self.member);
        chunk
    }
}

#[async_trait]
impl ChunkSource for Mosaic {
    fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    fn memory_budget(&self) -> MemoryBudget {
        let first = self.parts.first().and_then(|files| files.first());
        first.map(|part| part.source.memory_budget()).unwrap_or_default()
    }

    async fn locate(&self, tasks: &[ChunkTask], values: &[usize]) -> Result<Vec<Vec<StoredChunk>>> {
        let mut chunks = vec![vec![StoredChunk::default(); values.len()]; tasks.len()];
        let wanted = self.wanted(tasks, values);
        let located = wanted.into_iter().map(|wanted| self.locate_wanted(wanted, values));
        let mut located = stream::iter(located).buffered(MAX_CONCURRENT_IO);
        while let Some(of_part) = located.try_next().await? {
            for (task, at, chunk) in of_part {
                chunks[task][at].layers.extend(chunk.layers);
            }
        }
        drop(located);
        Ok(chunks)
    }

    async fn zones(
        &self,
        value: usize,
        selection: &Selection,
        bytes_to_read: u64,
    ) -> Option<Arc<dyn Zones>> {
        let PartValue { variable, value, element } = self.values[value];
        let element = element?;
        let parts = &self.parts[variable];
        let touched = self.layout.files_of(selection);
        // Each file may cost its share.
        let share = bytes_to_read / (touched.len() as u64).max(1);
        let read = touched.into_iter().map(|file| async move {
            let selection = self.layout.within_file(selection, file);
            (file, parts[file].source.zones(value, &selection, share).await)
        });
        let read: Vec<_> = stream::iter(read).buffered(MAX_CONCURRENT_IO).collect().await;
        let mut of_files = vec![None; parts.len()];
        for (file, zones) in read {
            of_files[file] = zones;
        }
        if of_files.iter().all(Option::is_none) {
            return None;
        }
        let layout = Arc::clone(&self.layout);
        Some(Arc::new(MosaicZones { layout, variable, of_files, element }))
    }
}
