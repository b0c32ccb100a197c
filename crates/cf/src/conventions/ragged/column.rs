//! [`InstanceColumn`]: the chunk source of a variable of instances that is expanded to samples.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::{SortOptions, sort_to_indices, take};
use arrow::datatypes::DataType;
use async_trait::async_trait;
use futures::lock::Mutex;
use gridfusion_core::array::{
    CellColumn, CellKind, ChunkSource, Encoding, GridArray, Value, ValueBounds, ValueColumn,
    failed_to,
};
use gridfusion_core::format::StoredChunk;
use gridfusion_core::grid::{ChunkGrid, ChunkTask, Selection};
use gridfusion_core::tile::{CellFormat, ObjectVersion, Objects};
use gridfusion_core::{Error, Result};

use super::super::store::VariableStore;
use super::cells::{Cells, chunk};
use super::members::Members;

/// The chunks of a variable of instances, along the dimension of their samples.
#[derive(Debug)]
pub(super) struct InstanceColumn {
    pub(super) store: Arc<dyn VariableStore>,
    /// The variables that the chunks depend on: counts or indices, and the variable itself.
    pub(super) variables: Vec<usize>,
    pub(super) members: Arc<Members>,
    /// The chunks along the sample dimension.
    pub(super) grid: ChunkGrid,
    /// The values of the instances, per value of the variable.
    pub(super) values: Vec<InstanceValues>,
}

/// The values of the instances, which are read when a query needs them.
#[derive(Debug)]
pub(super) struct InstanceValues {
    from: Origin,
    /// Whether each sample has a mark that tells whether it is NULL.
    has_marks: bool,
    read: Mutex<Option<Arc<Cells>>>,
    /// The order of the values, once a query has compared them.
    ranked: Mutex<Option<Arc<Ranked>>>,
}

/// Where the values come from.
#[derive(Debug)]
enum Origin {
    /// A value of a variable over instances.
    Value(Arc<GridArray>, usize),
    /// The numbers of so many instances.
    Numbers(u64),
}

impl InstanceValues {
    fn new(from: Origin, has_marks: bool) -> Self {
        Self { from, has_marks, read: Mutex::new(None), ranked: Mutex::new(None) }
    }

    /// Returns the values of a variable, and their columns.
    pub(super) fn of(array: &Arc<GridArray>, members: &Members) -> (Vec<Self>, Vec<Value>) {
        let value = |(number, value): (usize, &Value)| {
            let (value, has_marks) = column(value, members);
            (Self::new(Origin::Value(Arc::clone(array), number), has_marks), value)
        };
        array.values().iter().enumerate().map(value).unzip()
    }

    /// Returns the numbers of `len` instances.
    pub(super) fn numbers(len: u64, members: &Members) -> Self {
        Self::new(Origin::Numbers(len), members.has_none())
    }

    async fn cells(&self) -> Result<Arc<Cells>> {
        let mut read = self.read.lock().await;
        if let Some(cells) = &*read {
            return Ok(Arc::clone(cells));
        }
        let cells = Arc::new(match &self.from {
            Origin::Value(array, number) => Cells::read(array, *number).await?,
            Origin::Numbers(len) => Cells::numbers(*len),
        });
        *read = Some(Arc::clone(&cells));
        Ok(cells)
    }
}

impl InstanceValues {
    async fn ranked(&self) -> Option<Arc<Ranked>> {
        let mut ranked = self.ranked.lock().await;
        if ranked.is_none() {
            let cells = self.cells().await.ok()?;
            *ranked = Ranked::try_new(cells.values.as_ref()?).map(Arc::new);
        }
        ranked.clone()
    }
}

/// Returns the column of samples for one of instances, and whether it has marks for NULL.
pub(super) fn column(value: &Value, members: &Members) -> (Value, bool) {
    if value.column.data_type() == DataType::Utf8View {
        let text = CellColumn::new(CellKind::Text(Encoding::Utf8), true, vec![]);
        let cells = CellFormat::new(None, true, vec![], false);
        let text = Value::new(value.name.clone(), ValueColumn::Cells(text), cells);
        return (text.with_attributes(value.attributes.clone()), true);
    }
    match members.has_none() {
        true => (value.absent(), true),
        false => (value.clone(), false),
    }
}

