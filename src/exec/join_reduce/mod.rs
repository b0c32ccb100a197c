//! Aggregations above joins that look up rows: a group of a pair is computed, not hashed.
//!
//! ```text
//!   SELECT w.region, t.time, avg(t.value) FROM t JOIN w ON t.lat = w.lat AND t.lon = w.lon GROUP BY w.region, t.time
//!
//!   Partial  gby=[region, time]            GridJoinReduce  gby=[region, time]
//!     GridLookup  lat = lat, lon = lon  ──▶   w              (reads t)
//!       w              (reads t)
//!
//!   rows of w    number of region         labels of t    number of time
//!     North  0                              01:00  0
//!     South  1                              02:00  1        group = region × 2 + time
//!     North  0
//! ```
//!
//! Each key is over the columns of the other side, or over one axis of the array. Keys of the other side are numbered once
//! per row of it, and the others once per label. No pair of a cell and a row is hashed.
//!
//! Sums of products of a value and a weight are a sparse matrix of groups by cells, which is applied to each chunk. So are counts, means,
//! extremes and standard deviations of values. For other aggregates, DataFusion's accumulators get the pairs with the numbers of their groups.
//!
//! All groups are in memory, so there must be no more than pairs, and they must fit. Otherwise the aggregation runs over rows
//! as it was planned, also if that turns out at run time.
//!
//! | file | contents |
//! |---|---|
//! | `rule` | the optimizer rule |
//! | `query` | an aggregation above a lookup, in terms of the columns of both sides |
//! | `reduction` | what is planned: numbered keys, partitions, aggregates |
//! | `built_groups` | the rows of the other side with the numbers of their groups |
//! | `node` | the operator |
//! | `stream` | the groups of a partition, or else its aggregation over rows |
//! | `join_part` | the matches, groups and chunks of a partition |
//! | `products` | aggregates as sums of products of a function of the cell and one of the row |
//! | `sparse` | these, as a sparse matrix that is applied to each chunk |
//! | `cell_tiles` | the matrices of a column of chunks |
//! | `cell_terms` | the values of cells: from tiles, or evaluated |
//! | `pairs` | all other aggregates: pairs of cells and rows, for accumulators |

mod built_groups;
mod cell_terms;
mod cell_tiles;
mod join_part;
mod node;
mod pairs;
mod products;
mod query;
mod reduction;
mod rule;
mod sparse;
mod stream;

pub use node::GridJoinReduceExec;
pub(super) use rule::reduce_joins;
