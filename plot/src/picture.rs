//! Draws columns as a picture, and encodes the picture as a file.

use crate::column::{Column, Columns};
use crate::error::{Result, refuse};
use crate::facet::{self, Panel};
use crate::frame::label_font;
use crate::heading::Heading;
use crate::layout::{Layout, Needs};
use crate::paint;
use crate::plan::Plan;
use crate::scene::{Anchor, Scene, load_fonts, scale_of};
use crate::spec::{Format, PlotKind, Spec};
use crate::title::printable;

/// A picture that is drawn, but not painted yet.
#[derive(Debug)]
pub struct Picture {
    scene: Scene,
    kind: PlotKind,
    values: usize,
}

impl Picture {
    /// Draws columns; the first column is x.
    ///
    /// # Errors
    /// `Usage` if a side is not in [`Spec::SIDES`] or the columns do not suit the kind of picture. Also
    /// if there are too many lines or panels, or nothing to draw.
    pub fn draw(columns: &Columns, spec: &Spec) -> Result<Self> {
        if [spec.width, spec.height].iter().any(|side| !Spec::SIDES.contains(side)) {
            let (least, most) = Spec::SIDES.into_inner();
            return refuse(format!("width and height must be {least} to {most} pixels"));
        }
        load_fonts()?;
        let panels = facet::split(&columns.columns, spec.facet)?;
        let is_shown = |(at, _): &(usize, &Column)| spec.facet != Some(*at);
        let whole = columns.columns.iter().enumerate().filter(is_shown);
        let whole: Vec<Column> = whole.map(|(_, column)| column.clone()).collect();
        let scale = scale_of(spec.width, spec.height);
        let plan = Plan::new(&whole, &panels, spec, scale)?;
        let title = spec.title.as_deref().map(printable);
        let heading = Heading::new(title.as_deref(), &plan.names, spec.width, scale);
        let needs = Needs {
            width: spec.width,
            height: spec.height,
            scale,
            above: heading.height(),
            right: plan.key.as_ref().map_or(0.0, |key| key.room(scale)),
            panels: panels.len(),
            aspect: plan.aspect,
            fits: (spec.fits_map && plan.aspect.is_some()).then(|| heading.least_width()),
        };
        let layout = Layout::new(&needs, &plan.x, &plan.y);
        let mut scene = Scene::new(layout.width, layout.height, scale);
        heading.draw(&mut scene);
        let mut values = 0;
        for (number, (frame, panel)) in layout.frames.iter().zip(&panels).enumerate() {
            values += plan.draw(&mut scene, frame, number, &panel.columns)?;
            draw_name(&mut scene, panel, frame.width(), frame.height().0);
        }
        layout.draw_titles(&mut scene, &plan.x, &plan.y);
        if let Some(key) = &plan.key {
            key.draw(&mut scene, layout.area);
        }
        Ok(Self { scene, kind: plan.kind(), values })
    }

    /// The width and the height in pixels.
    pub fn size(&self) -> (u32, u32) {
        (self.scene.width, self.scene.height)
    }

    /// The kind of picture, requested or chosen.
    pub fn kind(&self) -> PlotKind {
        self.kind
    }

    /// The number of values that are drawn: points, bars, or cells of a heat map.
    pub fn values(&self) -> usize {
        self.values
    }

    /// Returns the picture as the bytes of a file.
    ///
    /// # Errors
    /// `Paint` if the picture cannot be painted or encoded.
    pub fn encode(&self, format: Format) -> Result<Vec<u8>> {
        match format {
            Format::Png => paint::png(&self.scene),
            Format::Svg => paint::svg(&self.scene).map(String::into_bytes),
        }
    }
}

