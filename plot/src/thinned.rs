//! Fewer points for a line that has more of them than the picture has columns of pixels.

/// Returns the points of each column of pixels that show: the first, the least, the greatest and the last. Returns all points if
/// there are fewer than four per column between `left` and `right`. Points are in the order of x.
///
/// The picture of these is that of all points, because a column is as wide as a pixel.
pub(crate) fn thinned(points: Vec<(f64, f64)>, (left, right): (f64, f64)) -> Vec<(f64, f64)> {
    if points.len() as f64 <= 4.0 * (right - left) {
        return points;
    }
    let mut kept = vec![];
    for column in points.chunk_by(|one, next| one.0.floor() == next.0.floor()) {
        let by_value = |one: &&(f64, f64), next: &&(f64, f64)| one.1.total_cmp(&next.1);
        let place = |point: Option<&(f64, f64)>| {
            point.and_then(|point| column.iter().position(|it| std::ptr::eq(it, point)))
        };
        let least = place(column.iter().min_by(by_value));
        let greatest = place(column.iter().max_by(by_value));
        let mut places = [Some(0), least, greatest, column.len().checked_sub(1)];
        places.sort_unstable();
        let mut last = None;
        for at in places.into_iter().flatten() {
            if last.replace(at) != Some(at) {
                kept.push(column[at]);
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_of_each_column_stay() {
        let points: Vec<(f64, f64)> = (0..100_000_u64)
            .map(|at| (at as f64 / 10_000.0, ((at * 7919) % 10_007) as f64))
            .collect();
        let kept = thinned(points.clone(), (0.0, 10.0));
        assert!(kept.len() <= 40 && kept.is_sorted_by(|one, next| one.0 <= next.0));
        for column in 0..10 {
            let extremes = |points: &[(f64, f64)]| {
                let of = points.iter().filter(|(x, _)| x.floor() == f64::from(column));
                let mut values: Vec<f64> = of.map(|(_, y)| *y).collect();
                values.sort_by(f64::total_cmp);
                (values[0], values[values.len() - 1])
            };
            assert_eq!(extremes(&kept), extremes(&points), "{column}");
        }
        assert_eq!((kept[0], kept[kept.len() - 1]), (points[0], points[points.len() - 1]));
    }

    #[test]
    fn few_points_stay_as_they_are() {
        let points = vec![(1.0, 2.0), (1.1, 7.0), (1.2, 3.0), (1.3, 4.0), (1.4, 5.0)];
        assert_eq!(thinned(points.clone(), (0.0, 10.0)), points);
    }
}
