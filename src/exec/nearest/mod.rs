//! `nearest(dimension, value)`: the label of a dimension that is nearest to a value.
//!
//! ```text
//!   WHERE lat = nearest(lat, 59.9)                      rule ──▶ lat = 59.75              prunes as any label does
//!   JOIN … ON g.lat = nearest(g.lat, s.lat, 0.5)        rule ──▶ g.lat = nearest(s.lat, 0.5)   a join by label
//! ```
//!
//! The labels are those of the array, so `provider::nearest_rule` puts them into the function. A function of a value alone remains, which the
//! optimizer computes for constants, and which makes an equality of two sides of a join.

mod function;
mod labels;

#[cfg(feature = "codec")]
pub(crate) use function::nearest_labels;
pub(crate) use function::{nearest_among, nearest_udf};
pub(crate) use labels::NearestLabels;
