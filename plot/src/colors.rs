//! The colours of values and of lines.

use crate::scene::{Color, INK};
use crate::settings::ColorMap;

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

/// The colour map Cividis, which is nearly the same for all kinds of colour vision. Its authors gave it to the public domain.
const CIVIDIS: [Color; 10] = [
    Color(0x00, 0x22, 0x4e),
    Color(0x12, 0x35, 0x70),
    Color(0x3b, 0x49, 0x6c),
    Color(0x57, 0x5d, 0x6d),
    Color(0x70, 0x71, 0x73),
    Color(0x8a, 0x86, 0x78),
    Color(0xa5, 0x9c, 0x74),
    Color(0xc3, 0xb3, 0x69),
    Color(0xe1, 0xcc, 0x55),
    Color(0xfe, 0xe8, 0x38),
];

/// The colour map Magma, which is in the public domain like Viridis.
const MAGMA: [Color; 10] = [
    Color(0x00, 0x00, 0x04),
    Color(0x18, 0x0f, 0x3d),
    Color(0x44, 0x0f, 0x76),
    Color(0x72, 0x1f, 0x81),
    Color(0x9e, 0x2f, 0x7f),
    Color(0xcd, 0x40, 0x71),
    Color(0xf1, 0x60, 0x5d),
    Color(0xfd, 0x96, 0x68),
    Color(0xfe, 0xca, 0x8d),
    Color(0xfc, 0xfd, 0xbf),
];

const GRAYS: [Color; 2] = [Color(250, 250, 250), Color(20, 20, 22)];

/// The diverging map that Moreland computed ("Diverging Color Maps for Scientific Visualization", 2009).
const DIVERGING: [Color; 9] = [
    Color(59, 76, 192),
    Color(98, 130, 234),
    Color(141, 176, 254),
    Color(184, 208, 249),
    Color(221, 221, 221),
    Color(245, 196, 173),
    Color(244, 154, 123),
    Color(222, 96, 77),
    Color(180, 4, 38),
];

impl ColorMap {
    /// Returns the colour at a share of the way from the first colour to the last.
    pub(crate) fn at(self, share: f64) -> Color {
        let colors: &[Color] = match self {
            Self::Viridis | Self::Categories => &VIRIDIS,
            Self::Cividis => &CIVIDIS,
            Self::Magma => &MAGMA,
            Self::Grays => &GRAYS,
            Self::Diverging => &DIVERGING,
        };
        let last = colors.len() - 1;
        let place = share.clamp(0.0, 1.0) * last as f64;
        let below = (place as usize).min(last - 1);
        let (from, to, part) = (colors[below], colors[below + 1], place - below as f64);
        let mix =
            |from: u8, to: u8| (f64::from(from) + (f64::from(to) - f64::from(from)) * part) as u8;
        Color(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
    }
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
        _ => ColorMap::Viridis.at(number as f64 / count.max(2) as f64 * 0.95),
    }
}

/// Returns the colour of lines and text that contrasts most with a colour behind them.
pub(crate) fn over(color: Color) -> Color {
    const LIGHT: Color = Color(250, 250, 250);
    let [ink, light, behind] = [INK, LIGHT, color].map(luminance);
    let contrast = |one: f64, other: f64| (one.max(other) + 0.05) / (one.min(other) + 0.05);
    if contrast(ink, behind) > contrast(light, behind) { INK } else { LIGHT }
}

/// Returns the relative luminance of a colour, as the guidelines for accessible pages (WCAG 2) define it.
fn luminance(Color(red, green, blue): Color) -> f64 {
    let linear = |channel: u8| {
        let share = f64::from(channel) / 255.0;
        if share <= 0.040_45 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn light(color: Color) -> f64 {
        0.2126 * f64::from(color.0) + 0.7152 * f64::from(color.1) + 0.0722 * f64::from(color.2)
    }

    #[test]
    fn values_get_lighter() {
        let viridis = |share| ColorMap::Viridis.at(share);
        assert_eq!((viridis(0.0), viridis(1.0)), (VIRIDIS[0], VIRIDIS[9]));
        assert_eq!((viridis(-3.0), viridis(f64::INFINITY)), (VIRIDIS[0], VIRIDIS[9]));
        for map in [ColorMap::Viridis, ColorMap::Cividis, ColorMap::Magma] {
            let lights: Vec<f64> = (0..=90).map(|at| light(map.at(f64::from(at) / 90.0))).collect();
            assert!(lights.windows(2).all(|pair| pair[0] < pair[1] + 1.0), "{map:?}: {lights:?}");
        }
    }

    #[test]
    fn both_halves_of_a_diverging_map_get_darker_alike() {
        for at in 0..=20 {
            let share = f64::from(at) / 40.0;
            let (low, high) =
                (ColorMap::Diverging.at(0.5 - share), ColorMap::Diverging.at(0.5 + share));
            assert!((light(low) - light(high)).abs() < 50.0, "{share}");
            assert!(at == 0 || (low.2 > low.0 && high.0 > high.2), "{share}");
        }
    }

    #[test]
    fn lines_differ() {
        for count in [1, 7, 8, 20] {
            let colors: Vec<Color> = (0..count).map(|number| of_line(number, count)).collect();
            let differ = |(at, color): (usize, &Color)| !colors[..at].contains(color);
            assert!(colors.iter().enumerate().all(differ), "{count}");
        }
    }

    #[test]
    fn lines_over_any_colour_are_seen() {
        for map in [
            ColorMap::Viridis,
            ColorMap::Cividis,
            ColorMap::Magma,
            ColorMap::Grays,
            ColorMap::Diverging,
        ] {
            for at in 0..=100 {
                let behind = map.at(f64::from(at) / 100.0);
                let [one, other] = [over(behind), behind].map(|it| luminance(it) + 0.05);
                assert!(one.max(other) / one.min(other) > 3.5, "{map:?} {at}");
            }
        }
        assert!((luminance(Color(255, 255, 255)) - 1.0).abs() < 1e-9);
    }
}
