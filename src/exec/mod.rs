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
//!   rules                                     the list of rules, in their order
//!   matching                                  what rules ask about a plan
//!   eager, align, window ─▶ reduce            rules: plans over rows that become reductions and scans
//!   window, lookup, top ─▶ chunks             windows and joins that read chunks themselves
//!   join_reduce ─▶ reduce, lookup             rule: aggregations above lookups that become reductions
//!   single_labels                             rule: comparisons of labels of single precision
//!   coordinates                               expressions over cells that repeat along some axes
//!   nearest                                   function: the label that is nearest to a value
//!   spatial                                   the cells of polygons and points
//!   cf_days                                   function: days between times, counted in a calendar
//!   counted_times                             rules: numbers that count time in a calendar that SQL lacks
//!   written_times                             rule: times without seconds, minutes or days
//! ```
//!
//! All plan nodes share `operator`: properties, dynamic filters, statistics of partitions, metrics, `EXPLAIN`.

mod align;
pub(crate) mod arg_extremes;
mod batches;
mod best_first;
mod block_stream;
mod blocks;
pub(crate) mod cf_days;
mod chunk_memory;
mod chunks;
pub(crate) mod columns;
mod compact;
mod config;
mod coordinates;
mod counted_times;
mod display;
mod eager;
mod filled;
mod functions;
mod in_flight;
mod join_reduce;
mod locator;
pub(crate) mod longest_run;
mod lookup;
mod matching;
pub(crate) mod mended;
mod metrics;
pub(crate) mod mode;
mod nans;
pub(crate) mod nearest;
mod offset;
pub(crate) mod operator;
mod order;
mod order_keys;
pub(crate) mod own_functions;
pub(crate) mod pruning;
mod reads;
mod reduce;
mod rows_because;
mod rules;
mod scan;
mod single_labels;
pub(crate) mod sparse;
pub(crate) mod spatial;
mod stats;
mod stream;
#[cfg(test)]
mod test_array;
mod top;
mod waiting;
pub(crate) mod weighted_avg;
mod window;
pub(crate) mod write;
mod written_times;
mod yield_budget;

pub use config::GridfusionConfig;
pub(crate) use counted_times::{CountedDatesRule, CountedTimesRule, ExtractPlanner, date_function};
pub use join_reduce::GridJoinReduceExec;
pub use lookup::GridLookupExec;
pub use matching::messages_lose_parts;
pub(crate) use matching::{known_aggregate, known_scalar};
pub use reduce::GridReduceExec;
pub use rules::gridfusion_rules;
pub use scan::GridScanExec;
#[cfg(feature = "codec")]
pub(crate) use scan::PushedDown;
pub(crate) use single_labels::{SingleLabelPlanner, SingleLabelRule};
pub use sparse::{SparseAnswerExec, SparsePlan, SparseScanExec, TileCounts};
pub use top::{GridTopExec, TopOf};
pub(crate) use waiting::wait;
pub use window::{GridWindowExec, WindowPart};
#[cfg(feature = "codec")]
pub(crate) use window::{ignored_nulls, with_ignored_nulls};
pub(crate) use write::finds_arrays_by_name;
pub use write::{
    AfterWrite, AppendPlace, ArrayFormatFactory, CsvFormatter, JsonValues, NewArrayPlan,
    ParquetTypesRule, append_plan, is_taken_for_rows, parquet_type, writes_array,
};
pub(crate) use written_times::WrittenTimesRule;
