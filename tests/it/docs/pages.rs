//! Checks the SQL, the links and the Rust code of the documentation. The tests of the program check the
//! console blocks.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow::util::pretty::pretty_format_batches_with_options;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::{DFParser, Statement};
use gridfusion::{ArrayOptions, GridfusionSessionContextExt, GridfusionSessionStateBuilderExt};

use crate::docs::blocks::{Block, Output, Page, agrees, pages};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// The example files. Each is a schema; a dataset of only one file is also a table.
const FILES: [&str; 4] = ["climate", "land", "model", "stations"];

/// A session like the one of `gridfusion examples/data/*.tet`, but always with two partitions.
async fn session() -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(2).with_information_schema(true);
    config.options_mut().format.null = "NULL".to_owned();
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .with_gridfusion()
        .build();
    let ctx = SessionContext::new_with_state(state);
    for file in FILES {
        let path = format!("examples/data/{file}.tet");
        ctx.register_array_schema(file, &path, ArrayOptions::default()).await.unwrap();
    }
    let catalog = ctx.catalog("datafusion").unwrap();
    let datasets = |file: &str| catalog.schema(file).unwrap().table_names();
    for file in FILES {
        for dataset in datasets(file) {
            if FILES.iter().filter(|other| datasets(other).contains(&dataset)).count() == 1 {
                let table = catalog.schema(file).unwrap().table(&dataset).await.unwrap();
                ctx.register_table(dataset, table.unwrap()).unwrap();
            }
        }
    }
    ctx
}

/// Runs statements; returns their outputs, one after the other.
pub(crate) async fn run(ctx: &SessionContext, sql: &str) -> Result<String> {
    let mut printed = String::new();
    for statement in DFParser::parse_sql(sql)? {
        let is_plan = matches!(statement, Statement::Explain(_));
        let plan = ctx.state().statement_to_plan(statement).await?;
        let frame = ctx.execute_logical_plan(plan).await?;
        let has_columns = !frame.schema().fields().is_empty();
        let schema = Arc::clone(frame.schema().inner());
        let mut batches = frame.collect().await?;
        if !has_columns {
            continue;
        }
        if is_plan {
            printed += &physical_plan(&batches);
        } else {
            batches.insert(0, RecordBatch::new_empty(schema));
            let config = ctx.copied_config();
            let options = FormatOptions::try_from(&config.options().format)?;
            printed += &format!("{}\n", pretty_format_batches_with_options(&batches, &options)?);
        }
    }
    Ok(printed)
}

/// The last plan that `EXPLAIN` returns, which is the physical plan, as plain text.
fn physical_plan(batches: &[RecordBatch]) -> String {
    let batch = batches.last().unwrap();
    let plans = ArrayFormatter::try_new(batch.column(1).as_ref(), &FormatOptions::default());
    plans.unwrap().value(batch.num_rows() - 1).to_string()
}

/// The output block right after the block `number`, if there is one.
fn output_of(page: &Page, number: usize) -> Option<&Block> {
    let next = page.blocks.get(number + 1).filter(|next| next.language() == "text")?;
    let between = &page.text[page.blocks[number].at.end..next.at.start];
    (between.trim() == "```\n\n```text").then_some(next)
}

/// Runs the SQL of a page. Returns the outputs that the page shows, and failures that it does not show.
async fn outputs(page: &Page) -> (Vec<Output>, Vec<String>) {
    let ctx = session().await;
    let (mut outputs, mut failures) = (vec![], vec![]);
    for (number, block) in page.blocks.iter().enumerate().filter(|(_, it)| it.is_run("sql")) {
        let sql = &page.text[block.at.clone()];
        let shown = output_of(page, number);
        let wants_error = shown.is_some_and(|it| page.text[it.at.clone()].starts_with("Error: "));
        let found = match run(&ctx, sql).await {
            Ok(found) => found,
            Err(error) if wants_error => format!("Error: {}", error.strip_backtrace()),
            Err(error) => {
                failures.push(format!("{}: {sql}{error}", page.line(block.at.start)));
                continue;
            }
        };
        if let Some(shown) = shown {
            outputs.push(Output { of: sql.to_owned(), at: shown.at.clone(), found });
        }
    }
    (outputs, failures)
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_of_the_documentation() {
    let mut failures = vec![];
    let mut count = 0;
    // Locations are relative to the repository, where cargo runs tests.
    for page in pages(Path::new(ROOT)) {
        let (outputs, failed) = outputs(&page).await;
        count += outputs.len();
        failures.extend(failed);
        failures.extend(page.settle(&outputs));
    }
    assert!(failures.is_empty(), "UPDATE_DOCS=1 updates the pages\n\n{}", failures.join("\n\n"));
    assert!(count > 0);
}

#[test]
fn rust_of_the_documentation_is_in_the_examples() {
    for page in pages(Path::new(ROOT)) {
        let rust = page.blocks.iter().filter(|block| block.language() == "rust");
        for (block, path) in rust.filter_map(|block| Some((block, block.keyword_text("from")?))) {
            let file = fs::read_to_string(Path::new(ROOT).join(path)).unwrap();
            let line = page.line(block.at.start);
            assert!(file.contains(&page.text[block.at.clone()]), "{line}: not found in {path}");
        }
    }
}

/// The targets of the links of a page, except web pages.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target).filter(|target| !target.contains("://"))
}

