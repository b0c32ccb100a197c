//! Facts that pages, help and comments repeat: formats, functions, endings, options, features and limits. Each is compared
//! with the one place in the sources that has it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use datafusion::prelude::SessionContext;
use gridfusion::{GridfusionSessionContextExt, built_in_formats};

use crate::docs::style::checked_files;
use crate::support::{query, shipped};

fn read(path: &str) -> String {
    fs::read_to_string(shipped(path)).unwrap()
}

/// The document, with the table that begins with the line `head` replaced by a table of `rows`.
pub(crate) fn with_table(document: &str, head: &str, rows: &[String]) -> String {
    let start = document.find(head).unwrap_or_else(|| panic!("no table {head}"));
    let is_row = |line: &&str| line.starts_with('|');
    let old: usize = document[start..].split_inclusive('\n').take_while(is_row).map(str::len).sum();
    let (before, after) = (&document[..start], &document[start + old..]);
    let rule = "|---".repeat(head.matches('|').count() - 1);
    format!("{before}{head}\n{rule}|\n{}{after}", rows.concat())
}

/// Compares a table of a document with `rows`. `UPDATE_DOCS=1` updates the document.
pub(crate) fn settle_table(document: &str, head: &str, rows: &[String]) {
    let found = read(document);
    let expected = with_table(&found, head, rows);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(shipped(document), &expected).unwrap();
    } else {
        assert!(found == expected, "{document}: the table should be\n{}", rows.concat());
    }
}

/// The texts in backticks of a line.
pub(crate) fn code_spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The texts in backticks in the first cells of the table that begins with the line `head`.
fn first_cells<'a>(document: &'a str, head: &str) -> BTreeSet<&'a str> {
    let start = document.find(head).unwrap_or_else(|| panic!("no table {head}"));
    let lines = document[start..].lines().map(|line| line.trim_start_matches("//! "));
    let rows = lines.take_while(|line| line.starts_with('|')).skip(2);
    rows.filter_map(|row| row.split('|').nth(1)).flat_map(code_spans).collect()
}

/// The names of the files of Rust in a folder, without their endings.
fn programs(folder: &str) -> BTreeSet<String> {
    let paths = fs::read_dir(shipped(folder)).unwrap().map(|entry| entry.unwrap().path());
    let files = paths.filter(|path| path.extension().is_some_and(|ending| ending == "rs"));
    files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

/// The modes in which `COPY` writes each format.
fn modes() -> BTreeMap<&'static str, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ctx = SessionContext::new();
    ctx.enable_gridfusion();
    let modes = ["zarr", "netcdf", "tet", "tiledb"].map(|name| {
        let sql = format!("COPY (SELECT 1 AS v) TO 'x' STORED AS {name} OPTIONS ('mode' 'none')");
        let error = runtime.block_on(query(&ctx, &sql)).unwrap_err().to_string();
        let (_, modes) = error.split_once(&format!("the format {name} has ")).unwrap();
        let modes = modes.lines().next().unwrap().split(" and ").map(|it| format!("`{it}`"));
        (name, modes.collect::<Vec<_>>().join(", "))
    });
    modes.into_iter().collect()
}

#[test]
fn the_table_of_formats() {
    let formats = built_in_formats();
    let list = |names: Vec<String>| names.join(", ");
    let modes = modes();
    let row = |format: &dyn gridfusion::ArrayFormat| {
        let title = match format.title() {
            ending if ending.starts_with('.') => format!("`{ending}`"),
            title => title.to_owned(),
        };
        let facts = format.info_functions().iter().map(|function| format!("`{}`", function.name));
        let read = std::iter::once(format!("`read_{}`", format.name()));
        let endings = format.endings().iter().map(|it| format!("`{}`", it.ending));
        format!(
            "| {title} | {} | `{}` | {} | {} |\n",
            list(read.chain(facts).collect()),
            format.name().to_uppercase(),
            list(endings.collect()),
            modes.get(format.name()).map_or("", String::as_str),
        )
    };
    let rows: Vec<String> = formats.iter().map(|format| row(&**format)).collect();
    let head = "| format | table functions | `STORED AS` | names end with | modes of `COPY` |";
    settle_table("docs/opening-data.md", head, &rows);
}

/// Paragraphs and lines that list all formats, by their first words.
const LISTS_OF_FORMATS: [(&str, &str); 12] = [
    ("README.md", "SQL over chunked N-dimensional arrays"),
    ("README.md", "gridfusion reads "),
    ("docs/README.md", "gridfusion runs SQL over"),
    ("docs/comparison.md", "| SQL, joins and `GROUP BY` over"),
    ("docs/object-stores.md", "URLs name "),
    ("docs/cli.md", "Each PATH is "),
    ("src/lib.rs", "//! SQL over chunked N-dimensional arrays"),
    ("Cargo.toml", "description = "),
    ("cli/Cargo.toml", "description = "),
    ("cli/src/args.rs", "/// Query "),
    ("cli/src/args.rs", "    /// Each PATH is "),
    ("crates/core/README.md", "A program that reads arrays"),
];

