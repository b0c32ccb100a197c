//! A tree over points of the unit sphere that finds the nearest one.
//!
//! It is an array: the middle element divides the others along the axis in which they spread most, and
//! both halves are trees again. Small ranges are searched from one end to the other. No node has
//! pointers, so a tree over n cells takes 32 n bytes.

/// Ranges up to this length are not divided.
const LEAF: usize = 8;

/// A point, and the number of its cell.
#[derive(Debug, Clone, Copy)]
struct Node {
    at: [f64; 3],
    cell: u32,
    /// The axis that divides the range of which this is the middle.
    axis: u8,
}

#[derive(Debug, Clone)]
pub(super) struct Tree(Vec<Node>);

impl Tree {
    /// Returns the tree of unit vectors with their cells.
    pub(super) fn new(points: impl Iterator<Item = ([f64; 3], u32)>) -> Self {
        let mut nodes: Vec<Node> = points.map(|(at, cell)| Node { at, cell, axis: 0 }).collect();
        divide(&mut nodes);
        Self(nodes)
    }

    /// Returns the cell nearest to a unit vector, and the square of the chord to it. Of equally near cells,
    /// the one with the least number wins.
    pub(super) fn nearest(&self, to: [f64; 3]) -> Option<(u32, f64)> {
        let mut best = (u32::MAX, f64::INFINITY);
        search(&self.0, to, &mut best);
        (best.1 < f64::INFINITY).then_some(best)
    }
}

fn divide(nodes: &mut [Node]) {
    if nodes.len() <= LEAF {
        return;
    }
    let spread = |axis: usize| {
        let values = || nodes.iter().map(|it| it.at[axis]);
        values().fold(f64::NEG_INFINITY, f64::max) - values().fold(f64::INFINITY, f64::min)
    };
    let axis = (0..3).max_by(|a, b| spread(*a).total_cmp(&spread(*b))).unwrap_or(0);
    let middle = nodes.len() / 2;
    let (low, node, high) =
        nodes.select_nth_unstable_by(middle, |a, b| a.at[axis].total_cmp(&b.at[axis]));
    node.axis = axis as u8;
    divide(low);
    divide(high);
}

fn search(nodes: &[Node], to: [f64; 3], best: &mut (u32, f64)) {
    if nodes.len() <= LEAF {
        nodes.iter().for_each(|it| compare(it, to, best));
        return;
    }
    let middle = nodes.len() / 2;
    let node = &nodes[middle];
    let axis = usize::from(node.axis);
    let beyond = to[axis] - node.at[axis];
    let (low, high) = (&nodes[..middle], &nodes[middle + 1..]);
    let (near, far) = if beyond < 0.0 { (low, high) } else { (high, low) };
    search(near, to, best);
    if beyond * beyond <= best.1 {
        compare(node, to, best);
        search(far, to, best);
    }
}

fn compare(node: &Node, to: [f64; 3], best: &mut (u32, f64)) {
    let square = distance(node.at, to);
    if square < best.1 || square == best.1 && node.cell < best.0 {
        *best = (node.cell, square);
    }
}

/// Returns the square of the distance of two points.
fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    let [x, y, z] = [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
    x * x + y * y + z * z
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sphere::unit_vector;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    #[test]
    fn equals_a_search_of_all() {
        let mut random = StdRng::seed_from_u64(5);
        for count in [0, 1, 7, 8, 9, 100, 3000] {
            // Coarse coordinates, so that many points are the same.
            let mut place = || {
                unit_vector(
                    f64::from(random.random_range(-18..18)) * 5.0,
                    f64::from(random.random_range(-36..36)) * 5.0,
                )
            };
            let points: Vec<_> = (0..count).map(|it| (place(), it)).collect();
            let tree = Tree::new(points.iter().copied());
            for _ in 0..300 {
                let to = place();
                let all = points.iter().map(|(at, cell)| (distance(*at, to), *cell));
                let least = all.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                assert_eq!(tree.nearest(to), least.map(|it| (it.1, it.0)));
            }
        }
    }
}