/// Draws the name of a panel above it.
fn draw_name(scene: &mut Scene, panel: &Panel, (left, right): (f64, f64), top: f64) {
    if let Some(name) = &panel.name {
        let scale = scene.scale;
        let at = (f64::midpoint(left, right), top - 11.0 * scale);
        scene.text(name, at, label_font(scale), Anchor::Middle);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray};
    use arrow::datatypes::Schema;

    use super::*;
    use crate::scene::Mark;
    use crate::{ColumnsBuilder, Error, Title};

    fn titles(schema: &Schema) -> Vec<Title> {
        let names = schema.fields().iter().map(|field| field.name().clone());
        names.map(Title::new).collect()
    }

    fn draw(rows: &RecordBatch, spec: &Spec) -> Result<Picture> {
        let schema = rows.schema();
        let mut columns = ColumnsBuilder::new(&schema, titles(&schema), Format::Svg)?;
        columns.append(rows)?;
        Picture::draw(&columns.finish()?, spec)
    }

    fn numbers<const N: usize>(values: [f64; N]) -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(values))
    }

    fn xy(x: [f64; 3]) -> RecordBatch {
        RecordBatch::try_from_iter([("x", numbers(x)), ("y", numbers([1.0, 2.0, 3.0]))]).unwrap()
    }

    #[test]
    fn columns_suggest_what_is_drawn() {
        let spec = Spec::new(300, 200);
        let kind = |rows: &RecordBatch| draw(rows, &spec).unwrap().kind();
        assert_eq!(kind(&xy([1.0, 2.0, 3.0])), PlotKind::Line);
        assert_eq!(kind(&xy([1.0, 2.0, 1.0])), PlotKind::Scatter);
        let names: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
        let named = RecordBatch::try_from_iter([("x", names), ("y", numbers([1.0, 2.0]))]);
        assert_eq!(kind(&named.unwrap()), PlotKind::Bars);
        let [x, y] = [[1.0, 1.0], [1.0, 2.0]].map(numbers);
        let cells = RecordBatch::try_from_iter([("x", x), ("y", y), ("v", numbers([1.0, 2.0]))]);
        assert_eq!(kind(&cells.unwrap()), PlotKind::Heatmap);
        let asked = Spec { kind: Some(PlotKind::Scatter), ..spec };
        assert_eq!(draw(&xy([1.0, 2.0, 3.0]), &asked).unwrap().kind(), PlotKind::Scatter);
        let asked = Spec { kind: Some(PlotKind::Heatmap), ..asked };
        assert!(matches!(draw(&xy([1.0, 2.0, 3.0]), &asked), Err(Error::Usage(_))));
    }

    /// Returns the first and last row of pixels in the colour of the line, and the first and last column.
    fn inked(png: &[u8]) -> [f64; 4] {
        let mut reader = png::Decoder::new(png).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size()];
        let info = reader.next_frame(&mut pixels).unwrap();
        let line = crate::colors::of_line(0, 1);
        let is_line = |pixel: &[u8]| {
            let apart = pixel.iter().zip([line.0, line.1, line.2]);
            apart.map(|(one, other)| one.abs_diff(other)).all(|it| it < 60)
        };
        let found: Vec<(f64, f64)> = pixels
            .chunks(info.width as usize * 3)
            .enumerate()
            .flat_map(|(y, row)| row.chunks(3).enumerate().map(move |(x, pixel)| (x, y, pixel)))
            .filter(|(.., pixel)| is_line(pixel))
            .map(|(x, y, _)| (x as f64, y as f64))
            .collect();
        let least = |of: fn(&(f64, f64)) -> f64| found.iter().map(of).fold(f64::MAX, f64::min);
        let most = |of: fn(&(f64, f64)) -> f64| found.iter().map(of).fold(f64::MIN, f64::max);
        [least(|it| it.1), most(|it| it.1), least(|it| it.0), most(|it| it.0)]
    }

    /// The line goes up to the greatest value and down to the least, and no further, whatever its corners are.
    #[test]
    fn a_line_has_the_extremes_of_its_data() {
        let noise = |at: u64| (at * 7919 % 1000) as f64 / 1000.0;
        let spike = |at: u64| if at % 100 == 50 { 1.0 } else { (at % 2) as f64 / 20.0 };
        let lonely = |at: u64| if at == 4321 { 1.0 } else { 0.0 };
        let cases: [(u64, &dyn Fn(u64) -> f64); 5] =
            [(8760, &noise), (3000, &spike), (100_000, &lonely), (3, &noise), (100, &spike)];
        for (count, value) in cases {
            let values: Vec<f64> = (0..count).map(value).collect();
            let x: ArrayRef =
                Arc::new(Float64Array::from_iter_values((0..count).map(|at| at as f64)));
            let y: ArrayRef = Arc::new(Float64Array::from(values.clone()));
            let rows = RecordBatch::try_from_iter([("x", x), ("y", y)]).unwrap();
            let picture = draw(&rows, &Spec::new(1000, 620)).unwrap();
            assert_eq!(picture.values() as u64, count);
            let least = values.iter().copied().fold(f64::MAX, f64::min);
            let most = values.iter().copied().fold(f64::MIN, f64::max);
            // The axis is longer than the range by a twentieth at both ends.
            let clip = picture.scene.marks.iter().find_map(|mark| match mark {
                Mark::Path { clip, .. } => Some(*clip),
                _ => None,
            });
            let clip = clip.unwrap();
            let per_value = (clip.bottom - clip.top) / ((most - least) * 1.1);
            let [high, low] = [most, least]
                .map(|it| clip.bottom - (it - least + (most - least) * 0.05) * per_value);
            let [top, bottom, left, right] = inked(&picture.encode(Format::Png).unwrap());
            assert!(
                (top - high).abs() <= 2.0 && (bottom - low).abs() <= 2.0,
                "{count}: {top} {bottom}"
            );
            assert!(left + 1.0 >= clip.left && right <= clip.right, "{count}: {left} to {right}");
            let svg = String::from_utf8(picture.encode(Format::Svg).unwrap()).unwrap();
            let line = svg.split("<polyline ").nth(1).unwrap();
            assert!(
                line.starts_with("clip-path=\"url(#frame)\" stroke-linejoin=\"round\""),
                "{line}"
            );
            let points = line.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
            let ys: Vec<f64> = points
                .split_whitespace()
                .map(|point| point.split(',').nth(1).unwrap().parse().unwrap())
                .collect();
            assert!(ys.len() <= 4000, "{} points", ys.len());
            let (top, bottom) = (
                ys.iter().copied().fold(f64::MAX, f64::min),
                ys.iter().copied().fold(f64::MIN, f64::max),
            );
            assert!(
                (top - high).abs() <= 1.0 && (bottom - low).abs() <= 1.0,
                "{count}: {top} {bottom}"
            );
        }
    }

    #[test]
    fn pictures_are_neither_empty_nor_endless() {
        for (width, height) in [(0, 300), (300, 199), (4097, 300), (300, u32::MAX)] {
            let error = draw(&xy([1.0, 2.0, 3.0]), &Spec::new(width, height)).unwrap_err();
            assert!(error.to_string().contains("200 to 4096 pixels"), "{error}");
        }
    }

    #[test]
    fn a_picture_is_encoded_as_asked() {
        let spec = Spec { title: Some("a\u{1b}b".to_owned()), ..Spec::new(321, 234) };
        let picture = draw(&xy([1.0, 2.0, 3.0]), &spec).unwrap();
        assert_eq!(picture.values(), 3);
        let svg = String::from_utf8(picture.encode(Format::Svg).unwrap()).unwrap();
        assert!(svg.contains(r"a\u{1b}b") && svg.contains(r#"width="321""#), "{svg}");
        let png = picture.encode(Format::Png).unwrap();
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        assert_eq!(png[16..24], [321_u32.to_be_bytes(), 234_u32.to_be_bytes()].concat());
        assert!(png.ends_with(b"IEND\xaeB`\x82"));
    }
}
