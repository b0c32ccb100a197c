//! The document as a text for people.

use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::ScalarValue;

use super::columns::Side::{Left, Right};
use super::columns::{Columns, bytes, counted, printable, shape};
use super::document::{Array, Dataset, Document, Event, Folder, Pair, Tet};

/// The whole text.
pub(super) fn of(document: &Document) -> String {
    let mut text = String::new();
    match document {
        Document::Tet(tet) => print_tet(tet, &mut text),
        Document::Array(array) => print_array(array, &mut text),
        Document::Folder(folder) => print_folder(folder, &mut text),
    }
    text
}

/// The first two lines: what it is called, and what it is.
fn print_title(path: &str, facts: &[String], text: &mut String) {
    text.extend([&printable(path), "\n  ", &facts.join(", "), "\n"]);
}

/// A table with an empty line before it.
fn print_table(table: &Columns, text: &mut String) {
    let mut lines = String::new();
    table.print(&mut lines);
    if !lines.is_empty() {
        text.extend(["\n", &lines]);
    }
}

fn print_warnings(warnings: &[String], text: &mut String) {
    if warnings.is_empty() {
        return;
    }
    text.push_str("\nWARNINGS\n");
    for warning in warnings {
        text.extend([&printable(warning), "\n"]);
    }
}

fn print_tet(tet: &Tet, text: &mut String) {
    let what = match tet.generation {
        Some(generation) => format!(".tet.d package, generation {generation}"),
        None => ".tet file".to_owned(),
    };
    let zone_maps = match tet.datasets.iter().filter(|dataset| dataset.has_zone_maps).count() {
        0 => "no zone maps".to_owned(),
        all if all == tet.datasets.len() => "zone maps".to_owned(),
        some => format!("zone maps of {some}"),
    };
    let facts = [
        what,
        format!("layout version {}", tet.layout_version),
        bytes(tet.size_bytes),
        counted(tet.datasets.len() as u64, "dataset"),
        zone_maps,
    ];
    print_title(&tet.path, &facts, text);
    print_table(&dataset_table(&tet.datasets), text);
    let mut table = Columns::new(&[
        ("DIMENSION", Left),
        ("LENGTH", Right),
        ("TYPE", Left),
        ("FIRST", Left),
        ("LAST", Left),
        ("UNITS", Left),
    ]);
    for it in &tet.dimensions {
        table.add([
            Some(it.name.clone()),
            it.length.map(|length| length.to_string()),
            it.data_type.clone(),
            it.first.clone(),
            it.last.clone(),
            it.units.clone(),
        ]);
    }
    print_table(&table, text);
    print_table(&history_table(&tet.history), text);
    print_pairs(tet.metadata.as_deref(), text);
    print_chunks(tet, text);
    print_warnings(&tet.warnings, text);
}

fn dataset_table(datasets: &[Dataset]) -> Columns {
    let mut table = Columns::new(&[
        ("DATASET", Left),
        ("TYPE", Left),
        ("SHAPE", Left),
        ("CHUNKS", Left),
        ("CODEC", Left),
        ("STORED", Right),
        ("RATIO", Right),
        ("UNITS", Left),
        ("DIMENSIONS", Left),
    ]);
    for it in datasets {
        let chunks = it.chunks.zip(it.chunk_shape.as_ref());
        table.add([
            Some(it.name.clone()),
            it.element_type.clone(),
            Some(shape(&it.shape)),
            chunks.map(|(chunks, lengths)| format!("{chunks} of {}", shape(lengths))),
            it.codec.map(str::to_owned),
            Some(bytes(it.stored_bytes)),
            it.ratio.map(|ratio| format!("{ratio:.2}")),
            it.units.clone(),
            Some(it.dimensions.join(", ")),
        ]);
    }
    table
}

fn history_table(history: &[Event]) -> Columns {
    let mut table = Columns::new(&[("HISTORY", Left), ("OPERATION", Left), ("SOURCE", Left)]);
    for Event { op, source, at } in history {
        let time = at.parse().ok().and_then(utc_seconds).unwrap_or_else(|| at.clone());
        table.add([Some(time), Some(op.clone()), Some(source.clone())]);
    }
    table
}