#[async_trait]
impl ChunkSource for InstanceColumn {
    fn objects(&self) -> &Arc<Objects> {
        self.store.objects()
    }

    fn versions(&self) -> Vec<ObjectVersion> {
        self.store.versions()
    }

    fn contents(&self) -> Result<Vec<ObjectVersion>> {
        let mut all = vec![];
        for variable in &self.variables {
            all.extend(self.store.contents(*variable)?);
        }
        Ok(all)
    }

    async fn locate(&self, tasks: &[ChunkTask], values: &[usize]) -> Result<Vec<Vec<StoredChunk>>> {
        let mut of_values = Vec::with_capacity(values.len());
        for value in values {
            let of_value = self.values.get(*value);
            let of_value = of_value.ok_or_else(|| Error::internal("a value of no instance"))?;
            of_values.push((of_value.cells().await?, of_value.has_marks));
        }
        let of_task = |task: &ChunkTask| {
            let at = task.coordinates.first().copied().unwrap_or_default();
            let range = self.grid.axis_range(0, at);
            let chunk =
                |(cells, marks): &(Arc<Cells>, bool)| chunk(cells, &self.members, &range, *marks);
            of_values.iter().map(chunk).collect()
        };
        tasks.iter().map(of_task).collect()
    }

    async fn value_bounds(&self, value: usize, _: &Selection) -> Option<Arc<dyn ValueBounds>> {
        // If the values cannot be read, locating the chunks reports why.
        let ranked = self.values.get(value)?.ranked().await?;
        let (members, grid) = (Arc::clone(&self.members), self.grid.clone());
        Some(Arc::new(InstanceBounds { ranked, members, grid }))
    }
}

/// The values of the instances in order.
#[derive(Debug)]
struct Ranked {
    values: ArrayRef,
    /// The instances in the order of their values.
    order: UInt32Array,
    /// The place of each instance in that order; `None` for NULL.
    ranks: Vec<Option<u32>>,
}

impl Ranked {
    /// Returns `None` for values of a type without order.
    fn try_new(values: &ArrayRef) -> Option<Self> {
        let values = Arc::clone(values);
        let order = sort_to_indices(&values, Some(SortOptions::default()), None).ok()?;
        let mut ranks = vec![None; values.len()];
        for (rank, at) in order.values().iter().enumerate() {
            let at = *at as usize;
            if let Some(place) = ranks.get_mut(at).filter(|_| values.is_valid(at)) {
                *place = Some(rank as u32);
            }
        }
        Some(Self { values, order, ranks })
    }
}

/// The bounds of the values of the samples in each chunk.
#[derive(Debug)]
struct InstanceBounds {
    ranked: Arc<Ranked>,
    members: Arc<Members>,
    grid: ChunkGrid,
}

impl ValueBounds for InstanceBounds {
    fn bounds(&self, chunks: &[u64]) -> Result<(ArrayRef, ArrayRef)> {
        let Ranked { values, order, ranks } = &*self.ranked;
        let (mut least, mut greatest) = (vec![], vec![]);
        for chunk in chunks {
            let mut bounds: Option<(u32, u32)> = None;
            for (instance, _) in self.members.runs(self.grid.axis_range(0, *chunk)) {
                let rank = instance.and_then(|it| ranks.get(it as usize).copied().flatten());
                let Some(rank) = rank else { continue };
                let (least, greatest) = bounds.unwrap_or((rank, rank));
                bounds = Some((least.min(rank), greatest.max(rank)));
            }
            let at = |rank: u32| order.value(rank as usize);
            least.push(bounds.map(|(least, _)| at(least)));
            greatest.push(bounds.map(|(_, greatest)| at(greatest)));
        }
        let taken = |at: Vec<Option<u32>>| {
            take(values, &UInt32Array::from(at), None).map_err(failed_to("take bounds"))
        };
        Ok((taken(least)?, taken(greatest)?))
    }
}
