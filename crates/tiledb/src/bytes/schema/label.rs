//! Dimension labels: other names for the coordinates of a dimension, stored in arrays of their own.

use super::attribute::ValuesPerCell;
use crate::bytes::datatype::Datatype;
use crate::bytes::text::{flag, text32, text64};
use gridfusion_core::Result;
use gridfusion_core::format::wire::Reader;

/// Other names for the coordinates of a dimension: an attribute of another array.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DimensionLabel {
    /// The number of the dimension that it labels.
    pub dimension: usize,
    /// Its name.
    pub name: String,
    /// The array that holds the labels.
    pub uri: String,
    /// Whether `uri` is a path in this array's folder.
    pub relative: bool,
    /// The name of the attribute with the labels in that array.
    pub attribute: String,
    /// How the labels are sorted.
    pub order: DimensionLabelOrder,
    /// The type of the labels.
    pub datatype: Datatype,
    /// How many values a label has.
    pub values_per_cell: ValuesPerCell,
}

/// How labels are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DimensionLabelOrder {
    /// In no order.
    Unordered,
    /// Each is greater than the one before it.
    Increasing,
    /// Each is less than the one before it.
    Decreasing,
}

impl DimensionLabel {
    pub(in crate::bytes) fn parse(reader: &mut Reader<'_>, dimensions: usize) -> Result<Self> {
        let dimension = reader.u32()?;
        let dimension = usize::try_from(dimension).ok().filter(|at| *at < dimensions);
        let dimension = dimension.ok_or_else(|| reader.corrupt("label of a missing dimension"))?;
        let name = text32(reader, "the label's name")?;
        let relative = flag(reader, "relative URI")?;
        let uri = text64(reader, "the label's URI")?;
        let attribute = text32(reader, "the label's attribute")?;
        let order = match reader.u8()? {
            0 => DimensionLabelOrder::Unordered,
            1 => DimensionLabelOrder::Increasing,
            2 => DimensionLabelOrder::Decreasing,
            other => {
                return Err(reader.corrupt(format!("order {other} of a label, expected 0 to 2")));
            }
        };
        let datatype = Datatype::from_code(reader.u8()?)?;
        let values_per_cell = ValuesPerCell::parse(reader)?;
        flag(reader, "external label")?;
        Ok(Self { dimension, name, uri, relative, attribute, order, datatype, values_per_cell })
    }
}
