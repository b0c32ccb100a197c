//! DataFusion operators over arrays, and the optimizer rules that place them.
//!
//! [`GridScanExec`] streams the chunks of a [`crate::plan::ScanPlan`], and [`GridReduceExec`] aggregates
//! them. [`SparseScanExec`] streams the tiles of a sparse array. All are planned completely when they are made. `execute` starts
//! no I/O; the first poll of a stream does.
//!
//! ```text
//!   scan ─▶ stream ──┐                        pruning: which chunks a query does not need
//!                    ├─▶ blocks ─▶ chunks ─▶       ├─ while it is planned  (called by provider)
//!   reduce ──────────┘                             └─ while it runs        (called by chunks)
//!
//!   window, eager, align ─▶ reduce            rules: plans over rows that become reductions and scans
//!   running, lookup, top ─▶ chunks            windows and joins that read chunks themselves
//!   single_labels                             rule: comparisons of labels of single precision
//! ```

mod align;
mod best_first;
mod block_stream;
mod blocks;
mod chunk_memory;
mod chunks;
pub(crate) mod columns;
mod compact;
mod config;
mod debug_text;
mod display;
mod eager;
mod fallible;
mod filled;
mod functions;
mod in_flight;
mod known_function;
mod leaf;
mod locator;
mod lookup;
pub(crate) mod mended;
mod metrics;
mod nans;
mod order;
mod order_keys;
pub(crate) mod own_functions;
pub(crate) mod pruning;
mod reads;
mod reduce;
mod remote_settings;
mod running;
mod scan;
mod single_labels;
pub(crate) mod sparse;
mod stats;
mod stream;
mod top;
pub(crate) mod weighted_avg;
mod window;
mod write;
mod yield_budget;
mod zeros;

pub use align::AlignJoinsRule;
pub use best_first::BestFirstRule;
pub use config::GridfusionConfig;
pub use debug_text::messages_lose_parts;
pub use eager::EagerAggregateRule;
pub use lookup::{GridLookupExec, GridLookupRule};
pub use reduce::{GridReduceExec, GridReduceRule};
pub use running::{GridWindowExec, GridWindowRule, WindowPart};
#[cfg(feature = "codec")]
pub(crate) use running::{ignored_nulls, with_ignored_nulls};
pub use scan::{GridScanExec, PushedDown};
pub(crate) use single_labels::SingleLabelPlanner;
pub use single_labels::SingleLabelRule;
pub use sparse::{SparseAnswerExec, SparseAnswerRule, SparsePlan, SparseScanExec, TileCounts};
pub use top::{GridTopExec, GridTopRule, TopOf};
pub use window::WindowReduceRule;
pub use write::{JsonFloats, JsonFloatsRule, ParquetTypesRule, parquet_type};
