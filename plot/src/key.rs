//! The colours of values, and the bar or list that explains them.

use std::collections::BTreeSet;

use crate::axis::{Axis, Span, fits_above, widened};
use crate::colors::{of_line, over};
use crate::column::{Column, Values};
use crate::error::{Result, refuse};
use crate::frame::{draw_upright, label_font};
use crate::role::Role;
use crate::scene::{AXIS, Anchor, Clip, Color, NOTHING, Scene};
use crate::settings::{AxisSettings, ColorMap, ColorSettings, Contours, Scale};
use crate::ticks::{Tick, short};

/// The number of shades in a bar of colours.
const SHADES: u32 = 128;
/// The most colours that a reader can tell apart.
const MOST: usize = 20;

/// The colours of values.
#[derive(Debug)]
pub(crate) struct Key {
    label: String,
    map: ColorMap,
    shades: Shades,
    /// The values that have a contour line, with their labels.
    pub(crate) contours: Vec<Tick>,
}

#[derive(Debug)]
enum Shades {
    /// Colours between the ends of an axis. `middle` has the middle colour of a diverging map.
    Bar { axis: Axis, middle: f64 },
    /// A colour per value, with its name, in this order.
    Names(Vec<(f64, String, Color)>),
}

impl Key {
    /// Returns the colours of the values of a column. The ticks of the bar suit a picture of this height.
    ///
    /// # Errors
    /// `Usage` if the values are times, all are NULL, or the settings do not suit them.
    pub(crate) fn new(
        value: &Column,
        settings: &ColorSettings,
        height: f64,
        scale: f64,
    ) -> Result<Self> {
        let label = value.label();
        if let Values::Names(names) = &value.values {
            let names = names.iter().enumerate().map(|(at, name)| (at as f64, name.clone()));
            return Self::from_names(label, names.collect());
        }
        value.need_numbers()?;
        let data = value.data.iter().copied();
        let Some(range) = settings.scale.range(data.clone()) else {
            let is_log = settings.scale == Scale::Log && Scale::Linear.range(data).is_some();
            return refuse(match is_log {
                true => "no value is above zero, so a logarithmic scale has no colour for it",
                false => "there is nothing to plot: all values are NULL",
            });
        };
        if settings.map == Some(ColorMap::Categories) {
            return Self::from_numbers(label, &value.data);
        }
        let is_around_zero = range.0 < 0.0 && 0.0 < range.1;
        let is_anomaly = value.title.role == Role::Anomaly && is_around_zero;
        let usual = if is_anomaly { ColorMap::Diverging } else { ColorMap::Viridis };
        let map = settings.map.unwrap_or(usual);
        let range = match range {
            (low, high) if map == ColorMap::Diverging && is_around_zero => {
                let most = high.max(-low);
                (-most, most)
            }
            (low, high) if low < high => (low, high),
            range => widened(range, 0.0, settings.scale),
        };
        let ends = AxisSettings {
            limits: settings.limits.clone(),
            scale: settings.scale,
            is_inverted: false,
        };
        let span = Span::new(String::new(), &Values::Numbers, range, &ends, false)?;
        // Only the ticks and shares of this axis are used.
        let axis = Axis::new(&span, 0.0, height * 0.8, fits_above(scale, &Values::Numbers));
        let middle = axis.share(0.0);
        let middle = if middle > 0.0 && middle < 1.0 { middle } else { 0.5 };
        Ok(Self { label, map, shades: Shades::Bar { axis, middle }, contours: vec![] })
    }

    fn from_names(label: String, names: Vec<(f64, String)>) -> Result<Self> {
        let count = names.len();
        if count > MOST {
            return refuse(format!(
                "{count} colours cannot be told apart; choose at most {MOST} values"
            ));
        }
        if count == 0 {
            return refuse("there is nothing to plot: all values are NULL");
        }
        let colored =
            |(number, (value, name)): (usize, (f64, String))| (value, name, of_line(number, count));
        let names = names.into_iter().enumerate().map(colored).collect();
        Ok(Self {
            label,
            map: ColorMap::Categories,
            shades: Shades::Names(names),
            contours: vec![],
        })
    }

    /// Returns a colour for each different number.
    fn from_numbers(label: String, data: &[f64]) -> Result<Self> {
        let mut values = BTreeSet::new();
        for value in data.iter().filter(|value| value.is_finite()) {
            if value.fract() != 0.0 || value.abs() > 1e9 {
                return refuse(format!(
                    "{value} has no colour of its own; --colors categories needs text or whole numbers"
                ));
            }
            values.insert(*value as i64);
            if values.len() > MOST {
                break;
            }
        }
        Self::from_names(label, values.iter().map(|it| (*it as f64, it.to_string())).collect())
    }

