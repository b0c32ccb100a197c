//! Cells and attributes as columns.
//!
//! | cells | column |
//! |---|---|
//! | numbers | as stored, or unpacked by `scale_factor` and `add_offset`; then times by `units` |
//! | complex numbers | two columns, `NAME_re` and `NAME_im` |
//! | compounds | a column per field; see `records` |
//! | bytes with `dtype = "bool"` | truth values |
//! | truth values, dates, text, bytes, enumerations | the Arrow type that holds them exactly |
//!
//! Attributes of single precision have their exact value, as in xarray and netCDF4: the single 0.1 is not the double 0.1.
//!
//! Missing data is NULL: NaN, NaT, `_FillValue`, each `missing_value`, the fill value of Zarr version 2, and times that were never
//! written. The attributes describe stored numbers, before they are unpacked.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringViewArray};

use super::complex::{missing_number, nan};
use super::options::HierarchyView;
use super::records;
use crate::hierarchy::{Attribute, Attributes, CellType, Variable};
use gridfusion_core::Result;
use gridfusion_core::array::{
    CellColumn, CellKind, CountedTimes, Encoding, NOT_A_TIME, NumberColumn, NumberKind, Remarks,
    Scalar, Temporal, TimeUnits, Value, ValueColumn, as_numbers, element_of, mark_numbers,
};
use gridfusion_core::format::{ElementType, ZoneBound, bound};
use gridfusion_core::tile::CellFormat;

/// Returns the columns of a variable, the first of them called `name`.
pub(super) fn values(
    variable: &Variable,
    name: &str,
    view: &HierarchyView,
    remarks: &mut Remarks,
) -> Result<Vec<Value>> {
    if let CellType::Complex(element) = variable.cell {
        return Ok(halves(variable, element, view));
    }
    if let CellType::Record(record) = &variable.cell {
        return records::columns(variable, record, view, remarks);
    }
    let width = variable.cell.width().map(|width| width as usize);
    let column = column(variable, view, view.read.decode_times, remarks)?;
    Ok(vec![value(name.to_owned(), column, width, variable.fill.clone(), variable, view)])
}

/// Returns the column of a variable whose values are labels: numbers that are times stay numbers.
pub(super) fn label_column(
    variable: &Variable,
    view: &HierarchyView,
    remarks: &mut Remarks,
) -> Result<Value> {
    let width = variable.cell.width().map(|width| width as usize);
    let column = column(variable, view, false, remarks)?;
    Ok(value(variable.name().to_owned(), column, width, variable.fill.clone(), variable, view))
}

pub(super) fn value(
    name: String,
    column: ValueColumn,
    width: Option<usize>,
    fill: Vec<u8>,
    variable: &Variable,
    view: &HierarchyView,
) -> Value {
    let cells = CellFormat::new(width, false, fill, true);
    Value::new(name, column, cells).with_attributes(attributes(variable, view))
}

/// Returns the metadata of a variable's field.
pub(super) fn attributes(variable: &Variable, view: &HierarchyView) -> BTreeMap<String, String> {
    let attributes = texts(&variable.attributes);
    if view.read.decode_times { attributes } else { as_numbers(attributes) }
}

/// Returns attributes as text, as the metadata of a field, with a mark of those that are numbers.
pub(super) fn texts(attributes: &Attributes) -> BTreeMap<String, String> {
    let mut texts: BTreeMap<String, String> =
        attributes.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
    let numbers = attributes.iter().filter_map(|(name, value)| match value {
        Attribute::Integers(_) => Some((name.as_str(), NumberKind::Integers)),
        Attribute::Singles(_) => Some((name.as_str(), NumberKind::Singles)),
        Attribute::Doubles(_) => Some((name.as_str(), NumberKind::Doubles)),
        Attribute::Text(_) | Attribute::Texts(_) => None,
    });
    mark_numbers(&mut texts, numbers);
    texts
}

/// Returns the real and the imaginary parts as two columns.
fn halves(variable: &Variable, element: ElementType, view: &HierarchyView) -> Vec<Value> {
    let (width, own) = (element.size() as usize, variable.name());
    let half = |(part, suffix): (usize, &str)| {
        let column = NumberColumn::plain(element, None, false, &view.read);
        let fill = variable.fill.get(part * width..).and_then(|fill| fill.get(..width));
        // A missing number is NaN in both columns.
        let fill = match missing_number(variable, view) {
            Some(_) => nan(width),
            None => fill.unwrap_or_default().to_vec(),
        };
        let name = format!("{}_{suffix}", if own.is_empty() { "value" } else { own });
        value(name, ValueColumn::Number(column), Some(width), fill, variable, view)
    };
    [(0, "re"), (1, "im")].map(half).to_vec()
}

