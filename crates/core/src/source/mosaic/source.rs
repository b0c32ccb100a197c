//! [`Mosaic`]: the chunk source of a table of several arrays.
//!
//! ```text
//!   tasks of the table ──requests──▶ PartRequest per variable and file ──locate──▶ stored chunks of the part
//!                                                                                        │ Overlap::place
//!       one StoredChunk per task and value ◀── layers of all overlaps, appended ◀────────┘
//! ```
//!
//! Stored chunks of one variable never share cells, so the order in which their layers are appended does
//! not matter. The order of the layers within a stored chunk remains.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::DataType;
use async_trait::async_trait;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::bounds::MosaicBounds;
use super::layout::Layout;
use super::overlap::Overlap;
use super::zones::MosaicZones;
use crate::array::{ChunkSource, Contents, RepeatedInFiles, ValueBounds};
use crate::error::{Error, Result};

use crate::format::{ElementType, MemoryBudget, StoredChunk, Zones};
use crate::grid::{ChunkGrid, ChunkTask, Selection};
use crate::io::MAX_CONCURRENT_IO;
use crate::tile::{ObjectVersion, Objects};

/// The chunk source of several arrays that are combined into one.
#[derive(Debug)]
pub(super) struct Mosaic {
    objects: Arc<Objects>,
    layout: Arc<Layout>,
    /// The stored arrays, per variable and file.
    parts: Vec<Vec<MosaicPart>>,
    /// The origin of each value of the table.
    values: Vec<PartValue>,
    /// How the cells of each value repeat within files.
    repeated: Vec<Option<Arc<RepeatedInFiles>>>,
}

/// One stored array: a variable of one file.
#[derive(Debug)]
pub(super) struct MosaicPart {
    pub(super) source: Arc<dyn ChunkSource>,
    /// The number of its objects among the members of the table's objects.
    pub(super) member: u32,
    /// Per value: for each form that it has in the array, the number of the form in the table.
    pub(super) forms: Vec<Vec<u32>>,
}

/// The variable and the value in its arrays that a value of the table comes from.
#[derive(Debug, Clone)]
pub(super) struct PartValue {
    pub(super) variable: usize,
    /// The number of the value in the arrays of the variable.
    pub(super) value: usize,
    /// The type by which zone bounds compare; `None` if the column does not keep their order.
    pub(super) element: Option<ElementType>,
    /// The type of the column.
    pub(super) data_type: DataType,
}

/// The stored chunks to locate in one stored array, and their places in the tasks of the table.
struct PartRequest {
    variable: usize,
    file: usize,
    /// The positions of the variable's values in the list of requested values.
    at: Vec<usize>,
    tasks: Vec<ChunkTask>,
    /// Per entry of `tasks`: the number of the table's task, and the overlap with its chunk.
    overlaps: Vec<(usize, Overlap)>,
}

/// The number of a table's task, the position of a value in the list of requested values, and a stored chunk.
type LocatedChunk = (usize, usize, StoredChunk);

impl Mosaic {
    pub(super) fn new(
        objects: Arc<Objects>,
        layout: Arc<Layout>,
        parts: Vec<Vec<MosaicPart>>,
        values: Vec<PartValue>,
    ) -> Self {
        let repeated = |PartValue { variable, value, .. }: &PartValue| {
            repeated_in_files(&layout, &parts[*variable], *value).map(Arc::new)
        };
        let repeated = values.iter().map(repeated).collect();
        Self { objects, layout, parts, values, repeated }
    }

    /// The chunk grid of the table.
    pub(super) fn grid(&self) -> &ChunkGrid {
        self.layout.grid()
    }

    /// Returns the chunks to locate in each stored array for `values` of `tasks`.
    /// All tasks of a file share one request, because formats read their index once per request.
    fn requests(&self, tasks: &[ChunkTask], values: &[usize]) -> Vec<PartRequest> {
        let mut requests: Vec<PartRequest> = Vec::new();
        for (variable, at) in self.by_variable(values) {
            // The requests of this variable begin here.
            let first = requests.len();
            for (at_task, task) in tasks.iter().enumerate() {
                let file = self.layout.file_of(&task.coordinates);
                let place = match requests[first..].iter().position(|it| it.file == file) {
                    Some(place) => first + place,
                    None => {
                        let (tasks, overlaps) = (vec![], vec![]);
                        requests.push(PartRequest {
                            variable,
                            file,
                            at: at.clone(),
                            tasks,
                            overlaps,
                        });
                        requests.len() - 1
                    }
                };
                let of_part = &mut requests[place];
                let overlaps =
                    self.layout.overlaps(variable, &task.coordinates, Some(&task.selection));
                for overlap in overlaps {
                    of_part.tasks.push(overlap.task(self.layout.grid_of(variable, file)));
                    of_part.overlaps.push((at_task, overlap));
                }
            }
        }
        requests
    }

