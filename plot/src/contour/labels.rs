//! Places for labels on lines, where they hide neither each other nor the lines of other levels.

use std::collections::HashMap;

use crate::scene::Clip;

/// The squares of a picture, each with the level whose lines pass it.
#[derive(Debug)]
pub(crate) struct LabelRoom {
    clip: Clip,
    /// The side of a square in pixels.
    side: f64,
    /// `None` for a square that has lines of several levels, or a label.
    levels: HashMap<(i32, i32), Option<usize>>,
}

impl LabelRoom {
    pub(crate) fn new(clip: Clip, scale: f64) -> Self {
        Self { clip, side: 4.0 * scale, levels: HashMap::new() }
    }

    /// Adds a line of a level.
    pub(crate) fn add(&mut self, level: usize, points: &[(f64, f64)]) {
        for point in self.along(points) {
            let square = self.levels.entry(self.square(point)).or_insert(Some(level));
            *square = square.filter(|it| *it == level);
        }
    }

    /// Returns the middle of a label of this size on a line of a level, and takes its room. `None` if the line is short, or has no
    /// room.
    pub(crate) fn take(
        &mut self,
        level: usize,
        points: &[(f64, f64)],
        size: (f64, f64),
    ) -> Option<(f64, f64)> {
        /// The most places that are tried on a line.
        const TRIED: usize = 200;
        /// The least length of a line, as a multiple of the width of its label.
        const LEAST: f64 = 3.0;
        let along = self.along(points);
        if (along.len() as f64) * self.side / 2.0 < LEAST * size.0 {
            return None;
        }
        let places: Vec<_> = along.iter().step_by(along.len().div_ceil(TRIED)).copied().collect();
        let middle = places.len() as f64 / 2.0;
        let free = places.into_iter().enumerate().filter_map(|(at, place)| {
            let covered = self.covered(place, size, level)?;
            Some((covered, -(at as f64 - middle).abs(), place))
        });
        // The flattest part of a line has most of it below the label; of equals, the one nearest to the middle.
        let best = free.max_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
        let (_, _, place) = best?;
        let taken: Vec<_> = self.squares(place, size).collect();
        self.levels.extend(taken.into_iter().map(|square| (square, None)));
        Some(place)
    }

    /// Returns the number of squares of a label that lines of the level pass. `None` if the label would hide other lines or
    /// leave the frame.
    fn covered(&self, (x, y): (f64, f64), size: (f64, f64), level: usize) -> Option<usize> {
        let Clip { left, right, top, bottom } = self.clip;
        let is_inside = x - size.0 / 2.0 > left
            && x + size.0 / 2.0 < right
            && y - size.1 / 2.0 > top
            && y + size.1 / 2.0 < bottom;
        let mut covered = 0;
        for square in self.squares((x, y), size) {
            match self.levels.get(&square) {
                None => {}
                Some(Some(other)) if *other == level => covered += 1,
                Some(_) => return None,
            }
        }
        is_inside.then_some(covered)
    }

    /// Returns the squares that a label covers.
    fn squares(
        &self,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
    ) -> impl Iterator<Item = (i32, i32)> + use<> {
        let (from, to) = (
            self.square((x - width / 2.0, y - height / 2.0)),
            self.square((x + width / 2.0, y + height / 2.0)),
        );
        (from.0..=to.0).flat_map(move |x| (from.1..=to.1).map(move |y| (x, y)))
    }

    fn square(&self, (x, y): (f64, f64)) -> (i32, i32) {
        ((x / self.side).floor() as i32, (y / self.side).floor() as i32)
    }

    /// Returns points of a line that are half of a square apart.
    fn along(&self, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let mut along = vec![];
        let mut left = 0.0;
        let step = self.side / 2.0;
        for pair in points.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            let length = (to.0 - from.0).hypot(to.1 - from.1);
            while left < length {
                let share = left / length;
                along.push((from.0 + share * (to.0 - from.0), from.1 + share * (to.1 - from.1)));
                left += step;
            }
            left -= length;
        }
        along
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIP: Clip = Clip { left: 0.0, right: 400.0, top: 0.0, bottom: 200.0 };

    #[test]
    fn labels_hide_no_other_line_and_no_label() {
        let mut room = LabelRoom::new(CLIP, 1.0);
        // A line that rises and then is flat, and another that is near its flat part on the left.
        let one = [(20.0, 190.0), (60.0, 100.0), (390.0, 100.0)];
        let other = [(60.0, 104.0), (250.0, 104.0), (250.0, 190.0)];
        room.add(0, &one);
        room.add(1, &other);
        let (first, y) = room.take(0, &one, (40.0, 12.0)).unwrap();
        assert!(y == 100.0 && first > 270.0 && first < 380.0, "{first}, {y}");
        let (x, y) = room.take(1, &other, (40.0, 12.0)).unwrap();
        assert!(x == 250.0 && y > 106.0, "{x}, {y}");
        // A second label of the line is beside the first.
        let again = room.take(0, &one, (40.0, 12.0));
        assert!(again.is_none_or(|(x, _)| (x - first).abs() >= 40.0), "{again:?}");
    }

    #[test]
    fn short_lines_and_those_at_the_frame_have_no_label() {
        let mut room = LabelRoom::new(CLIP, 1.0);
        assert_eq!(room.take(0, &[(100.0, 100.0), (180.0, 100.0)], (40.0, 12.0)), None);
        assert_eq!(room.take(0, &[(0.0, 3.0), (400.0, 3.0)], (40.0, 12.0)), None);
        assert_eq!(room.take(0, &[], (40.0, 12.0)), None);
        assert!(room.take(0, &[(0.0, 30.0), (400.0, 30.0)], (40.0, 12.0)).is_some());
    }
}
