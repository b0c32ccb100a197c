//! Functions of DataFusion that are wrong for some values, with what is wrong replaced.
//!
//! | function | DataFusion 55.2 | here |
//! |---|---|---|
//! | `sum`, `avg`, variances, `corr`, `covar`, `regr_…` in frames that move | take back what has left the frame, so errors stay | add only |
//! | `min`, `max` by group | `min` of infinity is the greatest finite number; NaN makes them depend on the order of rows | NaN is greater than all numbers |
//! | `corr` by group | adds up squares, which loses digits: 0.92 for a line of times | adds distances from the first pair |
//! | all of these | the sign of NaN depends on the plan | NaN has no sign |
//! | `date_trunc` | fails outside the years 1677 to 2262 | any time |
//! | `date_bin` | is NULL there | any time |
//! | `date_part`, `date_trunc`, `to_char` | know no calendar but SQL's | rules replace calls for numbers that [count time](super::counted_times) |
//! | `array_agg`, `nth_value` | lose the metadata of their argument | keep it, which makes the numbers times; `nth_value` is never reversed |
//!
//! Each of ours wraps the function of DataFusion, and has its name, types and states. So plans look the same, and states of
//! either merge with those of the other, but for `corr` by group.
//!
//! | file | contents |
//! |---|---|
//! | `own_aggregate` | the wrapper of aggregates |
//! | `sliding_rows` | frames that move over rows, by the folds of windows along an axis |
//! | `pairs`, `pairs_of_groups` | functions of two arguments, in frames and by group |
//! | `extremes` | `min` and `max` of floats |
//! | `one_nan` | NaN of one sign |
//! | `own_scalar` | the wrapper of scalar functions |
//! | `date_trunc`, `date_bin`, `calendar` | times outside the range of 64-bit nanoseconds |

mod calendar;
mod date_bin;
mod date_trunc;
mod extremes;
mod one_nan;
mod own_aggregate;
mod own_scalar;
mod pairs;
mod pairs_of_groups;
mod sliding_rows;

pub(in crate::exec) use own_aggregate::OwnAggregate;
pub(in crate::exec) use own_scalar::OwnScalar;
pub(in crate::exec) use pairs::PairFunction;
pub(in crate::exec) use sliding_rows::{SlidingFunction, SlidingRows};
