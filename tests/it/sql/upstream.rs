//! `src/exec/mended/UPSTREAM.md`: the queries that DataFusion alone answers wrongly. Other tests run the queries in a session with
//! gridfusion.

use std::fs;
use std::path::Path;

use datafusion::prelude::{SessionConfig, SessionContext};
use gridfusion::without_panics;

use crate::docs::blocks::{Block, Output, Page};
use crate::docs::pages::run;

/// A session without gridfusion, and otherwise like that of the documentation.
fn plain() -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(2).with_information_schema(true);
    config.options_mut().format.null = "NULL".to_owned();
    SessionContext::new_with_config(config)
}

/// The second output of the block `number`: that of DataFusion alone.
fn second_output(page: &Page, number: usize) -> Option<&Block> {
    let texts = page.blocks[number + 1..].iter().take_while(|block| block.language() == "text");
    texts.take(2).nth(1)
}

#[tokio::test(flavor = "multi_thread")]
async fn datafusion_alone_has_the_faults_of_the_page() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/exec/mended/UPSTREAM.md");
    let page = Page::new(fs::read_to_string(&path).unwrap(), path);
    let ctx = plain();
    let mut outputs = Vec::new();
    for (number, block) in page.blocks.iter().enumerate().filter(|(_, it)| it.is_run("sql")) {
        let sql = &page.text[block.at.clone()];
        // Each statement is run by itself, so that one that fails hides no other.
        let mut found = String::new();
        for statement in sql.split_inclusive(";\n") {
            match without_panics(run(&ctx, statement)).await {
                Ok(output) => found += &output,
                Err(error) => found += &format!("Error: {}\n", error.strip_backtrace()),
            }
        }
        if let Some(shown) = second_output(&page, number) {
            outputs.push(Output { of: sql.to_owned(), at: shown.at.clone(), found });
        }
    }
    assert!(outputs.len() > 10, "only {} outputs", outputs.len());
    let differences = page.settle(&outputs);
    assert!(
        differences.is_empty(),
        "mended upstream: remove the file of src/exec/mended that the section names, and the section\n{}",
        differences.join("\n")
    );
}
