//! The options for axes, colours, maps and panels.

use clap::ValueEnum;
use datafusion::arrow::datatypes::Schema;
use datafusion::common::plan_datafusion_err;
use datafusion::error::Result;
use gridfusion_plot::{AxisSettings, ColorMap, Contours, Limits, Scale, Spec};

/// The options of a picture beside its kind, title and size.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Look {
    /// Column whose values get a panel each
    #[arg(long, value_name = "COLUMN")]
    facet: Option<String>,

    /// Ends of the x axis; one may be left out
    #[arg(long, value_name = "LOW..HIGH", value_parser = parse_limits, allow_hyphen_values = true)]
    x_limits: Option<Limits>,

    /// Ends of the y axis
    #[arg(long, value_name = "LOW..HIGH", value_parser = parse_limits, allow_hyphen_values = true)]
    y_limits: Option<Limits>,

    /// Values of the first and the last colour
    #[arg(long, value_name = "LOW..HIGH", value_parser = parse_limits, allow_hyphen_values = true)]
    color_limits: Option<Limits>,

    /// Logarithmic axes or colours; several with commas
    #[arg(long, value_name = "WHICH", value_enum, ignore_case = true, value_delimiter = ',')]
    log: Vec<Logarithmic>,

    /// Axes that run against their usual direction
    #[arg(long, value_name = "AXIS", value_enum, ignore_case = true, value_delimiter = ',')]
    invert: Vec<AxisName>,

    /// Colours of values [default: viridis; diverging for anomalies]
    #[arg(long, value_name = "NAME", value_enum, ignore_case = true)]
    colors: Option<Colors>,

    /// Contour lines over the cells: auto, or values with commas such as 0,5,10
    #[arg(long, value_name = "LEVELS", value_parser = parse_contours, allow_hyphen_values = true)]
    contours: Option<Contours>,

    /// Coastlines [default: on if x and y are longitude and latitude]
    #[arg(long, value_enum, ignore_case = true)]
    coastlines: Option<Switch>,
}

impl Look {
    /// Puts the options into the settings of a picture of a query with these columns.
    ///
    /// # Errors
    /// If `--facet` names no column, or one that several columns have.
    pub(super) fn apply(&self, spec: &mut Spec, schema: &Schema) -> Result<()> {
        let axis = |limits: &Option<Limits>, name: AxisName, log: Logarithmic| AxisSettings {
            limits: limits.clone().unwrap_or_default(),
            scale: self.scale(log),
            is_inverted: self.invert.contains(&name),
        };
        spec.x = axis(&self.x_limits, AxisName::X, Logarithmic::X);
        spec.y = axis(&self.y_limits, AxisName::Y, Logarithmic::Y);
        spec.color.limits = self.color_limits.clone().unwrap_or_default();
        spec.color.scale = self.scale(Logarithmic::Color);
        spec.color.map = self.colors.map(Colors::map);
        spec.contours.clone_from(&self.contours);
        spec.coastlines = self.coastlines.map(|switch| switch == Switch::On);
        spec.facet = self.facet.as_deref().map(|name| place(name, schema)).transpose()?;
        Ok(())
    }

    fn scale(&self, what: Logarithmic) -> Scale {
        if self.log.contains(&what) { Scale::Log } else { Scale::Linear }
    }
}

/// Returns the number of the column with a name; if there is none, of the one that differs in case only.
fn place(name: &str, schema: &Schema) -> Result<usize> {
    let names = schema.fields().iter().map(|field| field.name().as_str());
    let exact: Vec<usize> =
        names.clone().enumerate().filter(|(_, it)| *it == name).map(|(at, _)| at).collect();
    let alike = names.clone().enumerate().filter(|(_, it)| it.eq_ignore_ascii_case(name));
    let found = if exact.is_empty() { alike.map(|(at, _)| at).collect() } else { exact };
    match found[..] {
        [at] => Ok(at),
        _ => {
            let names: Vec<&str> = names.collect();
            let columns = names.join(", ");
            Err(plan_datafusion_err!(
                "--facet needs the name of one column of the query: {columns}"
            ))
        }
    }
}

/// An axis or the colours, as a logarithmic scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Logarithmic {
    /// The x axis
    X,
    /// The y axis
    Y,
    /// The colours of values
    Color,
}

/// The name of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AxisName {
    /// The x axis
    X,
    /// The y axis
    Y,
}

/// Whether something is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    /// Draws them
    On,
    /// Leaves them out
    Off,
}

/// The names of colour maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Colors {
    /// Dark violet, green, yellow
    Viridis,
    /// Dark blue, grey, yellow
    Cividis,
    /// Black, red, light yellow
    Magma,
    /// White to black
    Grays,
    /// Blue, light grey, red, with zero in the middle
    Diverging,
    /// A colour for each whole number
    Categories,
}

impl Colors {
    fn map(self) -> ColorMap {
        match self {
            Self::Viridis => ColorMap::Viridis,
            Self::Cividis => ColorMap::Cividis,
            Self::Magma => ColorMap::Magma,
            Self::Grays => ColorMap::Grays,
            Self::Diverging => ColorMap::Diverging,
            Self::Categories => ColorMap::Categories,
        }
    }
}

fn parse_limits(text: &str) -> Result<Limits, String> {
    Limits::parse(text).map_err(|error| error.to_string())
}

fn parse_contours(text: &str) -> Result<Contours, String> {
    Contours::parse(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field};

    use super::*;

    #[test]
    fn a_panel_column_is_found_by_its_name() {
        let fields = ["a", "B", "b", "month"].map(|name| Field::new(name, DataType::Int8, true));
        let schema = Schema::new(fields.to_vec());
        assert_eq!(place("b", &schema).unwrap(), 2);
        assert_eq!(place("MONTH", &schema).unwrap(), 3);
        let error = place("c", &schema).unwrap_err().to_string();
        assert!(error.contains("one column of the query: a, B, b, month"), "{error}");
    }
}
