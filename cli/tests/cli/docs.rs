//! Runs the commands of the documentation and compares their output.

use std::ops::Range;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::doc_blocks::{Output, Page, pages};
use crate::support::Outcome;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Makes a directory with the repository's data, in which commands may write files.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["examples", "tests"] {
        symlink(Path::new(ROOT).join(name), folder.path().join(name)).unwrap();
    }
    folder
}

/// Runs a command in a shell with the program on its path. Standard error goes to standard output.
fn shell(command: &str, folder: &Path) -> Outcome {
    let program = Path::new(env!("CARGO_BIN_EXE_gridfusion")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec 2>&1\n{command}")]).current_dir(folder).env("PATH", path);
    // Plans depend on the number of partitions, which would be the number of processors.
    shell.env("DATAFUSION_EXECUTION_TARGET_PARTITIONS", "2").env_remove("RUST_LOG");
    shell.output().unwrap().into()
}

/// Returns the commands of a block, and the byte range of each one's output in the page.
fn commands(page: &Page, block: &Range<usize>) -> Vec<(String, Range<usize>)> {
    let mut commands: Vec<(String, Range<usize>)> = Vec::new();
    let mut place = block.start;
    for line in page.text[block.clone()].split_inclusive('\n') {
        place += line.len();
        match commands.last_mut() {
            Some((command, output)) if is_open(command) => {
                command.push_str(line);
                *output = place..place;
            }
            _ if line.starts_with("$ ") => commands.push((line[2..].to_owned(), place..place)),
            Some((_, output)) => output.end = place,
            None => panic!("{}: a command begins with `$ `", page.line(place)),
        }
    }
    commands
}

/// Whether a command continues on the next line, because a quote is open or the line feed is escaped.
fn is_open(command: &str) -> bool {
    let (mut quote, mut is_escaped) = (None, false);
    for character in command.chars() {
        match (quote, character) {
            _ if is_escaped => is_escaped = false,
            (None | Some('"'), '\\') => is_escaped = true,
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), character) if open == character => quote = None,
            _ => {}
        }
    }
    quote.is_some() || command.ends_with("\\\n")
}

#[test]
fn commands_of_the_documentation() {
    let (mut failures, mut count) = (vec![], 0);
    for page in pages(Path::new(ROOT)) {
        let (folder, mut outputs) = (folder(), vec![]);
        for block in page.blocks.iter().filter(|block| block.is_run("console")) {
            for (command, at) in commands(&page, &block.at) {
                let program = command.replace("cargo run --release --", "gridfusion");
                let outcome = shell(&program, folder.path());
                let shown = &page.text[at.clone()];
                if outcome.code != Some(0) && !shown.contains("Error: ") {
                    failures.push(format!("{}: {command}{outcome:?}", page.line(at.start)));
                    continue;
                }
                outputs.push(Output { of: command, at, found: outcome.stdout });
            }
        }
        count += outputs.len();
        failures.extend(page.settle(&outputs));
    }
    assert!(failures.is_empty(), "UPDATE_DOCS=1 writes outputs\n\n{}", failures.join("\n\n"));
    assert!(count > 0);
}

#[test]
fn commands_are_found() {
    let text = "```console\n$ a \"x\n  'y\" 'z'\nout\n\n$ b \\\n  c\n```\n";
    let page = Page::new(text.to_owned(), "a.md".into());
    let found = commands(&page, &page.blocks[0].at);
    let found: Vec<_> =
        found.iter().map(|(command, at)| (command.as_str(), &text[at.clone()])).collect();
    assert_eq!(found, [("a \"x\n  'y\" 'z'\n", "out\n\n"), ("b \\\n  c\n", "")]);
}
