//! Checks of `array_info`, `array_chunks` and `array_attributes`, against the arrays that were written.

use std::fs;

use crate::conformance::doors;
use crate::conformance::doors::FILL;
use crate::conformance::logical::{Cell, Chunk, Element, Values};
use crate::conformance::subject::Subject;
use crate::sql::ways_in::in_memory;
use crate::support::{query, rows_from};

/// The condition for rows of one variable. In some formats an array is a dataset with several variables, and in others
/// each variable is a dataset.
fn of(subject: &Subject<'_>, values: &Values) -> String {
    let (array, own) = (subject.array.name, values.name);
    format!("dataset IN ('{own}', '{array}') AND variable IN ('{own}', 'value')")
}

fn list<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|it| it.to_string()).collect();
    format!("[{}]", items.join(", "))
}

fn is_all_fill(values: &Values, chunk: &Chunk) -> bool {
    chunk.places.iter().all(|at| values.cells[*at] == Cell::Fill)
}

pub(crate) async fn info_has_shapes_and_types(subject: &Subject<'_>) {
    let (ctx, location) = (subject.session(2, 8192), subject.location());
    let (array, what) = (&subject.array, subject.what());
    for values in &array.values {
        let columns =
            "role, element_type, data_type, dimensions, shape, chunk_shape, chunks, warnings";
        let sql =
            format!("SELECT {columns} FROM array_info('{location}') WHERE {}", of(subject, values));
        let (element, column) = match values.element {
            Element::F32 => ("f32", "Float32"),
            Element::F64 => ("f64", "Float64"),
            Element::I32 => ("i32", "Int32"),
            Element::I64 => ("i64", "Int64"),
        };
        let expected = [
            "data".to_owned(),
            element.to_owned(),
            column.to_owned(),
            list(array.dimensions()),
            list(array.shape()),
            list(array.axes.iter().map(|axis| axis.chunk)),
            array.chunks().len().to_string(),
            "[]".to_owned(),
        ];
        assert_eq!(rows_from(&ctx, &sql).await, [expected], "{what}: {sql}");
        let sql = format!(
            "SELECT stored_chunks, stored_bytes, raw_bytes FROM array_info('{location}') WHERE {}",
            of(subject, values)
        );
        let rows = rows_from(&ctx, &sql).await;
        let (all, fill) = (array.chunks(), |it: &&Chunk| is_all_fill(values, it));
        let written = all.len() - all.iter().filter(fill).count();
        if let Ok(count) = rows[0][0].parse::<usize>() {
            assert!((written..=all.len()).contains(&count), "{what}: {count} of {}", all.len());
        }
        // Chunks have places for all that is counted.
        let sums = "sum(stored_bytes), sum(raw_bytes)";
        let sql =
            format!("SELECT {sums} FROM array_chunks('{location}') WHERE {}", of(subject, values));
        let sums = rows_from(&ctx, &sql).await;
        let total_and_sum = |at: usize| {
            let number = |text: &str| text.parse::<u64>().ok();
            Some((number(&rows[0][at + 1])?, number(&sums[0][at]).unwrap()))
        };
        // Records of other variables may lie between those of a chunk.
        assert!(total_and_sum(0).is_none_or(|(total, sum)| total <= sum), "{what}: {sums:?}");
        assert!(total_and_sum(1).is_none_or(|(total, sum)| total == sum), "{what}: {sums:?}");
    }
}

pub(crate) async fn chunks_have_places(subject: &Subject<'_>) {
    let (ctx, location) = (subject.session(2, 8192), subject.location());
    let what = subject.what();
    for values in &subject.array.values {
        let columns =
            "chunk, start, shape, pieces, object, file_offset, stored_bytes, raw_bytes, codec";
        let sql = format!(
            "SELECT {columns} FROM array_chunks('{location}') WHERE {} ORDER BY chunk",
            of(subject, values)
        );
        let (rows, chunks) = (rows_from(&ctx, &sql).await, subject.array.chunks());
        assert_eq!(rows.len(), chunks.len(), "{what}");
        for (row, chunk) in rows.iter().zip(&chunks) {
            let grid = [list(&chunk.at), list(&chunk.start), list(&chunk.shape)];
            assert_eq!(row[..3], grid, "{what}");
            if row[3] == "0" {
                assert!(is_all_fill(values, chunk), "{what}: {row:?}");
                assert!(row[4..].iter().all(|it| it == "NULL"), "{what}: {row:?}");
                continue;
            }
            let number = |at: usize| row[at].parse::<usize>().unwrap();
            let [stored, raw] = [6, 7].map(number);
            let cells = chunk.places.len() * values.element.bytes(Cell::Fill).len();
            assert!(raw >= cells, "{what}: {row:?}");
            if subject.capabilities.holds_chunks_in_metadata && row[4] == "NULL" {
                assert_eq!([&row[3], &row[5]], ["1", "NULL"], "{what}: {row:?}");
                assert!(stored > 0, "{what}: {row:?}");
                continue;
            }
            let offset = number(5);
            let object =
                fs::read(&row[4]).unwrap_or_else(|error| panic!("{what}: {row:?}: {error}"));
            if row[3] != "1" {
                continue;
            }
            let bytes = &object[offset..offset + stored];
            let mut sorted = values.bytes(&chunk.places);
            // The order of cells and of bytes is the format's own.
            if row[8] == "raw" && raw == cells {
                let mut bytes = bytes.to_vec();
                bytes.sort_unstable();
                sorted.sort_unstable();
                assert_eq!(bytes, sorted, "{what}: {row:?}");
            }
        }
    }
}