    /// Chooses the values that have a contour line.
    ///
    /// # Errors
    /// `Usage` if values between two others have no colour, or a level has no place among the colours.
    pub(crate) fn set_contours(&mut self, contours: &Contours) -> Result<()> {
        let Shades::Bar { axis, .. } = &self.shades else {
            return refuse("contour lines need values that are numbers, and colours between them");
        };
        self.contours = match contours {
            // The ends of the bar have no larger values beyond them.
            Contours::Auto => {
                let is_between = |tick: &&Tick| (1e-9..1.0 - 1e-9).contains(&axis.share(tick.at));
                axis.ticks.iter().filter(is_between).cloned().collect()
            }
            Contours::At(levels) => {
                if let Some(level) = levels.iter().find(|level| !axis.place(**level).is_finite()) {
                    return refuse(format!(
                        "contour line {level} has no place on a logarithmic scale; its values are positive"
                    ));
                }
                levels.iter().map(|at| Tick { at: *at, label: short(*at) }).collect()
            }
        };
        Ok(())
    }

    /// Returns the place of a value on the scale of the colours; NaN if it has none.
    pub(crate) fn place(&self, value: f64) -> f64 {
        match &self.shades {
            Shades::Bar { axis, .. } => axis.place(value),
            Shades::Names(_) => f64::NAN,
        }
    }

    /// Returns the colour of a value; `None` if it has none.
    pub(crate) fn color(&self, value: f64) -> Option<Color> {
        match &self.shades {
            Shades::Bar { axis, middle } => {
                let share = axis.share(value);
                value.is_finite().then_some(())?;
                (!share.is_nan()).then(|| self.shade(share, *middle))
            }
            Shades::Names(names) => names.iter().find(|it| it.0 == value).map(|it| it.2),
        }
    }

    fn shade(&self, share: f64, middle: f64) -> Color {
        if self.map != ColorMap::Diverging {
            return self.map.at(share);
        }
        // Equal distances from the middle are equally dark.
        self.map.at(0.5 + (share - middle) / (2.0 * middle.max(1.0 - middle)))
    }

    /// Returns the colour of what has no value; it is no colour of a value.
    pub(crate) fn nothing(&self) -> Color {
        match self.map {
            ColorMap::Diverging | ColorMap::Grays => Color(255, 249, 226),
            _ => NOTHING,
        }
    }

    /// Returns the width of the bar or list in pixels.
    pub(crate) fn room(&self, scale: f64) -> f64 {
        let width = |label: &str| label_font(scale).width(label);
        let labels = match &self.shades {
            Shades::Bar { axis, .. } => {
                axis.ticks.iter().map(|tick| width(&tick.label)).fold(0.0, f64::max)
            }
            Shades::Names(names) => names.iter().map(|it| width(&it.1)).fold(0.0, f64::max),
        };
        (18.0 + 18.0 + 10.0 + 28.0) * scale + labels
    }