fn print_pairs(pairs: Option<&[Pair]>, text: &mut String) {
    let mut table = Columns::new(&[("ATTRIBUTE", Left), ("OF", Left), ("VALUE", Left)]);
    for Pair { dataset, key, value } in pairs.unwrap_or_default() {
        table.add([Some(key.clone()), dataset.clone(), Some(value.clone())]);
    }
    print_table(&table, text);
}

fn print_chunks(tet: &Tet, text: &mut String) {
    let Some(chunks) = &tet.chunk_list else { return };
    let mut table = Columns::new(&[
        ("CHUNK", Left),
        ("DATASET", Left),
        ("OFFSET", Right),
        ("STORED", Right),
        ("RAW", Right),
        ("CODEC", Left),
        ("NULLS", Right),
        ("LEAST", Right),
        ("GREATEST", Right),
    ]);
    for it in chunks {
        table.add([
            Some(format!("{:?}", it.chunk)),
            Some(it.dataset.clone()),
            Some(it.file_offset.to_string()),
            Some(it.stored_bytes.to_string()),
            Some(it.raw_bytes.to_string()),
            Some(it.codec.clone()),
            it.null_count.map(|count| count.to_string()),
            it.min_value.clone(),
            it.max_value.clone(),
        ]);
    }
    print_table(&table, text);
    let stored = tet.datasets.iter().map(|it| it.stored_chunks).fold(0, u64::saturating_add);
    print_rest(stored, chunks.len(), text);
}

/// How many there are beside those that are shown.
fn print_rest(all: u64, shown: usize, text: &mut String) {
    let rest = all.saturating_sub(shown as u64);
    if rest > 0 {
        text.push_str(&format!("… and {rest} more; -n inf shows all\n"));
    }
}

fn print_array(array: &Array, text: &mut String) {
    let mut facts = vec![
        format!("{} TileDB array", array.kind),
        format!("format version {}", array.format_version),
        bytes(array.stored_bytes),
        counted(array.fragments, "fragment"),
    ];
    match (&array.written_from, &array.written_to) {
        (Some(from), Some(to)) if from == to => facts[3] += &format!(" of {from}"),
        (Some(from), Some(to)) => facts[3] += &format!(" of {from} to {to}"),
        _ => {}
    }
    let cells = array.tile_shape.as_deref().map(|lengths| shape(lengths) + " ").unwrap_or_default();
    let (tile_order, cell_order) = (&array.tile_order, &array.cell_order);
    print_title(&array.path, &facts, text);
    text.push_str(&format!("  {tile_order} tiles of {cells}{cell_order} cells\n"));
    print_axes(array, text);
    let mut table = Columns::new(&[
        ("ATTRIBUTE", Left),
        ("TYPE", Left),
        ("VALUES", Left),
        ("NULL", Left),
        ("STORED", Right),
        ("RATIO", Right),
        ("FILTERS", Left),
        ("ENUMERATION", Left),
    ]);
    let one_value = array.attributes.iter().all(|it| it.values_per_cell == "1");
    for it in &array.attributes {
        table.add([
            Some(it.name.clone()),
            Some(it.datatype.clone()),
            (!one_value).then(|| it.values_per_cell.clone()),
            it.nullable.then(|| "yes".to_owned()),
            Some(bytes(it.stored_bytes)),
            it.ratio.map(|ratio| format!("{ratio:.2}")),
            Some(it.filters.clone()),
            it.enumeration.clone(),
        ]);
    }
    print_table(&table, text);
    print_pairs(array.metadata.as_deref(), text);
    print_fragments(array, text);
    print_warnings(&array.warnings, text);
}