#[test]
fn lists_of_formats_are_complete() {
    for (path, words) in LISTS_OF_FORMATS {
        let text = read(path);
        let start = text.find(words).unwrap_or_else(|| panic!("{path}: {words}"));
        let ends = ["\n\n", "///\n", "//!\n", "\n| ", "\nname", "\nversion"];
        let end = ends.iter().filter_map(|end| text[start..].find(end)).min().unwrap();
        let list = text[start..start + end].to_lowercase();
        for format in built_in_formats().iter() {
            let name = format.name();
            assert!(
                list.contains(name) || name == "netcdf" && list.contains("gridfusion-cf"),
                "{path}: {list}"
            );
        }
    }
}

#[test]
fn functions_with_facts_have_a_row() {
    let pages = ["docs/info.md", "docs/tiledb.md", "docs/zarr.md"].map(read).concat();
    for format in built_in_formats().iter() {
        for function in format.info_functions() {
            let row = format!("| `{}(path)` |", function.name);
            assert!(pages.contains(&row), "{row}");
        }
    }
}

#[test]
fn settings_that_pages_and_comments_name_exist() {
    let formats = built_in_formats();
    let own = formats.iter().flat_map(|format| format.option_table().options());
    let options: Vec<_> = own.chain(formats.settings()).collect();
    let default = |name: &str| options.iter().find(|it| it.name == name).map(|it| it.default);
    let mut named = BTreeSet::new();
    // The changelog has names of the past.
    for path in checked_files().iter().filter(|path| *path != "CHANGELOG.md") {
        let text = read(path);
        for span in text.lines().flat_map(code_spans) {
            let Some(name) = span.strip_prefix("gridfusion.") else { continue };
            let name = name.split([' ', '=', ';']).next().unwrap();
            let is_name = name.chars().all(|it| it.is_ascii_lowercase() || "_.".contains(it));
            // A mark in the metadata of fields is no setting.
            if is_name && !name.ends_with('.') && !name.contains("NAME") && name != "times" {
                assert!(default(name).is_some(), "{path}: no setting `gridfusion.{name}`");
                named.insert(name.to_owned());
            }
        }
        // Tables of settings on the pages of their topics.
        for row in text.lines().filter(|line| line.starts_with("| `gridfusion.")) {
            let cells: Vec<&str> = row.split(" | ").collect();
            let name = cells[0].trim_matches(['|', ' ', '`']).strip_prefix("gridfusion.").unwrap();
            assert_eq!(default(name), Some(cells[1]), "{path}: {row}");
        }
    }
    assert!(named.len() > 10, "{named:?}");
    let page = read("docs/object-stores.md");
    let listed = first_cells(&page, "| setting | raise it | lower it |");
    let requests = options.iter().filter(|it| it.name.starts_with("remote_")).map(|it| it.name);
    assert_eq!(listed, requests.collect());
}

#[test]
fn features_crates_and_programs_are_listed() {
    let (manifest, library) = (read("Cargo.toml"), read("src/lib.rs"));
    let (_, features) = manifest.split_once("[features]\n").unwrap();
    let features = features.lines().take_while(|line| !line.is_empty());
    let features: BTreeSet<&str> =
        features.filter_map(|line| line.split_once(" = ")).map(|(name, _)| name).collect();
    let head = "| feature | default | adds |";
    for (path, text) in
        [("src/lib.rs", &library), ("docs/embedding.md", &read("docs/embedding.md"))]
    {
        let mut listed = first_cells(text, head);
        listed.insert("default");
        assert_eq!(listed, features, "{path}");
    }
    let examples = first_cells(&library, "| program | shows |");
    assert_eq!(examples, programs("examples").iter().map(String::as_str).collect());
    let page = read("CONTRIBUTING.md");
    let rows = page.lines().filter(|line| line.contains("cargo bench -- "));
    let listed: BTreeSet<&str> =
        rows.flat_map(code_spans).map(|it| it.trim_start_matches("cargo bench -- ")).collect();
    let program = read("benches/main.rs");
    for bench in programs("benches").iter().filter(|file| *file != "main") {
        assert!(listed.contains(bench.as_str()), "CONTRIBUTING.md: no bench {bench}");
        let row = format!("(\"{bench}\", {bench}::main),");
        assert!(program.contains(&row), "benches/main.rs: no {row}");
    }
    let page = read("docs/arrays.md");
    let crates = fs::read_dir(shipped("crates")).unwrap().map(|entry| entry.unwrap().file_name());
    let crates: BTreeSet<String> =
        crates.map(|name| format!("gridfusion-{}", name.to_str().unwrap())).collect();
    let listed = first_cells(&page, "| crate | reads |");
    assert_eq!(listed, crates.iter().map(String::as_str).collect());
    let page = read("fuzz/README.md");
    let listed = first_cells(&page, "| target | input |");
    for target in programs("fuzz/fuzz_targets") {
        let names = |it: &&str| match it.strip_suffix('*') {
            Some(start) => target.starts_with(start),
            None => target == *it,
        };
        assert!(listed.iter().any(names), "fuzz/README.md: no target {target}");
    }
}

