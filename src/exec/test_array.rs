//! An array for unit tests of operators, and plans over it for unit tests of rules.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::{MemTable, TableType};
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::Expr;
use datafusion::physical_optimizer::PhysicalOptimizerRule as _;
use datafusion::physical_optimizer::ensure_requirements::EnsureRequirements;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};

use super::{GridScanExec, GridfusionConfig};
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

/// A table whose rows are those of a scan.
#[derive(Debug)]
struct ScanTable(GridScanExec);

#[async_trait]
impl TableProvider for ScanTable {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let columns = projection.cloned().unwrap_or_else(|| vec![0, 1, 2]);
        let (array, plan) = (Arc::clone(self.0.array()), Arc::clone(self.0.plan()));
        Ok(Arc::new(GridScanExec::try_new(array, plan, columns)?))
    }
}

/// Returns a session with the tables of [`rewritten`], whose plans stop where the rules of gridfusion begin.
fn session() -> SessionContext {
    let end = EnsureRequirements::new();
    let rules = PhysicalOptimizer::new().rules.into_iter();
    let state = SessionStateBuilder::new()
        .with_config(SessionConfig::new().with_target_partitions(2))
        .with_default_features()
        .with_physical_optimizer_rules(rules.take_while(|it| it.name() != end.name()).collect())
        .build();
    let ctx = SessionContext::new_with_state(state);
    let t = scan(32, &["a", "b", "c", "d"], 2);
    let stations: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "x"]));
    let stations = cast(&stations, t.schema().field(1).data_type()).unwrap();
    let heights: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0]));
    let fields = [("station", &stations), ("height", &heights)];
    let fields = fields.map(|(name, column)| Field::new(name, column.data_type().clone(), true));
    let batch =
        RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), vec![stations, heights]);
    let batch = batch.unwrap();
    let heights = MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap();
    ctx.register_table("t", Arc::new(ScanTable(t))).unwrap();
    ctx.register_table("u", Arc::new(ScanTable(scan(32, &["b", "c", "d", "e"], 1)))).unwrap();
    ctx.register_table("heights", Arc::new(heights)).unwrap();
    ctx
}

/// Lets a rule rewrite the plan of a query, as the rules of gridfusion meet it. Returns the new plan as text; `None` if the rule
/// does not change it.
///
/// Both `t` and `u` are [scans](scan) of 32 hours. The stations of `t` are a to d, and those of `u` are b to e. The rows of
/// `heights` have a `station` and a `height`.
pub(super) async fn rewritten(
    query: &str,
    rule: impl Fn(Arc<dyn ExecutionPlan>, &GridfusionConfig) -> DataFusionResult<Arc<dyn ExecutionPlan>>,
) -> Option<String> {
    let text = |plan: &Arc<dyn ExecutionPlan>| displayable(plan.as_ref()).indent(false).to_string();
    let plan = session().sql(query).await.unwrap().create_physical_plan().await.unwrap();
    let new = rule(Arc::clone(&plan), &GridfusionConfig::default()).unwrap();
    assert_eq!(new.schema(), plan.schema());
    // A reason for rows is no change of a plan.
    let operators = |plan: &Arc<dyn ExecutionPlan>| -> Vec<String> {
        let lines = text(plan);
        lines.lines().map(|it| it.split(", rows because").next().unwrap_or(it).to_owned()).collect()
    };
    (operators(&new) != operators(&plan)).then(|| text(&new))
}