/// The anchors that GitHub derives from the headings of a page.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter_map(|line| line.trim_start_matches('#').strip_prefix(' '));
    let anchor = |heading: &str| {
        let kept = |c: &char| c.is_alphanumeric() || [' ', '-', '_'].contains(c);
        heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
    };
    headings.map(anchor).collect()
}

#[test]
fn links_lead_somewhere() {
    for page in pages(Path::new(ROOT)) {
        let folder = page.path.parent().unwrap();
        for link in links(&page.text) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.path.clone() } else { folder.join(file) };
            assert!(target.exists(), "{}: {link} does not exist", page.path.display());
            let is_there =
                || anchors(&fs::read_to_string(&target).unwrap()).contains(&anchor.to_owned());
            assert!(anchor.is_empty() || is_there(), "{}: no heading {link}", page.path.display());
        }
    }
}

/// `UPDATE_FIGURES=1 cargo bench` writes both pages.
#[test]
fn figures_of_the_readme_are_those_of_the_benches() {
    let read = |path: &str| fs::read_to_string(Path::new(ROOT).join(path)).unwrap();
    let (readme, figures) = (read("README.md"), read("benches/FIGURES.md"));
    let (_, section) = readme.split_once("\n## Performance\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert_eq!(rows.len(), 8);
    for row in rows {
        assert!(figures.lines().any(|line| line == row), "{row}");
    }
}

#[test]
fn every_chapter_is_in_the_index() {
    let index = fs::read_to_string(Path::new(ROOT).join("docs/SUMMARY.md")).unwrap();
    let pages = pages(Path::new(ROOT));
    for page in pages.iter().filter(|page| page.path.starts_with(Path::new(ROOT).join("docs"))) {
        let name = page.path.file_name().unwrap().to_str().unwrap();
        assert!(name == "SUMMARY.md" || links(&index).any(|link| link == name), "{name}");
    }
}

/// Tests which outputs count as equal.
#[test]
fn outputs_are_compared() {
    let table = "| a |\n| 1 |\n| 2 |\n";
    assert!(agrees(table, "| a |\n| 2 |\n| 1 |\n\n", "SELECT a"));
    assert!(!agrees(table, "| a |\n| 2 |\n| 1 |\n", "SELECT a ORDER BY a"));
    assert!(!agrees(table, "| a |\n| 1 |\n| 3 |\n", "SELECT a"));
    assert!(agrees("1 row\nElapsed 0.1 seconds.\n", "1 row\nElapsed 2.5 seconds.\n", ""));
    let plan = "Exec: a=[…],\n  b=1 …";
    assert!(agrees(plan, "Exec: a=[x y], b=1 c=2", "") && agrees(plan, "Exec: a=[], b=1\n", ""));
    assert!(!agrees(plan, "Exec: a=[], b=2", "") && !agrees(plan, "An Exec: a=[], b=1", ""));
    assert!(agrees("… b", "a\nb", "") && !agrees("… b", "a b c", ""));
}

#[test]
fn pages_are_taken_apart() {
    let text = "A\n\n```sql\nSELECT 1\n```\n\n```text\n1\n```\n\n```sql no_run: a bucket\nx\n```\n";
    let page = Page::new(text.to_owned(), "a.md".into());
    let blocks: Vec<_> = page
        .blocks
        .iter()
        .map(|it| (it.language(), &text[it.at.clone()], it.is_run("sql")))
        .collect();
    assert_eq!(
        blocks,
        [("sql", "SELECT 1\n", true), ("text", "1\n", false), ("sql", "x\n", false)]
    );
    assert_eq!(output_of(&page, 0).map(|it| it.at.clone()), Some(page.blocks[1].at.clone()));
    assert!(output_of(&page, 2).is_none());
    assert_eq!(page.line(page.blocks[1].at.start), "a.md:8");
}