fn print_axes(array: &Array, text: &mut String) {
    let mut table = Columns::new(&[
        ("DIMENSION", Left),
        ("TYPE", Left),
        ("LENGTH", Right),
        ("FIRST", Left),
        ("LAST", Left),
        ("TILE", Right),
        ("DOMAIN", Left),
    ]);
    for it in &array.dimensions {
        table.add([
            Some(it.name.clone()),
            it.data_type.clone(),
            it.length.map(|length| length.to_string()),
            it.first.clone(),
            it.last.clone(),
            it.tile_extent.clone(),
            it.domain.as_ref().map(|ends| ends.join(" to ")),
        ]);
    }
    print_table(&table, text);
}

fn print_fragments(array: &Array, text: &mut String) {
    let Some(fragments) = &array.fragment_list else { return };
    let mut table = Columns::new(&[
        ("FRAGMENT", Left),
        ("FROM", Left),
        ("TO", Left),
        ("TILES", Right),
        ("CELLS", Right),
        ("STORED", Right),
    ]);
    for it in fragments {
        table.add([
            Some(it.name.clone()),
            Some(it.written_from.clone()),
            Some(it.written_to.clone()),
            Some(it.tiles.to_string()),
            it.cells.map(|cells| cells.to_string()),
            Some(bytes(it.stored_bytes)),
        ]);
    }
    print_table(&table, text);
    print_rest(array.fragments, fragments.len(), text);
}

fn print_folder(folder: &Folder, text: &mut String) {
    let count = counted(folder.arrays.len() as u64, "array");
    print_title(&folder.path, &[format!("TileDB, {count}")], text);
    let mut table = Columns::new(&[
        ("ARRAY", Left),
        ("KIND", Left),
        ("SHAPE", Left),
        ("TILE", Left),
        ("FRAGMENTS", Right),
        ("STORED", Right),
        ("DIMENSIONS", Left),
        ("ATTRIBUTES", Left),
    ]);
    for it in &folder.arrays {
        let dimensions: Vec<&str> = it.dimensions.iter().map(|it| it.name.as_str()).collect();
        let attributes: Vec<&str> = it.attributes.iter().map(|it| it.name.as_str()).collect();
        table.add([
            Some(it.name.clone()),
            Some(it.kind.clone()),
            it.shape.as_deref().map(shape),
            it.tile_shape.as_deref().map(shape),
            Some(it.fragments.to_string()),
            Some(bytes(it.stored_bytes)),
            Some(dimensions.join(", ")),
            Some(attributes.join(", ")),
        ]);
    }
    print_table(&table, text);
    print_warnings(&folder.warnings, text);
    // Who asks for more gets it array by array.
    let has_more = |array: &&Array| array.metadata.is_some() || array.fragment_list.is_some();
    for array in folder.arrays.iter().filter(has_more) {
        text.push('\n');
        print_array(array, text);
    }
}

/// A time in seconds since 1970, as a date; `None` beyond what a date can be.
fn utc_seconds(seconds: i64) -> Option<String> {
    utc(&ScalarValue::TimestampSecond(Some(seconds), Some("UTC".into())))
}

/// A time in milliseconds since 1970 as a date, or as it is beyond what a date can be.
pub(super) fn utc_milliseconds(milliseconds: u64) -> String {
    let time = i64::try_from(milliseconds).ok().and_then(|milliseconds| {
        utc(&ScalarValue::TimestampMillisecond(Some(milliseconds), Some("UTC".into())))
    });
    time.unwrap_or_else(|| milliseconds.to_string())
}

fn utc(time: &ScalarValue) -> Option<String> {
    let options = FormatOptions::new().with_display_error(false);
    let time = time.to_array().ok()?;
    ArrayFormatter::try_new(&time, &options).ok()?.value(0).try_to_string().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(utc_seconds(1_700_000_000).unwrap(), "2023-11-14T22:13:20Z");
        assert_eq!(utc_milliseconds(10), "1970-01-01T00:00:00.010Z");
        assert_eq!(utc_seconds(i64::MAX), None);
        assert_eq!(utc_milliseconds(u64::MAX), u64::MAX.to_string());
    }
}