    /// Returns, per variable, the positions of its values in the list of requested values.
    /// For the values `[4, 0, 5]`, of which 4 and 5 are of variable 1, it returns `{0: [1], 1: [0, 2]}`.
    fn by_variable(&self, values: &[usize]) -> BTreeMap<usize, Vec<usize>> {
        let mut places: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, &value) in values.iter().enumerate() {
            places.entry(self.values[value].variable).or_default().push(at);
        }
        places
    }

    /// Locates the chunks of one request, and places them in the chunks of the table.
    async fn locate_part(
        &self,
        request: PartRequest,
        values: &[usize],
    ) -> Result<Vec<LocatedChunk>> {
        let part = &self.parts[request.variable][request.file];
        let of_variable: Vec<usize> =
            request.at.iter().map(|&at| self.values[values[at]].value).collect();
        let stored = part.source.locate(&request.tasks, &of_variable).await?;
        let mut located = Vec::with_capacity(stored.len() * of_variable.len());
        for ((task, overlap), chunks) in request.overlaps.into_iter().zip(stored) {
            if chunks.len() != of_variable.len() {
                return Err(Error::internal("a chunk that was not located"));
            }
            for ((&at, value), chunk) in request.at.iter().zip(&of_variable).zip(chunks) {
                located.push((task, at, overlap.place(part.owned(*value, chunk)?)));
            }
        }
        Ok(located)
    }
}

impl MosaicPart {
    /// Renumbers the members of the locations and the form of a stored chunk as the table numbers them. Formats always set 0,
    /// and a mosaic within the mosaic counts from 0.
    fn owned(&self, value: usize, mut chunk: StoredChunk) -> Result<StoredChunk> {
        let layers = chunk.layers.iter_mut();
        layers.flat_map(|layer| layer.payloads_mut()).for_each(|it| it.at.member += self.member);
        chunk.form = self.form(value, chunk.form)?;
        Ok(chunk)
    }

    /// Whether the array has all its cells of a value in one form of the table.
    fn has_only_form(&self, value: usize, form: u32) -> bool {
        self.forms.get(value).is_some_and(|forms| forms.iter().all(|it| *it == form))
    }

    /// Returns the number in the table of a form that a value has in the array.
    fn form(&self, value: usize, own: u32) -> Result<u32> {
        let form = self.forms.get(value).and_then(|forms| forms.get(own as usize));
        form.copied().ok_or_else(|| Error::internal("a form that no file has"))
    }
}

/// Returns how the cells of a value repeat within the files `parts`, if they do so along the same axes in all of them.
fn repeated_in_files(
    layout: &Layout,
    parts: &[MosaicPart],
    value: usize,
) -> Option<RepeatedInFiles> {
    let [first, others @ ..] = parts else { return None };
    let (axes, axis) = (first.source.axes_of(value)?, layout.axis());
    let is_same = |part: &MosaicPart| part.source.axes_of(value).as_ref() == Some(&axes);
    let is_behind = axes.iter().all(|it| *it > axis);
    (is_behind && !others.is_empty() && others.iter().all(is_same)).then(|| RepeatedInFiles {
        starts: layout.file_starts(),
        axis,
        axes,
    })
}

#[async_trait]
impl ChunkSource for Mosaic {
    fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    fn versions(&self) -> Vec<ObjectVersion> {
        // Several variables are of one file.
        let mut seen = HashSet::new();
        let all = self.parts.iter().flatten().flat_map(|part| part.source.versions());
        all.filter(|version| seen.insert(version.clone())).collect()
    }

    fn contents(&self) -> Result<Vec<ObjectVersion>> {
        let parts = self.parts.iter().flatten();
        Contents(parts.map(|part| Arc::clone(&part.source)).collect()).versions()
    }

