//! [`Property`]: what may differ between the arrays of two files.

/// A property of an array, a dimension or a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Property {
    /// The names of the variables.
    Variables,
    /// The names of the dimensions, in order.
    Dimensions,
    /// Whether a dimension has labels.
    HasLabels,
    /// The number of labels.
    Length,
    /// The labels.
    Labels,
    /// The type of the column.
    Type,
    /// The type of the stored cells.
    StoredType,
    /// The factor and the offset of packed numbers.
    Packing,
    /// The stored cells that are NULL.
    FillValue,
    /// The range outside of which stored numbers are NULL.
    ValidRange,
    /// The unit and the reference of times.
    TimeUnits,
    /// The calendar of times that stay numbers.
    Calendar,
    /// The texts that stored numbers stand for.
    Categories,
    /// The character set of text.
    Encoding,
    /// Whether cells have marks of their own for NULL.
    Validity,
    /// Any other property of stored cells.
    Storage,
    /// An attribute, which describes values without changing them.
    Attribute(&'static str),
}

impl Property {
    /// Returns the name, as a noun that begins a sentence after "the".
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Variables => "variables",
            Self::Dimensions => "dimensions",
            Self::HasLabels | Self::Labels => "labels",
            Self::Length => "length",
            Self::Type => "type",
            Self::StoredType => "stored type",
            Self::Packing => "packing",
            Self::FillValue => "fill value",
            Self::ValidRange => "valid range",
            Self::TimeUnits => "time unit",
            Self::Calendar => "calendar",
            Self::Categories => "categories",
            Self::Encoding => "character set",
            Self::Validity => "validity marks",
            Self::Storage => "storage",
            Self::Attribute(name) => name,
        }
    }
}