/// Returns the column of a variable as it is where no attribute tells more.
pub(super) fn plain_column(
    variable: &Variable,
    view: &HierarchyView,
    remarks: &mut Remarks,
) -> Result<ValueColumn> {
    Ok(match column(variable, view, false, remarks)? {
        ValueColumn::Cells(cells) => {
            ValueColumn::Cells(cells.with_missing_items(view.read.nan_as_null))
        }
        column => column,
    })
}

fn column(
    variable: &Variable,
    view: &HierarchyView,
    decode_times: bool,
    remarks: &mut Remarks,
) -> Result<ValueColumn> {
    let kind = match &variable.cell {
        CellType::Number(ElementType::I8 | ElementType::U8) if is_boolean(variable) => {
            CellKind::Scalar(Scalar::Boolean)
        }
        CellType::Number(element) => {
            let numbers = numbers(variable, *element, view, decode_times, remarks);
            return Ok(ValueColumn::Number(numbers));
        }
        cell => kind(cell, variable, view, remarks)?,
    };
    Ok(ValueColumn::Cells(CellColumn::new(kind, false, missing_cells(variable, view))))
}

/// Returns the kind of cells, or of the values in a cell of several.
pub(super) fn kind(
    cell: &CellType,
    variable: &Variable,
    view: &HierarchyView,
    remarks: &mut Remarks,
) -> Result<CellKind> {
    let scalar = |scalar| CellKind::Scalar(scalar);
    Ok(match cell {
        CellType::Number(element) => scalar(Scalar::Number(*element)),
        CellType::Boolean => scalar(Scalar::Boolean),
        CellType::TimePoint(unit) => scalar(Scalar::Temporal(Temporal::Point(*unit))),
        CellType::TimeSpan(unit) => scalar(Scalar::Temporal(Temporal::Length(*unit))),
        CellType::FixedUtf8(width) if view.text_as_binary => CellKind::FixedBytes(*width),
        CellType::FixedUtf8(width) => {
            CellKind::FixedText(encoding(variable, view, remarks), *width)
        }
        CellType::FixedUtf32(points) => CellKind::FixedText(Encoding::Utf32, 4 * points),
        CellType::Text if view.text_as_binary => CellKind::Bytes,
        CellType::Text => CellKind::Text(encoding(variable, view, remarks)),
        CellType::FixedBytes(width) => CellKind::FixedBytes(*width),
        CellType::Bytes => CellKind::Bytes,
        CellType::Enumeration { index, names } => enumeration(*index, names),
        CellType::Complex(_) | CellType::Record(_) | CellType::Array(..) | CellType::List(_) => {
            return records::composite(cell, variable, view, remarks);
        }
    })
}

/// Returns the character set of a variable's text: that of the option, else of `_Encoding`, else UTF-8.
fn encoding(variable: &Variable, view: &HierarchyView, remarks: &mut Remarks) -> Encoding {
    let declared = || {
        let name = variable.attributes.get("_Encoding")?.to_string();
        let known = Encoding::from_name(&name);
        if known.is_none() {
            remarks.misunderstood.push(format!(
                "attribute _Encoding = \"{name}\" is no known character set; text is read as UTF-8"
            ));
        }
        known
    };
    view.text_encoding.or_else(declared).unwrap_or(Encoding::Utf8)
}

/// Whether bytes are truth values, as xarray marks them: NetCDF has none.
fn is_boolean(variable: &Variable) -> bool {
    variable.attributes.get("dtype").and_then(Attribute::text) == Some("bool")
}

/// Returns the column of numbers, with their missing values, packing and times.
fn numbers(
    variable: &Variable,
    element: ElementType,
    view: &HierarchyView,
    decode_times: bool,
    remarks: &mut Remarks,
) -> NumberColumn {
    let attributes = &variable.attributes;
    let element = signed_as_declared(element, attributes);
    let texts = texts(attributes);
    let mut nulls = match view.read.fill_as_null {
        true => missing_numbers(variable, element, remarks),
        false => vec![],
    };
    // Labels become times after they are read, so here they are numbers.
    let are_times = view.read.decode_times
        && (matches!(TimeUnits::from_attributes(&texts), Ok(Some(_))) || count_times(&texts));
    if are_times && view.read.fill_as_null {
        nulls.extend(unwritten(variable, element));
    }
    let mut column = NumberColumn::with_nulls(element, &nulls, &view.read);
    if view.valid_range {
        column = column.within(valid_range(attributes, element));
    }
    if attributes.contains_key("scale_factor") || attributes.contains_key("add_offset") {
        let (unpacked, misunderstood) = unpacked(column, attributes);
        remarks.misunderstood.extend(misunderstood);
        column = unpacked;
    }
    match times(&texts, decode_times, remarks) {
        Some(units) => column.with_times(units),
        None => column,
    }
}