    /// Draws the bar or list to the right of an area.
    pub(crate) fn draw(&self, scene: &mut Scene, area: Clip) {
        let scale = scene.scale;
        let Clip { right: beside, top, bottom, .. } = area;
        let left = beside + 18.0 * scale;
        let right = left + 18.0 * scale;
        match &self.shades {
            Shades::Bar { axis, middle } => {
                let at = |share: f64| bottom + share * (top - bottom);
                scene.rect((left - 1.0, right + 1.0), (top - 1.0, bottom + 1.0), AXIS);
                for shade in 0..SHADES {
                    let share = |shade: u32| f64::from(shade) / f64::from(SHADES);
                    let color = self.shade(f64::midpoint(share(shade), share(shade + 1)), *middle);
                    scene.rect((left, right), (at(share(shade)), at(share(shade + 1))), color);
                }
                for level in self.contours.iter().filter(|level| axis.holds(level.at)) {
                    let y = at(axis.share(level.at));
                    let half = 0.5 * scale;
                    let color = over(self.shade(axis.share(level.at), *middle));
                    scene.rect((left, right), (y - half, y + half), color);
                }
                for Tick { at: value, label } in &axis.ticks {
                    let y = at(axis.share(*value)).round();
                    scene.rect((right, right + 5.0 * scale), (y, y + 1.0), AXIS);
                    scene.text(label, (right + 9.0 * scale, y), label_font(scale), Anchor::Left);
                }
            }
            Shades::Names(names) => {
                let step = ((bottom - top) / names.len() as f64).min(22.0 * scale);
                for (number, (_, name, color)) in names.iter().enumerate() {
                    let y = top + (number as f64 + 0.5) * step;
                    let half = (step * 0.35).min(6.0 * scale);
                    scene.rect((right - 3.0 * half, right), (y - half, y + half), *color);
                    scene.text(name, (right + 7.0 * scale, y), label_font(scale), Anchor::Left);
                }
            }
        }
        let edge = beside + self.room(scale) - 2.0 * scale;
        draw_upright(scene, &self.label, (edge, f64::midpoint(top, bottom)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::load_fonts;
    use crate::settings::Limits;
    use crate::title::Title;

    fn key(data: &[f64], role: Role, settings: &ColorSettings) -> Result<Key> {
        load_fonts().unwrap();
        let title = Title { role, ..Title::new("v") };
        let value = Column::new(title, Values::Numbers, data.to_vec());
        Key::new(&value, settings, 500.0, 1.0)
    }

    fn with(map: Option<ColorMap>, scale: Scale, limits: &str) -> ColorSettings {
        let limits = Limits::parse(limits).unwrap_or_default();
        ColorSettings { limits, scale, map }
    }

    #[test]
    fn anomalies_diverge_around_zero() {
        let plain = with(None, Scale::Linear, "");
        let grey = Some(ColorMap::Diverging.at(0.5));
        let colors = key(&[-1.0, 4.0], Role::Anomaly, &plain).unwrap();
        assert_eq!(colors.color(0.0), grey);
        assert_eq!(colors.color(4.0), Some(ColorMap::Diverging.at(1.0)));
        assert_eq!(colors.color(-2.0), Some(ColorMap::Diverging.at(0.25)));
        for (data, role) in [([-1.0, 4.0], Role::Other), ([1.0, 4.0], Role::Anomaly)] {
            let colors = key(&data, role, &plain).unwrap();
            assert_eq!(colors.color(4.0), Some(ColorMap::Viridis.at(1.0)), "{role:?}");
        }
        // Limits keep zero in the middle of the colours; the side with the farther limit has all of them.
        let limited = with(Some(ColorMap::Diverging), Scale::Linear, "-1..2");
        let colors = key(&[-9.0, 9.0], Role::Other, &limited).unwrap();
        assert_eq!(colors.color(0.0), grey);
        assert_eq!(colors.color(2.0), Some(ColorMap::Diverging.at(1.0)));
        assert_eq!(colors.color(-1.0), Some(ColorMap::Diverging.at(0.25)));
    }

    #[test]
    fn a_logarithmic_bar_has_no_colour_for_zero() {
        let log = with(None, Scale::Log, "");
        let colors = key(&[0.0, -5.0, 1.0, 100.0], Role::Other, &log).unwrap();
        assert_eq!(colors.color(10.0), Some(ColorMap::Viridis.at(0.5)));
        assert_eq!([0.0, -5.0, f64::NAN].map(|it| colors.color(it)), [None; 3]);
        let error = key(&[0.0, -5.0], Role::Other, &log).unwrap_err().to_string();
        assert!(error.starts_with("no value is above zero"), "{error}");
    }

    #[test]
    fn categories_have_a_colour_each() {
        let categories = with(Some(ColorMap::Categories), Scale::Linear, "");
        let colors = key(&[3.0, 1.0, f64::NAN, 3.0], Role::Other, &categories).unwrap();
        let (one, three) = (colors.color(1.0), colors.color(3.0));
        assert!(one.is_some() && three.is_some() && one != three && colors.color(2.0).is_none());
        let many: Vec<f64> = (0..21).map(f64::from).collect();
        assert!(key(&many, Role::Other, &categories).is_err());
        assert!(key(&[0.5], Role::Other, &categories).is_err());
    }

    #[test]
    fn hostile_values_have_colours_or_none() {
        for data in
            [&[f64::MIN, f64::MAX][..], &[f64::NAN, 1.0, f64::INFINITY], &[0.0, -0.0], &[5e-324]]
        {
            for map in [None, Some(ColorMap::Diverging)] {
                let colors = key(data, Role::Anomaly, &with(map, Scale::Linear, "")).unwrap();
                assert!(data.iter().all(|it| colors.color(*it).is_some() == it.is_finite()));
            }
        }
        assert!(
            key(&[f64::NAN, f64::INFINITY], Role::Other, &with(None, Scale::Linear, "")).is_err()
        );
    }
}