    fn memory_budget(&self) -> MemoryBudget {
        let first = self.parts.first().and_then(|files| files.first());
        first.map(|part| part.source.memory_budget()).unwrap_or_default()
    }

    fn most_chunks(&self) -> u64 {
        let parts = self.parts.iter().flatten().map(|part| part.source.most_chunks());
        parts.fold(0, u64::saturating_add)
    }

    fn axes_of(&self, value: usize) -> Option<Vec<usize>> {
        let PartValue { variable, value, .. } = self.values[value];
        match self.parts[variable].as_slice() {
            [only] => only.source.axes_of(value),
            // Files may have other values.
            _ => None,
        }
    }

    fn repeated_in_files(&self, value: usize) -> Option<Arc<RepeatedInFiles>> {
        self.repeated[value].clone()
    }

    async fn locate(&self, tasks: &[ChunkTask], values: &[usize]) -> Result<Vec<Vec<StoredChunk>>> {
        let mut chunks = vec![vec![StoredChunk::default(); values.len()]; tasks.len()];
        let requests = self.requests(tasks, values);
        let located = requests.into_iter().map(|request| self.locate_part(request, values));
        let mut located = stream::iter(located).buffered(MAX_CONCURRENT_IO);
        while let Some(of_part) = located.try_next().await? {
            for (task, at, chunk) in of_part {
                let of_table = &mut chunks[task][at];
                // A chunk of the table lies in one file.
                if !of_table.layers.is_empty() && of_table.form != chunk.form {
                    return Err(Error::internal("a chunk of several forms"));
                }
                of_table.form = chunk.form;
                of_table.layers.extend(chunk.layers);
            }
        }
        drop(located);
        Ok(chunks)
    }

    async fn explain_absence(&self, value: usize, member: u32) -> Result<Option<String>> {
        let PartValue { variable, value, .. } = self.values[value];
        // Members are numbered in the order of the parts, and a part may have several.
        let parts = self.parts[variable].iter().filter(|part| part.member <= member);
        match parts.max_by_key(|part| part.member) {
            Some(part) => part.source.explain_absence(value, member - part.member).await,
            None => Ok(None),
        }
    }

    async fn zones(
        &self,
        value: usize,
        selection: &Selection,
        bytes_to_read: u64,
    ) -> Option<Arc<dyn Zones>> {
        let PartValue { variable, value, element, .. } = self.values[value];
        // Bounds of several chunks can be merged only by comparing stored elements.
        let element = element?;
        let parts = &self.parts[variable];
        let touched = self.layout.files_of(selection);
        // Each file compares the cost of its zone maps with an equal share of the payload bytes.
        let share = bytes_to_read / (touched.len() as u64).max(1);
        // Bounds of another form are no elements of the column.
        let touched = touched.into_iter().filter(|file| parts[*file].has_only_form(value, 0));
        let read = touched.map(|file| async move {
            let selection = self.layout.within_file(selection, file);
            (file, parts[file].source.zones(value, &selection, share).await)
        });
        let read: Vec<_> = stream::iter(read).buffered(MAX_CONCURRENT_IO).collect().await;
        let mut of_files = vec![None; parts.len()];
        for (file, zones) in read {
            of_files[file] = zones;
        }
        // Files that the query does not touch have no zones here, and none is requested.
        if of_files.iter().all(Option::is_none) {
            return None;
        }
        let layout = Arc::clone(&self.layout);
        Some(Arc::new(MosaicZones { layout, variable, of_files, element }))
    }

    async fn value_bounds(
        &self,
        value: usize,
        selection: &Selection,
    ) -> Option<Arc<dyn ValueBounds>> {
        let PartValue { variable, value, ref data_type, .. } = self.values[value];
        let parts = &self.parts[variable];
        let touched = self.layout.files_of(selection).into_iter().map(|file| async move {
            let selection = self.layout.within_file(selection, file);
            (file, parts[file].source.value_bounds(value, &selection).await)
        });
        let known: Vec<_> = stream::iter(touched).buffered(MAX_CONCURRENT_IO).collect().await;
        let mut of_files = vec![None; parts.len()];
        for (file, bounds) in known {
            of_files[file] = bounds;
        }
        if of_files.iter().all(Option::is_none) {
            return None;
        }
        let (layout, data_type) = (Arc::clone(&self.layout), data_type.clone());
        Some(Arc::new(MosaicBounds { layout, variable, of_files, data_type }))
    }
}
