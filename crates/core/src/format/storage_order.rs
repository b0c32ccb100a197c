//! The order of the cells in a stored tile.

/// The order of the cells in a tile, given by the axes from the slowest to the fastest.
///
/// ```
/// use gridfusion_core::format::StorageOrder;
///
/// // (time, lat, lon), stored as (lon, time, lat): latitude varies fastest.
/// let order = StorageOrder::permuted(vec![2, 0, 1]).unwrap();
/// assert_eq!(order.fastest_first(3).unwrap(), [1, 0, 2]);
/// assert_eq!(StorageOrder::permuted(vec![0, 1, 2]), Some(StorageOrder::RowMajor));
/// assert_eq!(StorageOrder::permuted(vec![2, 0, 2]), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum StorageOrder {
    /// The last axis varies fastest, as in a chunk.
    #[default]
    RowMajor,
    /// The first axis varies fastest.
    ColumnMajor,
    /// The axes of the array in the order in which they are stored, the slowest first.
    Permuted(Vec<usize>),
}

impl StorageOrder {
    /// Returns the order of a tile that stores the array's axes in this order, the slowest first. `None`
    /// unless `axes` holds each axis once.
    pub fn permuted(axes: Vec<usize>) -> Option<Self> {
        if !is_permutation(&axes) {
            return None;
        }
        let rank = axes.len();
        Some(if axes.iter().copied().eq(0..rank) {
            Self::RowMajor
        } else if axes.iter().copied().eq((0..rank).rev()) {
            Self::ColumnMajor
        } else {
            Self::Permuted(axes)
        })
    }

    /// Returns the axes of a tile of this rank, the fastest first; `None` if the order has another rank.
    pub fn fastest_first(&self, rank: usize) -> Option<Vec<usize>> {
        match self {
            Self::RowMajor => Some((0..rank).rev().collect()),
            Self::ColumnMajor => Some((0..rank).collect()),
            Self::Permuted(axes) => {
                let fits = axes.len() == rank && is_permutation(axes);
                fits.then(|| axes.iter().rev().copied().collect())
            }
        }
    }
}

fn is_permutation(axes: &[usize]) -> bool {
    (0..axes.len()).all(|axis| axes.contains(&axis))
}
