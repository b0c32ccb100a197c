//! An array for unit tests of operators.

use std::sync::Arc;

use async_trait::async_trait;

use super::GridScanExec;
use crate::Result;
use crate::array::{ChunkSource, Dimension, GridArrayBuilder, Labels, ReadOptions, Value};
use crate::format::{ElementType, StoredChunk};
use crate::grid::{ChunkGrid, ChunkTask};
use crate::io::MemorySource;
use crate::plan::{ScanPlan, ScanRequest};
use crate::tile::Objects;

/// Chunks that were never written.
#[derive(Debug)]
struct Unwritten(Arc<Objects>);

#[async_trait]
impl ChunkSource for Unwritten {
    fn objects(&self) -> &Arc<Objects> {
        &self.0
    }

    async fn locate(&self, tasks: &[ChunkTask], values: &[usize]) -> Result<Vec<Vec<StoredChunk>>> {
        Ok(vec![vec![StoredChunk::default(); values.len()]; tasks.len()])
    }
}

/// Returns a scan of the columns `hour`, `station` and `value`. Chunks have two hours and two stations, and each value is 7.
pub(super) fn scan(hours: u64, stations: &[&str], partitions: usize) -> GridScanExec {
    let objects = Objects::one(Arc::new(MemorySource::new("memory", vec![])));
    let labels: Vec<String> = stations.iter().map(ToString::to_string).collect();
    let grid = ChunkGrid::new(&[hours, stations.len() as u64], &[2, 2]).unwrap();
    let plan = ScanRequest { partitions, ..ScanRequest::all(&grid) };
    let plan = ScanPlan::new(grid.clone(), plan).unwrap();
    let options = ReadOptions::default().with_fill_as_null(false);
    let fill = 7.0_f32.to_le_bytes();
    let array = GridArrayBuilder::new("test", Arc::new(Unwritten(Arc::new(objects))), grid)
        .dimension(Dimension::indexed("hour", hours))
        .dimension(Dimension::labelled("station", Labels::from_text(&labels).unwrap()))
        .value(Value::numbers("value", ElementType::F32, Some(&fill), &options))
        .build()
        .unwrap();
    GridScanExec::try_new(Arc::new(array), plan, vec![0, 1, 2]).unwrap()
}