/// Whether numbers count time in a calendar whose dates SQL lacks.
fn count_times(attributes: &BTreeMap<String, String>) -> bool {
    let text = |name: &str| attributes.get(name).map(String::as_str).unwrap_or_default();
    CountedTimes::from_attributes(text("units"), text("calendar")).is_some()
}

/// Returns the number of cells that were never written, if it is the one of NetCDF, which is no time. Bytes have none.
fn unwritten(variable: &Variable, element: ElementType) -> Option<ZoneBound> {
    let default = match element {
        ElementType::I16 => "-32767",
        ElementType::U16 => "65535",
        ElementType::I32 => "-2147483647",
        ElementType::U32 => "4294967295",
        ElementType::I64 => "-9223372036854775806",
        ElementType::U64 => "18446744073709551614",
        ElementType::F32 | ElementType::F64 => "9.969209968386869e36",
        _ => return None,
    };
    element_of(element, default).filter(|it| *it == bound(&variable.fill))
}

/// Undoes CF packing. Also returns the declarations that cannot be parsed.
fn unpacked(column: NumberColumn, attributes: &Attributes) -> (NumberColumn, Vec<String>) {
    let is_single = |name: &str| matches!(attributes.get(name), Some(Attribute::Singles(_)));
    let names = ["scale_factor", "add_offset"];
    let texts = names.iter().filter_map(|name| {
        let exact = attributes.get(*name)?.exact_texts().join(", ");
        Some(((*name).to_owned(), exact))
    });
    let has_single_offset = is_single("add_offset") || !attributes.contains_key("add_offset");
    column.unpacked(&texts.collect(), is_single("scale_factor") && has_single_offset)
}

/// Returns the units of CF times, and adds to `remarks` why a time cannot be shown as one.
fn times(
    attributes: &BTreeMap<String, String>,
    decode_times: bool,
    remarks: &mut Remarks,
) -> Option<TimeUnits> {
    if !decode_times {
        return None;
    }
    match TimeUnits::from_attributes(attributes) {
        Ok(units) => units.or_else(|| TimeUnits::from_lengths(attributes)),
        Err(why) => {
            remarks.odd.push(format!("{why}; the values stay numbers"));
            None
        }
    }
}

/// Returns the type that `_Unsigned` declares: NetCDF-3 has no unsigned integers, so files store them as signed ones.
fn signed_as_declared(element: ElementType, attributes: &Attributes) -> ElementType {
    let declared = attributes.get("_Unsigned").map(|it| it.to_string().to_ascii_lowercase());
    match (declared.as_deref(), element) {
        (Some("true"), ElementType::I8) => ElementType::U8,
        (Some("true"), ElementType::I16) => ElementType::U16,
        (Some("true"), ElementType::I32) => ElementType::U32,
        (Some("true"), ElementType::I64) => ElementType::U64,
        (Some("false"), ElementType::U8) => ElementType::I8,
        (Some("false"), ElementType::U16) => ElementType::I16,
        (Some("false"), ElementType::U32) => ElementType::I32,
        (Some("false"), ElementType::U64) => ElementType::I64,
        _ => element,
    }
}

/// Returns the numbers that stand for missing data.
fn missing_numbers(
    variable: &Variable,
    element: ElementType,
    remarks: &mut Remarks,
) -> Vec<ZoneBound> {
    let mut nulls: Vec<ZoneBound> = Vec::new();
    if variable.fill_is_missing {
        nulls.push(bound(&variable.fill));
    }
    for name in ["_FillValue", "missing_value"] {
        for text in missing_texts(variable.attributes.get(name)) {
            match element_of(element, &text).or_else(|| other_sign(element, &text)) {
                Some(null) => nulls.push(null),
                None => remarks.misunderstood.push(format!(
                    "attribute {name} = \"{text}\" is not a value of type {element}; missing elements are shown as numbers, not as NULL"
                )),
            }
        }
    }
    let mut distinct: Vec<ZoneBound> = Vec::new();
    for null in nulls {
        if !distinct.contains(&null) {
            distinct.push(null);
        }
    }
    distinct
}

