//! Paints a scene as SVG or PNG.

use plotters::backend::{BitMapBackend, DrawingBackend, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, FontTransform, TextStyle};

use crate::error::{Error, Result};
use crate::polygon;
use crate::scene::{Anchor, Clip, Color, Mark, Scene, WHITE};
use crate::stroke::{PixelRun, runs};

/// A PNG is painted larger by this factor and then shrunk, so that edges are smooth.
const OVERSAMPLING: u32 = 2;

/// Paints a scene as SVG.
pub(crate) fn svg(scene: &Scene) -> Result<String> {
    let mut text = String::new();
    let mut backend = SVGBackend::with_string(&mut text, (scene.width, scene.height));
    let correction = BackendCorrection { factor: 1.0, drop: 0.0, strokes: false };
    paint(scene, &mut backend, correction)?;
    backend.present().map_err(Error::paint)?;
    drop(backend);
    Ok(with_details(&text, &scene.marks))
}

/// Gives the lines of an SVG round joins, and clips them. Gives polygons sharp edges, so that neighbours have no gap. plotters writes
/// none of these.
fn with_details(svg: &str, marks: &[Mark]) -> String {
    const LINE: &str = "<polyline ";
    const POLYGON: &str = "<polygon ";
    // Texts have no `<` of their own: it is escaped. So each part begins with a line.
    let mut parts = svg.split(LINE);
    let head = parts.next().unwrap_or_default();
    let clips = marks.iter().filter_map(|mark| match mark {
        Mark::Path { clip, .. } => Some(*clip),
        _ => None,
    });
    let (mut areas, mut lines) = (vec![], String::new());
    for (part, clip) in parts.zip(clips) {
        let number = areas.iter().position(|area| *area == clip).unwrap_or(areas.len());
        if number == areas.len() {
            areas.push(clip);
            let Clip { left, right, top, bottom } = clip;
            let (width, height) = (right - left, bottom - top);
            lines += &format!(
                "<clipPath id=\"{}\"><rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\"/></clipPath>\n",
                name(number)
            );
        }
        lines +=
            &format!("{LINE}clip-path=\"url(#{})\" stroke-linejoin=\"round\" {part}", name(number));
    }
    let whole = format!("{head}{lines}");
    whole.replace(POLYGON, &format!("{POLYGON}shape-rendering=\"crispEdges\" "))
}

/// Returns the name of a clip in an SVG.
fn name(number: usize) -> String {
    if number == 0 { "frame".to_owned() } else { format!("frame{number}") }
}

/// Paints a scene as PNG.
pub(crate) fn png(scene: &Scene) -> Result<Vec<u8>> {
    let large = pixels(scene)?;
    let mut small = Vec::with_capacity(scene.width as usize * scene.height as usize * 3);
    for y in 0..scene.height {
        for x in 0..scene.width {
            let Color(red, green, blue) = mean(&large, scene.width * OVERSAMPLING, (x, y));
            small.extend([red, green, blue]);
        }
    }
    encode(&small, scene.width, scene.height).map_err(Error::paint)
}

/// Encodes pixels of three bytes, row by row, as PNG.
fn encode(pixels: &[u8], width: u32, height: u32) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = vec![];
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    encoder.set_adaptive_filter(png::AdaptiveFilterType::Adaptive);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(bytes)
}

/// Paints the enlarged picture, with three bytes per pixel.
fn pixels(scene: &Scene) -> Result<Vec<u8>> {
    let (width, height) = (scene.width * OVERSAMPLING, scene.height * OVERSAMPLING);
    let mut large = vec![0; width as usize * height as usize * 3];
    let mut backend = BitMapBackend::with_buffer(&mut large, (width, height));
    // The bitmap backend of plotters draws text too high by this share of its size.
    let correction =
        BackendCorrection { factor: f64::from(OVERSAMPLING), drop: 0.2, strokes: true };
    paint(scene, &mut backend, correction)?;
    backend.present().map_err(Error::paint)?;
    drop(backend);
    Ok(large)
}

/// Returns the mean of the pixels that become the pixel at `x` and `y`.
fn mean(large: &[u8], width: u32, (x, y): (u32, u32)) -> Color {
    let mut sum = [0_u32; 3];
    for row in y * OVERSAMPLING..(y + 1) * OVERSAMPLING {
        let start = (row as usize * width as usize + (x * OVERSAMPLING) as usize) * 3;
        let pixels = large.get(start..start + 3 * OVERSAMPLING as usize).unwrap_or_default();
        for pixel in pixels.chunks_exact(3) {
            for (sum, value) in sum.iter_mut().zip(pixel) {
                *sum += u32::from(*value);
            }
        }
    }
    let [red, green, blue] = sum.map(|sum| (sum / (OVERSAMPLING * OVERSAMPLING)) as u8);
    Color(red, green, blue)
}

/// The corrections that a backend needs.
#[derive(Debug, Clone, Copy)]
struct BackendCorrection {
    /// The factor by which the picture is enlarged.
    factor: f64,
    /// How far text must move down to its right position, as a share of its size.
    drop: f64,
    /// Whether lines are painted as pixels, because the backend's own lines have mitres without limit.
    strokes: bool,
}

