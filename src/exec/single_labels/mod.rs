//! Comparisons of labels of single precision, which happen in singles.
//!
//! ```text
//!   file, FLOAT column   the single nearest to 50.1       50.099998474…
//!   DOUBLE, CSV, SQL     the double nearest to 50.1       50.1000000000000014…
//!
//!   lat = 50.1           DataFusion: CAST(lat AS DOUBLE) = 50.1           false
//!                        here:       lat = CAST(50.1 AS FLOAT)            true
//! ```
//!
//! Functions and `UNION` that have doubles beside labels keep their type. There, labels become the doubles of their decimals.
//!
//! `=`, `<`, `BETWEEN`, `IN`, joins and subqueries all compare in one way, so the indices of a label are the same whatever
//! finds them: the scan, a join or a filter.
//!
//! The rule casts the other side of a comparison before DataFusion would cast the label. It also follows labels through
//! functions, which drop metadata. Keys of joins stay keys.

mod columns;
mod comparisons;
mod planner;
mod rule;
mod shown;
mod unions;

pub(crate) use planner::SingleLabelPlanner;
pub(crate) use rule::SingleLabelRule;