/// Returns the numbers of an attribute. Text is none, except what xarray and JSON write for numbers: a double in base64,
/// and the words for what is not finite.
fn missing_texts(attribute: Option<&Attribute>) -> Vec<String> {
    /// Letters of eight bytes in base64.
    const LETTERS: usize = 12;
    let is_number = |text: &String| {
        ["NaN", "Infinity", "-Infinity"].contains(&text.as_str())
            || (text.len() == LETTERS && text.ends_with('='))
    };
    match attribute {
        None => vec![],
        Some(text @ (Attribute::Text(_) | Attribute::Texts(_))) => {
            text.texts().into_iter().filter(is_number).collect()
        }
        Some(numbers) => numbers.exact_texts(),
    }
}

/// Returns the element with the bits of a number of the other sign: -1 of unsigned bytes is 255.
fn other_sign(element: ElementType, text: &str) -> Option<ZoneBound> {
    element_of(element.of_other_sign()?, text)
}

/// Returns the least and the greatest valid stored number, as far as they are declared.
///
/// The attributes have the stored type. A negative end of unsigned numbers is one that `_Unsigned` turns round: -6 of
/// a byte is 250.
fn valid_range(attributes: &Attributes, element: ElementType) -> (Option<f64>, Option<f64>) {
    let number = |name: &str, place: usize| {
        let texts = attributes.get(name).map(Attribute::exact_texts)?;
        let number = texts.get(place)?.trim().parse::<f64>().ok()?;
        let turned = element.is_unsigned() && number < 0.0;
        Some(if turned { number + 2_f64.powi(8 * element.size() as i32) } else { number })
    };
    let least = number("valid_range", 0).or_else(|| number("valid_min", 0));
    (least, number("valid_range", 1).or_else(|| number("valid_max", 0)))
}

/// Returns the cells that stand for missing data, for cells that are not numbers.
fn missing_cells(variable: &Variable, view: &HierarchyView) -> Vec<Vec<u8>> {
    let mut nulls = Vec::new();
    if view.read.nan_as_null
        && matches!(variable.cell, CellType::TimePoint(_) | CellType::TimeSpan(_))
    {
        nulls.push(NOT_A_TIME.to_le_bytes().to_vec());
    }
    if !view.read.fill_as_null {
        return nulls;
    }
    // As in xarray, the fill value of times is missing only if it is NaT.
    let is_time = matches!(variable.cell, CellType::TimePoint(_) | CellType::TimeSpan(_));
    if variable.fill_is_missing && !is_time {
        nulls.push(variable.fill.clone());
    }
    for name in ["_FillValue", "missing_value"] {
        let texts = variable.attributes.get(name).map(Attribute::texts).unwrap_or_default();
        // A remark about an unknown character set is made with the column.
        let encoding = encoding(variable, view, &mut Remarks::default());
        nulls.extend(texts.iter().filter_map(|text| missing_cell(&variable.cell, text, encoding)));
    }
    nulls
}

/// Returns the cell that an attribute means, for cells that are neither numbers nor bytes; `None` for another value.
fn missing_cell(cell: &CellType, text: &str, encoding: Encoding) -> Option<Vec<u8>> {
    Some(match cell {
        CellType::Text => encoding.encode(text)?,
        CellType::FixedUtf32(points) => {
            let mut cell: Vec<u8> =
                text.chars().flat_map(|point| u32::from(point).to_le_bytes()).collect();
            let width = 4 * *points as usize;
            if cell.len() > width {
                return None;
            }
            cell.resize(width, 0);
            cell
        }
        CellType::Boolean => vec![u8::from(text.parse::<bool>().ok()?)],
        CellType::Number(element) | CellType::Enumeration { index: element, .. } => {
            element_of(*element, text)?[..element.size() as usize].to_vec()
        }
        _ => return None,
    })
}

/// Returns the cells of an enumeration: text by the place of the name.
fn enumeration(index: ElementType, names: &[(i128, String)]) -> CellKind {
    /// The greatest number that is looked up by its place.
    const MOST: i128 = 1 << 16;
    let most = names.iter().map(|(number, _)| *number).max().unwrap_or_default();
    let is_small = names.iter().all(|(number, _)| (0..=MOST).contains(number));
    if !is_small {
        return CellKind::Scalar(Scalar::Number(index));
    }
    let mut texts: Vec<Option<&str>> = vec![None; most as usize + 1];
    for (number, name) in names {
        texts[*number as usize] = Some(name);
    }
    let values: ArrayRef = Arc::new(StringViewArray::from(texts));
    CellKind::Enumerated { index, values }
}
