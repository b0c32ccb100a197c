//! The arguments of `gridfusion plot`.

use std::path::{Path, PathBuf};

use clap::builder::RangedI64ValueParser;
use clap::{ValueEnum, value_parser};
use datafusion::arrow::datatypes::Schema;
use datafusion::error::DataFusionError;
use gridfusion_plot::{self as plot, Format, Spec};

use super::look::Look;
use crate::engine::Engine;
use crate::options::{Setting, parse_setting};

/// The arguments of `plot`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct PlotArgs {
    /// Query whose rows are plotted
    #[arg(value_name = "SQL")]
    pub(crate) sql: String,

    /// Files and arrays that become tables, as without `plot`
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<String>,

    /// Options for each PATH and for object stores, as without `plot`; may be repeated
    #[arg(short = 'O', long = "option", value_name = "NAME=VALUE", value_parser = parse_setting)]
    pub(crate) options: Vec<Setting>,

    /// File to write, .png or .svg
    #[arg(short, long, value_name = "FILE", value_parser = parse_picture)]
    pub(crate) output: Picture,

    /// Kind of plot [default: depends on the columns]
    #[arg(long, value_enum, ignore_case = true)]
    pub(crate) kind: Option<PlotKind>,

    /// Line of text above the plot
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,

    /// Width of the picture in pixels
    #[arg(long, value_name = "PIXELS", default_value = "1000", value_parser = side())]
    pub(crate) width: u32,

    /// Height of the picture in pixels [default: 620; a map has the height that suits it]
    #[arg(long, value_name = "PIXELS", value_parser = side())]
    pub(crate) height: Option<u32>,

    #[command(flatten)]
    pub(crate) look: Look,

    #[command(flatten)]
    pub(crate) engine: Engine,
}

impl PlotArgs {
    /// Returns the settings of the picture.
    ///
    /// # Errors
    /// If `--facet` names no column of the query.
    pub(crate) fn spec(&self, schema: &Schema) -> Result<Spec, DataFusionError> {
        let mut spec = Spec::new(self.width, self.height.unwrap_or(620));
        spec.fits_map = self.height.is_none();
        spec.kind = self.kind.map(PlotKind::drawn);
        spec.title.clone_from(&self.title);
        self.look.apply(&mut spec, schema)?;
        Ok(spec)
    }
}

const AFTER_HELP: &str = r#"Columns:
  x, y                  a line; points if a value of x repeats; bars if x is text
  x, y, value           a heat map, if a value of x repeats or the rows are a curvilinear grid;
                        points coloured by value if x and y are no grid, or with --kind scatter
  lon, lat, value       a map with coastlines
  x, y, y, ...          a line for each y; also points or bars
  x, text, y            a line for each text, with --kind line
  Values are numbers. The x of every plot and the y of a heat map may also be times or text.

Examples:
  gridfusion plot "SELECT lon, lat, avg(value) FROM temperature GROUP BY lon, lat" climate.tet -o map.png
  gridfusion plot "SELECT date_trunc('day', time) AS day, min(value), max(value)
                   FROM temperature GROUP BY day" stations.tet -o days.svg --title "Six stations"
  gridfusion plot "SELECT time, station, value FROM temperature" stations.tet -o lines.png --kind line
  gridfusion plot "SELECT longitude, latitude, rain FROM 'rain.nc'" -o rain.png --log color --color-limits 0.1..100
  gridfusion plot "SELECT month, lon, lat, avg(value) FROM sst GROUP BY ALL" sst.zarr -o months.png --facet month"#;

/// The kind of plot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlotKind {
    /// Lines through the values, in order of x
    Line,
    /// A point for each value; of three columns, the third is the colour
    Scatter,
    /// A bar for each value
    Bars,
    /// A coloured cell for each x and y
    Heatmap,
}

impl PlotKind {
    fn drawn(self) -> plot::PlotKind {
        match self {
            Self::Line => plot::PlotKind::Line,
            Self::Scatter => plot::PlotKind::Scatter,
            Self::Bars => plot::PlotKind::Bars,
            Self::Heatmap => plot::PlotKind::Heatmap,
        }
    }
}

/// A picture file: its path, and the format that the ending names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
}

/// Returns the parser for the width or height of a picture, in pixels.
fn side() -> RangedI64ValueParser<u32> {
    let (least, most) = Spec::SIDES.into_inner();
    value_parser!(u32).range(i64::from(least)..=i64::from(most))
}

fn parse_picture(path: &str) -> Result<Picture, String> {
    let format = Format::from_path(Path::new(path));
    let format = format.ok_or("the file name must end in .png or .svg")?;
    Ok(Picture { path: path.into(), format })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_chooses_the_kind_of_picture() {
        let picture = |path: &str, format| Picture { path: path.into(), format };
        assert_eq!(parse_picture("b/c.d.SVG"), Ok(picture("b/c.d.SVG", Format::Svg)));
        assert!(parse_picture("a.jpg").is_err());
    }
}
