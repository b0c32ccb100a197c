//! The colours of values and of lines.

use crate::scene::Color;

/// The colour map Viridis: brighter means larger, also for the colour-blind and in greyscale.
const VIRIDIS: [Color; 10] = [
    Color(0x44, 0x01, 0x54),
    Color(0x48, 0x28, 0x78),
    Color(0x3e, 0x49, 0x89),
    Color(0x31, 0x68, 0x8e),
    Color(0x26, 0x82, 0x8e),
    Color(0x1f, 0x9e, 0x89),
    Color(0x35, 0xb7, 0x79),
    Color(0x6e, 0xce, 0x58),
    Color(0xb5, 0xde, 0x2b),
    Color(0xfd, 0xe7, 0x25),
];

/// Returns the colour of a value, given as its share of the way from the least value to the greatest.
pub(crate) fn of_value(share: f64) -> Color {
    let last = VIRIDIS.len() - 1;
    let place = share.clamp(0.0, 1.0) * last as f64;
    let below = (place as usize).min(last - 1);
    let (from, to, part) = (VIRIDIS[below], VIRIDIS[below + 1], place - below as f64);
    let mix = |from: u8, to: u8| (f64::from(from) + (f64::from(to) - f64::from(from)) * part) as u8;
    Color(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

/// The colours of lines, which the colour-blind can distinguish too (Okabe and Ito).
const LINES: [Color; 7] = [
    Color(0, 114, 178),
    Color(213, 94, 0),
    Color(0, 158, 115),
    Color(204, 121, 167),
    Color(230, 159, 0),
    Color(86, 180, 233),
    Color(90, 90, 96),
];

/// Returns the colour of line `number` of `count` lines.
pub(crate) fn of_line(number: usize, count: usize) -> Color {
    match LINES.get(number) {
        Some(color) if count <= LINES.len() => *color,
        // More lines than colours: takes shades instead. The lightest would be invisible on white.
        _ => of_value(number as f64 / count.max(2) as f64 * 0.95),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_get_lighter() {
        assert_eq!((of_value(0.0), of_value(1.0)), (VIRIDIS[0], VIRIDIS[9]));
        assert_eq!((of_value(-3.0), of_value(f64::INFINITY)), (VIRIDIS[0], VIRIDIS[9]));
        let light = |color: Color| {
            0.2126 * f64::from(color.0) + 0.7152 * f64::from(color.1) + 0.0722 * f64::from(color.2)
        };
        let lights: Vec<f64> = (0..=90).map(|at| light(of_value(f64::from(at) / 90.0))).collect();
        assert!(lights.windows(2).all(|pair| pair[0] < pair[1] + 1.0), "{lights:?}");
    }

    #[test]
    fn lines_differ() {
        for count in [1, 7, 8, 20] {
            let colors: Vec<Color> = (0..count).map(|number| of_line(number, count)).collect();
            let differ = |(at, color): (usize, &Color)| !colors[..at].contains(color);
            assert!(colors.iter().enumerate().all(differ), "{count}");
        }
    }
}