#[test]
fn crates_with_overflow_checks_are_listed() {
    let (manifest, page) = (read("Cargo.toml"), read("docs/embedding.md"));
    let profiles = manifest.split("[profile.release.package.").skip(1);
    let profiles =
        profiles.filter(|it| it.lines().any(|line| line.starts_with("overflow-checks = true")));
    let checked: BTreeSet<&str> = profiles.filter_map(|it| it.split(']').next()).collect();
    let lines = page.lines().filter_map(|line| line.strip_suffix(".overflow-checks = true"));
    assert_eq!(lines.collect::<BTreeSet<_>>(), checked);
}

/// Limits that pages repeat: the page with its text, and the source with its line.
const LIMITS: &str = "
docs/limits.md: | 2²⁸; above that, => src/exec/pruning/scope.rs: MAX_LABELS: u64 = 1 << 28;
docs/limits.md: | 2²⁴ | => src/exec/matching/axis_labels.rs: MAX_LABELS: u64 = 1 << 24;
docs/limits.md: | 2²², or as many as its => crates/tet/src/reader.rs: MAX_MISSING_CHUNKS: u64 = 1 << 22;
docs/limits.md: | 2²², or as many as were => crates/tiledb/src/chunks.rs: MAX_UNWRITTEN_CHUNKS: u64 = 1 << 22;
docs/limits.md: at most 2²⁸. It => crates/core/src/source/mosaic/concat_axis.rs: MOST_LABELS: u64 = 1 << 28;
docs/limits.md: within 64 MiB => crates/core/src/source/mosaic/options.rs: chunk_bytes: 1 << 26,
docs/group-by.md: more than 2²⁴ selected => src/exec/matching/axis_labels.rs: MAX_LABELS: u64 = 1 << 24;
docs/group-by.md: more than 65536 possible => src/exec/reduce/strategy.rs: SMALL: u64 = 1 << 16;
docs/many-files.md: 32 files at a time => crates/core/src/io/mod.rs: MAX_CONCURRENT_IO: usize = 32;
docs/many-files.md: up to 512 files => src/provider/files.rs: MOST_OPEN: usize = 512;
docs/embedding.md: up to 32 such tables => src/codec/tables.rs: MOST_TABLES: usize = 32;
docs/object-stores.md: first 128 KiB of a file => crates/core/src/io/remote/store.rs: OPEN_BYTES: u64 = 128 << 10;
docs/verify.md: more than 16,777,216 chunks => crates/core/src/source/provided/verify.rs: MOST_CHUNKS: u64 = 1 << 24;
docs/zarr.md: up to 1000 objects => crates/zarr/src/store.rs: SOME_OBJECTS: usize = 1000;
docs/trust.md: at most 1024 connections => distributed/src/connections.rs: most: 1024,
DESIGN.md: else 256 MiB => src/exec/chunk_memory.rs: DEFAULT_BUDGET: u64 = 1 << 28;
src/exec/in_flight.rs: about 2 MiB => src/exec/chunks.rs: BATCH_BYTES: usize = 2 << 20;
";

#[test]
fn limits_of_pages_are_those_of_the_sources() {
    let rows: Vec<_> = LIMITS.lines().filter_map(|line| line.split_once(" => ")).collect();
    assert_eq!(rows.len() + 1, LIMITS.lines().count());
    for (page, source) in rows {
        for (path, text) in [page, source].map(|it| it.split_once(": ").unwrap()) {
            assert!(
                read(path).contains(text),
                "{path} lacks \"{text}\". Change both: {page}, {source}"
            );
        }
    }
}

#[test]
fn tables_are_replaced() {
    let page = "a\n| x | y |\n|---|---|\n| 1 | 2 |\n\nb\n";
    let table = with_table(page, "| x | y |", &["| 3 | 4 |\n".to_owned()]);
    assert_eq!(table, "a\n| x | y |\n|---|---|\n| 3 | 4 |\n\nb\n");
    assert_eq!(first_cells("| x |\n|---|\n| `1`, `2` | `3` |\n", "| x |"), ["1", "2"].into());
}
