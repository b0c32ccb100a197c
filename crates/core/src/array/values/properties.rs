//! The properties of a column as text: in these, the columns of two files may differ.

use arrow::array::Array;
use arrow::util::display::array_value_to_string;

use super::cells::{CellColumn, CellKind};
use super::declarations::ColumnMeaning;
use super::number::NumberColumn;
use super::scalar::Scalar;
use super::temporal::NOT_A_TIME;
use super::value_column::ValueColumn;
use crate::array::element::decimal;
use crate::array::property::Property;
use crate::format::ZoneBound;

/// The most categories, or missing values, that a text lists.
const MOST: usize = 12;

/// The text of a property that a column does not have.
const NONE: &str = "none";

impl ValueColumn {
    /// Returns what sets the meaning of the stored cells. Equal columns have equal properties.
    pub(crate) fn properties(&self) -> Vec<(Property, String)> {
        let own = match self {
            Self::Number(column) => column.properties(),
            Self::Cells(column) => column.properties(),
        };
        let mut all = vec![(Property::Type, self.data_type().to_string())];
        all.extend(own);
        all
    }
}

impl NumberColumn {
    fn properties(&self) -> Vec<(Property, String)> {
        let element = self.element();
        // Times have a mark of numpy for NULL, which no file declares.
        let is_mark = |null: &&ZoneBound| {
            matches!(self.meaning, ColumnMeaning::Times(..)) && **null == NOT_A_TIME.to_le_bytes()
        };
        let nulls = self.fill.iter().chain(&self.also_null).filter(|null| !is_mark(null));
        let nulls: Vec<String> = nulls.filter_map(|null| decimal(element, null)).collect();
        let none = || NONE.to_owned();
        let (mut packing, mut times, mut named) = (none(), none(), none());
        let numbers = match &self.meaning {
            ColumnMeaning::Times(units, numbers) => {
                times = units.to_string();
                &**numbers
            }
            meaning => meaning,
        };
        match numbers {
            ColumnMeaning::Plain | ColumnMeaning::Times(..) => {}
            ColumnMeaning::Packed { scale, offset } => packing = packing_text(scale, offset),
            ColumnMeaning::PackedInSingles { scale, offset } => {
                packing = packing_text(scale, offset);
            }
            ColumnMeaning::Categories { codes, texts } => {
                let pairs = codes.iter().zip(texts.iter());
                let text = |(code, text): (&i64, Option<&str>)| {
                    format!("{code} = {}", text.unwrap_or_default())
                };
                named = list(pairs.map(text), codes.len());
            }
        }
        let valid = self.valid.map(|(least, greatest)| format!("{least} to {greatest}"));
        vec![
            (Property::StoredType, element.to_string()),
            (Property::Packing, packing),
            (Property::FillValue, list_all(nulls)),
            (Property::ValidRange, valid.unwrap_or_else(none)),
            (Property::TimeUnits, times),
            (Property::Categories, named),
            (Property::Validity, yes_or_no(self.has_validity())),
        ]
    }
}

impl CellColumn {
    fn properties(&self) -> Vec<(Property, String)> {
        let (mut encoding, mut named) = (NONE.to_owned(), NONE.to_owned());
        let stored = match &self.kind {
            CellKind::Scalar(scalar) => scalar.data_type().to_string(),
            CellKind::FixedBytes(width) => format!("{width} bytes"),
            CellKind::FixedList(scalar, len) => format!("{len} of {}", scalar.data_type()),
            CellKind::FixedText(of, width) => {
                encoding = format!("{of:?}");
                format!("text of {width} bytes")
            }
            CellKind::Text(of) => {
                encoding = format!("{of:?}");
                "text".to_owned()
            }
            CellKind::Bytes => "bytes".to_owned(),
            CellKind::List(scalar) => format!("lists of {}", scalar.data_type()),
            CellKind::FixedItems(item, len) => format!("{len} of {}", item.data_type()),
            CellKind::Struct(fields, width) => {
                let at = fields.iter().map(|it| format!("{} at {}", it.name, it.offset));
                format!("{} in {width} bytes", list(at, fields.len()))
            }
            CellKind::Packed(cells, _) => return cells.properties(),
            CellKind::Enumerated { index, values } => {
                let texts = (0..values.len()).map(|at| array_value_to_string(values, at));
                named = list(texts.map(Result::unwrap_or_default), values.len());
                index.to_string()
            }
            CellKind::Unreadable(_) => "unreadable".to_owned(),
        };
        let nulls = self.nulls.iter().map(|null| self.null_text(null)).collect();
        vec![
            (Property::StoredType, stored),
            (Property::Encoding, encoding),
            (Property::FillValue, list_all(nulls)),
            (Property::Categories, named),
            (Property::Validity, yes_or_no(self.has_validity)),
        ]
    }

    /// Returns the text of a cell that is NULL.
    fn null_text(&self, cell: &[u8]) -> String {
        let number = match &self.kind {
            CellKind::Scalar(Scalar::Number(element)) => decimal(*element, cell),
            CellKind::Text(_) | CellKind::FixedText(..) => {
                std::str::from_utf8(cell).ok().map(|text| format!("{text:?}"))
            }
            _ => None,
        };
        let shown = || cell.iter().take(MOST).map(|byte| format!("{byte:02x}")).collect();
        number.unwrap_or_else(shown)
    }
}

fn packing_text(scale: impl std::fmt::Display, offset: impl std::fmt::Display) -> String {
    format!("scale_factor {scale}, add_offset {offset}")
}

fn yes_or_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}

/// Joins texts, and shows the first few.
fn list_all(texts: Vec<String>) -> String {
    let len = texts.len();
    list(texts.into_iter(), len)
}

/// Joins texts, of which there are at most `len`, and shows the first few.
fn list(texts: impl Iterator<Item = String>, len: usize) -> String {
    let shown: Vec<String> = texts.take(MOST).collect();
    match len.saturating_sub(MOST) {
        _ if shown.is_empty() => NONE.to_owned(),
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