pub(crate) async fn chunks_have_bounds(subject: &Subject<'_>) {
    let (ctx, location) = (subject.session(2, 8192), subject.location());
    let mut known = 0;
    for values in &subject.array.values {
        let sql = format!(
            "SELECT null_count, min_value, max_value FROM array_chunks('{location}', {FILL} => true) WHERE {} ORDER BY chunk",
            of(subject, values)
        );
        let scale = if values.element.is_float() { 0.25 } else { 1.0 };
        for (row, chunk) in rows_from(&ctx, &sql).await.iter().zip(subject.array.chunks()) {
            if row[0] == "NULL" {
                continue;
            }
            known += 1;
            let numbers = chunk.places.iter().filter_map(|place| match values.cells[*place] {
                Cell::Number(number) => Some(f64::from(number) * scale),
                Cell::Nan | Cell::Fill => None,
            });
            let numbers: Vec<f64> = numbers.collect();
            assert_eq!(row[0], (chunk.places.len() - numbers.len()).to_string(), "{row:?}");
            let ends = [
                numbers.iter().copied().reduce(f64::min),
                numbers.iter().copied().reduce(f64::max),
            ];
            for (text, end) in row[1..].iter().zip(ends) {
                assert_eq!(text.parse().ok(), end, "{}: {row:?}", subject.what());
            }
        }
    }
    let expected = subject.capabilities.notes_bounds && !subject.array.has_nulls();
    assert!(known > 0 || !expected, "{}: no chunk has bounds", subject.what());
    assert!(known == 0 || subject.capabilities.notes_bounds, "{}", subject.what());
}

pub(crate) async fn attributes_are_listed(subject: &Subject<'_>) {
    let (ctx, location) = (subject.session(2, 8192), subject.location());
    for values in &subject.array.values {
        let sql = format!(
            "SELECT CAST(value AS DOUBLE) = {} FROM array_attributes('{location}') WHERE key = '_FillValue' AND {}",
            values.element.fill(),
            of(subject, values)
        );
        let expected: &[[&str; 1]] =
            if subject.capabilities.has_attributes { &[["true"]] } else { &[] };
        assert_eq!(rows_from(&ctx, &sql).await, expected, "{}", subject.what());
    }
}

/// A store in memory has the same facts, apart from what takes many requests.
pub(crate) async fn facts_from_a_store(subject: &Subject<'_>) {
    let ctx = subject.session(2, 8192);
    in_memory(&ctx, subject.folder.path()).await;
    let local = subject.location();
    let name = subject.path().file_name().unwrap().to_str().unwrap().to_owned();
    let remote = format!("memory://bucket/data/{name}");
    for sql in [
        "SELECT dataset, variable, data_type, shape, chunks, codec FROM array_info('PLACE')",
        "SELECT dataset, variable, chunk, start, pieces, file_offset, stored_bytes, raw_bytes FROM array_chunks('PLACE')",
        "SELECT * FROM array_attributes('PLACE')",
    ] {
        let [here, there] = [&local, &remote].map(|place| sql.replace("PLACE", place));
        let (here, there) = (rows_from(&ctx, &here).await, rows_from(&ctx, &there).await);
        assert_eq!(here, there, "{}: {sql}", subject.what());
    }
}

pub(crate) async fn mistakes_are_named(subject: &Subject<'_>) {
    let (ctx, location) = (subject.session(1, 8192), subject.location());
    for function in ["array_info", "array_chunks", "array_attributes"] {
        for (arguments, named) in [
            (format!("'{location}', nonsense => 1"), "nonsense"),
            (format!("'{location}', io => 'fast'"), "fast"),
            (format!("'{location}', 'nowhere'"), "nowhere"),
            (format!("'{location}', dataset => 'nowhere'"), "nowhere"),
            (format!("['{location}', '{location}']"), "one path"),
            (String::new(), "path"),
            ("17.5".to_owned(), "17.5"),
        ] {
            let sql = format!("SELECT * FROM {function}({arguments})");
            let error = query(&ctx, &sql).await.expect_err(&sql);
            assert!(doors::is_mistake(&error), "{sql}: {error:?}");
            assert!(error.to_string().contains(named), "{sql}: {error}");
        }
        let sql = format!("SELECT * FROM {function}('{location}-nowhere')");
        let error = query(&ctx, &sql).await.expect_err(&sql).to_string();
        assert!(error.contains("-nowhere"), "{error}");
    }
}
