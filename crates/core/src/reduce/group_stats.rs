//! The requested statistics of groups, and their values.

use std::sync::Arc;

use arrow::array::ArrayRef;

use super::group_cells::GroupCells;
use super::moments::Moments;
use super::pair_sums::Pairs;
use super::pairs::PairStates;
use super::value_range::ValueRange;
use super::weighted::{CellWeights, WeightedStates};

/// A member of a reducer: the statistics of the values that meet a condition, possibly with weights.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestedMember {
    /// The statistics.
    pub requested: RequestedStats,
    /// The condition: the interval of the values that count. NULL never counts.
    pub range: ValueRange,
    /// The numbers of the [tests](super::CellTest) of other variables that the cells must pass, too.
    pub tests: Vec<usize>,
    /// The weights of the cells, if weighted sums are requested.
    pub weights: Option<Arc<CellWeights>>,
    /// The numbers of the labels, if pairs of them and the values are requested. NaN is no number.
    pub numbers: Option<Arc<CellWeights>>,
    /// The cells whose numbers are requested.
    pub cells: RequestedCells,
}

impl RequestedMember {
    /// Whether a reducer takes [repeated tiles](crate::tile::Tile::is_repeated) for it: all cells of a group count alike.
    pub fn takes_repeated(&self) -> bool {
        self.tests.is_empty()
            && self.weights.is_none()
            && self.numbers.is_none()
            && !self.cells.any()
    }

    /// Returns the bytes of state that a group needs.
    pub fn bytes_per_group(&self) -> u64 {
        let weights = if self.weights.is_some() { 16 } else { 0 };
        self.requested.bytes_per_group() + weights + self.cells.bytes_per_group()
    }
}

/// The statistics that are requested of every group, besides the count of its values. At most one of the two
/// sums can be requested: each counts values in its own pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestedStats {
    /// The sum in doubles.
    pub sum: bool,
    /// The wrapping sum of integers.
    pub wide_sum: bool,
    /// The least value.
    pub min: bool,
    /// The greatest value.
    pub max: bool,
    /// The mean, and the sum of squared distances from it.
    pub spread: bool,
    /// The means and spreads of the pairs of a value and the number of its label.
    pub pairs: bool,
}

impl RequestedStats {
    /// Returns the statistics that either requests.
    pub fn or(self, other: Self) -> Self {
        Self {
            sum: self.sum | other.sum,
            wide_sum: self.wide_sum | other.wide_sum,
            min: self.min | other.min,
            max: self.max | other.max,
            spread: self.spread | other.spread,
            pairs: self.pairs | other.pairs,
        }
    }

    /// Returns the bytes of state that a group needs: words of 8 bytes. A spread has [`Moments`] of three words, and pairs.
    /// Extremes may take less.
    pub fn bytes_per_group(self) -> u64 {
        let words = |is_requested: bool, count: u64| if is_requested { 8 * count } else { 0 };
        8 + words(self.sum, 1)
            + words(self.wide_sum, 1)
            + words(self.min, 1)
            + words(self.max, 1)
            + words(self.spread, 3 + PairStates::WORDS)
            + words(self.pairs, PairStates::WORDS)
    }
}

/// The cells that are requested of every group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestedCells {
    /// The first cell with the least value.
    pub least: bool,
    /// The first cell with the greatest value.
    pub greatest: bool,
    /// The first cell that is NULL; not together with a condition on a value.
    pub null: bool,
}

impl RequestedCells {
    /// Returns the cells that either requests.
    pub fn or(self, other: Self) -> Self {
        Self {
            least: self.least | other.least,
            greatest: self.greatest | other.greatest,
            null: self.null | other.null,
        }
    }

    /// Whether any cell is requested.
    pub fn any(self) -> bool {
        self.least | self.greatest | self.null
    }

    /// Returns the bytes of state that a group needs: a number and a cell per extreme, and a cell for NULL.
    pub fn bytes_per_group(self) -> u64 {
        16 * (u64::from(self.least) + u64::from(self.greatest)) + 8 * u64::from(self.null)
    }
}

/// The statistics of all groups: arrays with one element per place of the table. Statistics that are
/// not requested are absent.
#[derive(Debug, Clone, Default)]
pub struct GroupStats {
    /// The number of values that are neither NULL nor excluded by the predicate.
    pub counts: Vec<u64>,
    /// The sums of these values as doubles.
    pub sums: Option<Vec<f64>>,
    /// The sums of these values as integers: `Int64`, or `UInt64` for unsigned elements.
    pub wide_sums: Option<ArrayRef>,
    /// The least values, in the column's type; meaningless where the count is 0.
    pub mins: Option<ArrayRef>,
    /// The greatest values, in the column's type; meaningless where the count is 0.
    pub maxs: Option<ArrayRef>,
    /// The means, and the sums of squared distances from them.
    pub spreads: Option<Vec<Moments>>,
    /// The sums of weight × value, and of the weights.
    pub weighted: Option<WeightedStates>,
    /// The pairs of a label's number (x) and a value (y).
    pub pairs: Option<Vec<Pairs>>,
    /// The cells with extremes.
    pub cells: Option<GroupCells>,
}
