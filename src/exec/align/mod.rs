//! Joins of arrays on their dimensions: the arrays are put side by side, as columns of one scan, instead of hashed.
//!
//! ```text
//!   SELECT corr(t.value, p.value) FROM t JOIN p ON t.time = p.time AND t.station = p.station
//!
//!   Join   time = time, station = station       Project  t.time, t.station, t.value, p.value
//!     GridScan t   one row per cell         ──▶   GridScan  t + p
//!     GridScan p   one row per cell
//! ```
//!
//! Labels are strictly in order, so they do not repeat. The labels that both arrays have are a range of both axes, and the rest
//! is sliced off. So rows with equal indices are the pairs of the join. NULL equals nothing, so its indices are not selected. An array of fewer dimensions is broadcast along the
//! others. All that a scan can do follows: reductions, pruning, orders, partitions.
//!
//! The scan has no masks, so a scan with masks of chunk statistics is left alone: its join reads fewer chunks. The origin
//! of the table lists the origins of its arrays, so the scan travels.
//!
//! | file | contents |
//! |---|---|
//! | `sides` | the two scans of a join, and how their axes correspond |
//! | `aligned` | the plan with one scan, and the rule `AlignJoins` that makes it |

mod aligned;
mod sides;

pub(super) use aligned::put_side_by_side;
