//! [`PairFunction`]: `corr`, `covar` and `regr_…` of pairs, such as those of a frame that moves.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Float64Array, UInt64Array};
use datafusion::common::{ScalarValue, internal_err};
use datafusion::error::Result;

use super::sliding_rows::SlidingFunction;
use crate::reduce::{Fold, Pairs};

/// The union of pairs, by Chan's formula.
pub(in crate::exec) struct Union;

impl Fold for Union {
    type Item = Pairs;
    const IDENTITY: Pairs = Pairs::NONE;

    fn combine(earlier: Pairs, later: Pairs) -> Pairs {
        earlier.and(later)
    }
}

/// A function of pairs. The first argument of `corr` and `covar` is x, and that of `regr_…` is y.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::exec) enum PairFunction {
    Correlation,
    Covariance { is_sample: bool },
    Slope,
    Intercept,
    R2,
    AverageX,
    AverageY,
    Sxx,
    Syy,
    Sxy,
}

impl PairFunction {
    /// Returns the function of a name; `None` for other names.
    pub(in crate::exec) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "corr" => Self::Correlation,
            "covar_samp" => Self::Covariance { is_sample: true },
            "covar_pop" => Self::Covariance { is_sample: false },
            "regr_slope" => Self::Slope,
            "regr_intercept" => Self::Intercept,
            "regr_r2" => Self::R2,
            "regr_avgx" => Self::AverageX,
            "regr_avgy" => Self::AverageY,
            "regr_sxx" => Self::Sxx,
            "regr_syy" => Self::Syy,
            "regr_sxy" => Self::Sxy,
            _ => return None,
        })
    }

    /// Returns the value of pairs, by the rules of DataFusion; `None` for NULL.
    pub(in crate::exec) fn of(self, pairs: &Pairs) -> Option<f64> {
        let Pairs { count, mean_x, mean_y, xx, yy, xy } = *pairs;
        let n = count as f64;
        let slope = xy / xx;
        let is_line = count > 1 && xx != 0.0;
        match self {
            Self::Correlation => match (mean_x.is_nan(), mean_y.is_nan()) {
                (true, true) => Some(f64::NAN),
                (false, false) if is_line && yy != 0.0 => {
                    // By roots first: the product of both spreads may overflow.
                    Some(xy / n / (xx / n).sqrt() / (yy / n).sqrt())
                }
                _ => None,
            },
            Self::Covariance { is_sample: true } => (count > 1).then(|| xy / (n - 1.0)),
            Self::Covariance { is_sample: false } => (count > 0).then(|| xy / n),
            Self::Slope => is_line.then_some(slope),
            Self::Intercept => is_line.then_some(mean_y - slope * mean_x),
            Self::R2 => (is_line && yy != 0.0).then(|| (xy / xx) * (xy / yy)),
            Self::AverageX => (count > 0).then_some(mean_x),
            Self::AverageY => (count > 0).then_some(mean_y),
            Self::Sxx => (count > 0).then_some(xx),
            Self::Syy => (count > 0).then_some(yy),
            Self::Sxy => (count > 0).then_some(xy),
        }
    }

    /// Returns the column of the values of pairs.
    pub(in crate::exec) fn values(self, pairs: impl Iterator<Item = Pairs>) -> ArrayRef {
        Arc::new(pairs.map(|pairs| self.of(&pairs)).collect::<Float64Array>())
    }

    /// Returns the columns of a state, in the form of DataFusion's accumulator of all rows.
    pub(in crate::exec) fn state(self, pairs: &[Pairs]) -> Vec<ArrayRef> {
        let column = |part: fn(&Pairs) -> f64| -> ArrayRef {
            Arc::new(Float64Array::from_iter_values(pairs.iter().map(part)))
        };
        let counts = UInt64Array::from_iter_values(pairs.iter().map(|pairs| pairs.count));
        let (mean_x, mean_y) = (column(|it| it.mean_x), column(|it| it.mean_y));
        let (xx, yy, xy) = (column(|it| it.xx), column(|it| it.yy), column(|it| it.xy));
        let numbers = match self {
            Self::Correlation => vec![mean_x, xx, mean_y, yy, xy],
            Self::Covariance { .. } => vec![mean_x, mean_y, xy],
            _ => vec![mean_x, mean_y, xx, yy, xy],
        };
        std::iter::once(Arc::new(counts) as ArrayRef).chain(numbers).collect()
    }

    /// Returns the pair of each row; none where an argument is NULL.
    pub(super) fn rows(self, arguments: &[ArrayRef]) -> Result<Vec<Pairs>> {
        let [first, second] = arguments else {
            return internal_err!("a function of pairs has two arguments");
        };
        let numbers =
            |argument: &Arc<dyn Array>| argument.as_any().downcast_ref::<Float64Array>().cloned();
        let (Some(first), Some(second)) = (numbers(first), numbers(second)) else {
            return internal_err!("a function of pairs has arguments of type Float64");
        };
        let pair = |(first, second): (Option<f64>, Option<f64>)| match (first, second) {
            (Some(y), Some(x)) if self.begins_with_y() => Pairs::from_pair(x, y),
            (Some(x), Some(y)) => Pairs::from_pair(x, y),
            _ => Pairs::NONE,
        };
        Ok(first.iter().zip(&second).map(pair).collect())
    }

    /// Whether the first argument is y.
    pub(in crate::exec) fn begins_with_y(self) -> bool {
        !matches!(self, Self::Correlation | Self::Covariance { .. })
    }
}

impl SlidingFunction for PairFunction {
    type Fold = Union;

    fn cells(&self, arguments: &[ArrayRef]) -> Result<Vec<Pairs>> {
        self.rows(arguments)
    }

    fn value(&self, pairs: Pairs) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(self.of(&pairs)))
    }
}