fn paint<B: DrawingBackend>(
    scene: &Scene,
    backend: &mut B,
    correction: BackendCorrection,
) -> Result<()> {
    let BackendCorrection { factor, drop, strokes } = correction;
    let size = |length: f64| (length * factor).round();
    let pixel = |(x, y): (f64, f64)| (size(x) as i32, size(y) as i32);
    let all = (f64::from(scene.width), f64::from(scene.height));
    let ground = backend.draw_rect((0, 0), pixel(all), &WHITE.filled(), true);
    ground.map_err(Error::paint)?;
    for mark in &scene.marks {
        let painted = match mark {
            Mark::Rect { x, y, color } => {
                let corner = |x: i32, y: i32| pixel((f64::from(x), f64::from(y)));
                backend.draw_rect(corner(x.0, y.0), corner(x.1, y.1), &color.filled(), true)
            }
            Mark::Path { points, width, color, clip } if strokes => {
                let points = points.iter().map(|(x, y)| (x * factor, y * factor));
                let clip = clip.enlarged(factor);
                stroke(backend, points, (width * factor).max(1.0), *color, clip)?;
                continue;
            }
            Mark::Path { points, width, color, .. } => {
                let style = color.stroke_width(size(*width).max(1.0) as u32);
                backend.draw_path(points.iter().copied().map(pixel), &style)
            }
            Mark::Polygon { points, color } if strokes => {
                let points: Vec<_> = points.iter().map(|(x, y)| (x * factor, y * factor)).collect();
                fill(backend, polygon::runs(&points), *color)?;
                continue;
            }
            Mark::Polygon { points, color } => {
                backend.fill_polygon(points.iter().copied().map(pixel), &color.filled())
            }
            Mark::Dot { at, radius, color } => {
                backend.draw_circle(pixel(*at), size(*radius) as u32, &color.filled(), true)
            }
            Mark::Text { text, at, font, anchor, color } => {
                let turn =
                    if font.is_upright { FontTransform::Rotate270 } else { FontTransform::None };
                let drop = if *anchor == Anchor::Top { 0.0 } else { drop * font.size };
                let at = if font.is_upright { (at.0 + drop, at.1) } else { (at.0, at.1 + drop) };
                let font = font.desc(factor).transform(turn);
                let style = TextStyle::from(font).color(color).pos(position(*anchor));
                backend.draw_text(text, &style, pixel(at))
            }
        };
        painted.map_err(Error::paint)?;
    }
    Ok(())
}

/// Paints a line as pixels, with round joins and ends.
fn stroke<B: DrawingBackend>(
    backend: &mut B,
    points: impl Iterator<Item = (f64, f64)> + Clone,
    width: f64,
    color: Color,
    clip: Clip,
) -> Result<()> {
    for (from, to) in points.clone().zip(points.skip(1)) {
        fill(backend, runs(from, to, width, clip), color)?;
    }
    Ok(())
}

/// Paints runs of pixels.
fn fill<B: DrawingBackend>(
    backend: &mut B,
    runs: impl Iterator<Item = PixelRun>,
    color: Color,
) -> Result<()> {
    for run in runs {
        let (from, to) = ((run.x, run.top), (run.x + 1, run.bottom));
        backend.draw_rect(from, to, &color.filled(), true).map_err(Error::paint)?;
    }
    Ok(())
}

fn position(anchor: Anchor) -> Pos {
    match anchor {
        Anchor::Middle => Pos::new(HPos::Center, VPos::Center),
        Anchor::Left => Pos::new(HPos::Left, VPos::Center),
        Anchor::Right => Pos::new(HPos::Right, VPos::Center),
        Anchor::Top => Pos::new(HPos::Center, VPos::Top),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Font, load_fonts};

    const RED: Color = Color(255, 0, 0);

    fn scene() -> Scene {
        load_fonts().unwrap();
        let mut scene = Scene::new(40, 30, 1.0);
        scene.rect((10.0, 20.0), (5.0, 15.0), RED);
        scene.rect((20.0, 21.0), (5.0, 15.0), Color(0, 0, 255));
        let all = Clip { left: 0.0, right: 40.0, top: 0.0, bottom: 30.0 };
        scene.path(vec![(0.0, 29.0), (40.0, 29.0)], 1.0, RED, all);
        scene
    }

    #[test]
    fn pixels_are_where_they_should_be() {
        let large = pixels(&scene()).unwrap();
        assert_eq!(large.len(), 80 * 60 * 3);
        let at = |x: u32, y: u32| mean(&large, 80, (x, y));
        for (x, y, color) in [
            (9, 5, WHITE),
            (10, 5, RED),
            (19, 14, RED),
            (20, 14, Color(0, 0, 255)),
            (21, 14, WHITE),
            (15, 4, WHITE),
            (15, 15, WHITE),
        ] {
            assert_eq!(at(x, y), color, "{x}, {y}");
        }
        assert_ne!(at(20, 28), at(20, 27));
    }

    #[test]
    fn text_is_centred() {
        let mut scene = scene();
        scene.marks.clear();
        scene.text("EEE", (20.0, 15.0), Font::with_size(14.0), Anchor::Middle);
        let large = pixels(&scene).unwrap();
        let dark: Vec<(u32, u32)> = (0..30)
            .flat_map(|y| (0..40).map(move |x| (x, y)))
            .filter(|at| mean(&large, 80, *at).0 < 128)
            .collect();
        let middle = |of: fn(&(u32, u32)) -> u32| {
            let (low, high) =
                (dark.iter().map(of).min().unwrap(), dark.iter().map(of).max().unwrap());
            f64::from(low + high) / 2.0
        };
        assert!((middle(|at| at.0) - 20.0).abs() <= 2.0, "{dark:?}");
        assert!((middle(|at| at.1) - 15.0).abs() <= 1.5, "{dark:?}");
    }

    #[test]
    fn text_is_escaped() {
        let mut scene = scene();
        scene.text("a<b & c\u{202e}\u{7}", (20.0, 15.0), Font::with_size(10.0), Anchor::Left);
        let svg = svg(&scene).unwrap();
        assert!(svg.contains(r"a&lt;b &amp; c\u{202e}\u{7}"), "{svg}");
        assert!(svg.contains(r#"width="40" height="30""#), "{svg}");
    }
}
