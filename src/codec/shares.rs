//! [`SharedLeaf`]: a leaf of a plan, divided among processes.
//!
//! A leaf is divided into as many partitions per process as one process would have, some of them empty. A whole reduction
//! is cut along an axis where no group is on both sides, and its shares are reductions of smaller selections. All else is
//! cut between chunks or tiles. A share selects only the labels along leading axes that it reads, so it numbers no
//! others, and opens no other files. Only the first share reports the chunks that planning left out, so that metrics add
//! up.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::origins::refuse_secrets;
use super::shared_join::JoinShareExec;
use crate::array::{ColumnSource, GridArray};
use crate::exec::{GridReduceExec, GridScanExec, GridTopExec, GridWindowExec, SparseScanExec};
use crate::plan::ScanPlan;
use crate::source::TableOrigin;

/// A scan or reduction of gridfusion, or the chunks of a join, which several processes can run together.
///
/// Its shares have the same schema and number of partitions as the leaf itself, and together yield its rows. A reduction to
/// final values is cut where no group is on both sides. Everything else is cut between chunks or tiles. The metrics of all
/// shares add up to those of the leaf. A leaf that stands for the chunks of a [join](super::with_shared_joins) has no rows of its
/// own: its shares are those of the join above it.
///
/// ```
/// use datafusion::prelude::{SessionConfig, SessionContext};
/// use gridfusion::codec::SharedLeaf;
/// use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
/// ctx.enable_gridfusion();
/// let options = ArrayOptions::default().with_dataset("temperature");
/// ctx.register_array("t", "examples/data/stations.tet", options).await?;
/// let plan = ctx.sql("SELECT * FROM t").await?.create_physical_plan().await?;
/// let leaf = SharedLeaf::from_node(&plan).unwrap();
/// assert_eq!(leaf.shares(3)?.len(), 3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct SharedLeaf<'a> {
    node: &'a Arc<dyn ExecutionPlan>,
    leaf: Leaf<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Leaf<'a> {
    Scan(&'a GridScanExec),
    Reduce(&'a GridReduceExec, &'a GridScanExec),
    Top(&'a GridTopExec, &'a GridScanExec),
    Window(&'a GridWindowExec),
    Sparse(&'a SparseScanExec),
    Join(&'a JoinShareExec, &'a GridScanExec),
}

impl<'a> SharedLeaf<'a> {
    /// Returns a leaf of gridfusion; `None` for other nodes.
    pub fn from_node(node: &'a Arc<dyn ExecutionPlan>) -> Option<Self> {
        let leaf = if let Some(scan) = node.downcast_ref::<GridScanExec>() {
            Leaf::Scan(scan)
        } else if let Some(reduce) = node.downcast_ref::<GridReduceExec>() {
            Leaf::Reduce(reduce, reduce.scan()?)
        } else if let Some(top) = node.downcast_ref::<GridTopExec>() {
            Leaf::Top(top, top.scan())
        } else if let Some(window) = node.downcast_ref::<GridWindowExec>() {
            Leaf::Window(window)
        } else if let Some(share) = node.downcast_ref::<JoinShareExec>() {
            Leaf::Join(share, share.scan()?)
        } else {
            Leaf::Sparse(node.downcast_ref()?)
        };
        Some(Self { node, leaf })
    }

    /// Whether the leaf may be divided. A leaf or join of one partition may not: the operators above rely on seeing all of its rows.
    pub fn is_divisible(&self) -> bool {
        let node = match self.leaf {
            Leaf::Join(share, _) => share.join(),
            _ => self.node,
        };
        node.output_partitioning().partition_count() > 1
    }

    /// Returns about how many bytes of cells the leaf decodes.
    pub fn bytes(&self) -> u64 {
        match self.leaf {
            Leaf::Scan(scan) | Leaf::Reduce(_, scan) | Leaf::Top(_, scan) | Leaf::Join(_, scan) => {
                bytes(scan.array(), scan.plan(), &scan.columns())
            }
            Leaf::Window(window) => {
                let scan = window.scan();
                bytes(scan.array(), scan.plan(), &scan.columns())
            }
            Leaf::Sparse(scan) => {
                let widths = scan.schema().fields().iter().map(|it| width(it.data_type())).sum();
                scan.plan().cells().saturating_mul(widths)
            }
        }
    }

    /// Returns what the table was opened from. `None` if the program opened it itself: then no other process can.
    pub fn origin(&self) -> Option<&'a TableOrigin> {
        match self.leaf {
            Leaf::Scan(scan) | Leaf::Reduce(_, scan) | Leaf::Top(_, scan) | Leaf::Join(_, scan) => {
                scan.origin()
            }
            Leaf::Window(window) => window.scan().origin(),
            Leaf::Sparse(scan) => scan.origin(),
        }
        .map(Arc::as_ref)
    }

    /// Fails if another process cannot open the table without a secret.
    ///
    /// # Errors
    /// `Usage` for a URL with a password or a signature, and for an option that is a key.
    pub fn check_secrets(&self) -> Result<()> {
        self.origin().map_or(Ok(()), refuse_secrets)
    }

    /// Returns a name for the part of the table that the leaf reads first. Leaves that read about the same chunks have the
    /// same name, so an engine can send them to the process that has read these before.
    pub fn region(&self) -> String {
        /// The parts of a table that have names.
        const REGIONS: u128 = 64;
        let (name, first, all) = match self.leaf {
            Leaf::Scan(scan) | Leaf::Reduce(_, scan) | Leaf::Top(_, scan) => {
                (scan.array().name(), first_chunk(scan.plan()), scan.plan().grid().chunks())
            }
            Leaf::Window(window) => {
                let scan = window.scan();
                (scan.array().name(), window.first_chunk(), scan.plan().grid().chunks())
            }
            Leaf::Join(share, scan) => {
                (scan.array().name(), first_chunk(share.plan(scan)), scan.plan().grid().chunks())
            }
            Leaf::Sparse(scan) => {
                let (first, all) = scan.first_tile();
                (scan.array().name(), first, all)
            }
        };
        let place = self.origin().and_then(TableOrigin::first_place).unwrap_or_default();
        let region = u128::from(first) * REGIONS / u128::from(all.max(1));
        format!("{place} {name} {region}")
    }

    /// Divides the leaf into `count` shares with about equally many cells. Some may be empty.
    ///
    /// # Errors
    /// Internal errors only.
    pub fn shares(&self, count: usize) -> Result<Vec<Arc<dyn ExecutionPlan>>> {
        fn of<T: ExecutionPlan + 'static>(nodes: Vec<T>) -> Vec<Arc<dyn ExecutionPlan>> {
            nodes.into_iter().map(|node| Arc::new(node) as _).collect()
        }
        Ok(match self.leaf {
            Leaf::Scan(scan) => of(scan.shares(count)?),
            Leaf::Reduce(reduce, _) => of(reduce.shares(count)?),
            Leaf::Top(top, _) => of(top.shares(count)?),
            Leaf::Window(window) => of(window.shares(count)?),
            Leaf::Sparse(scan) => of(scan.shares(count)),
            Leaf::Join(share, _) => of(share.shares(count)),
        })
    }
}

/// Returns the number of the first chunk of a plan.
fn first_chunk(plan: &ScanPlan) -> u64 {
    let mut tasks = (0..plan.partition_count()).flat_map(|it| plan.tasks(it));
    tasks.next().map_or(0, |task| plan.task(task).chunk_number)
}

/// Returns the bytes that a scan decodes, or makes if it shows only dimensions.
fn bytes(array: &GridArray, plan: &ScanPlan, columns: &[ColumnSource]) -> u64 {
    let grid = plan.grid();
    let edges =
        grid.axis_chunks().iter().zip(grid.shape()).map(|(axis, len)| axis.edge().min(*len));
    let cells = edges.fold(plan.chunks(), u64::saturating_mul);
    let cells = cells.min(grid.shape().iter().copied().fold(1, u64::saturating_mul));
    let of_column = |column: &ColumnSource| match column.value() {
        Some(value) => cells.saturating_mul(width(&array.value(value).data_type())),
        None => plan.rows(None).saturating_mul(8),
    };
    columns.iter().map(of_column).fold(0, u64::saturating_add)
}

/// Returns the bytes of a value. Values of variable length count as views.
pub(super) fn width(data_type: &DataType) -> u64 {
    data_type.primitive_width().unwrap_or(16) as u64
}
