//! The rendered book: its links lead to pages and headings that it has.
//!
//! `GRIDFUSION_BOOK` names the folder that `mdbook build` wrote. `.ci/run` sets it where mdBook is installed.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::variable;

/// The values of an attribute of HTML elements.
fn values<'a>(html: &'a str, attribute: &str) -> Vec<&'a str> {
    let opening = format!(" {attribute}=\"");
    let parts = html.split(opening.as_str()).skip(1);
    parts.filter_map(|rest| rest.split_once('"').map(|(value, _)| value)).collect()
}

/// Every page below a folder, with its text.
fn pages(folder: &Path) -> HashMap<PathBuf, String> {
    let mut pages = HashMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages.extend(self::pages(&path));
        } else if path.extension().is_some_and(|extension| extension == "html") {
            pages.insert(path.clone(), fs::read_to_string(&path).unwrap());
        }
    }
    pages
}

/// Returns the fault of a page's link; `None` if the link is right.
fn fault(pages: &HashMap<PathBuf, String>, page: &Path, link: &str) -> Option<String> {
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() { page.to_owned() } else { page.with_file_name(file) };
    let wrong = |fault: &str| Some(format!("{}: {link} {fault}", page.display()));
    match pages.get(&target) {
        Some(text) if !anchor.is_empty() && !values(text, "id").contains(&anchor) => {
            wrong("names a heading that the page lacks")
        }
        None if !target.exists() => wrong("does not exist"),
        _ => None,
    }
}

#[test]
#[ignore = "needs GRIDFUSION_BOOK: the folder of the rendered book"]
fn links_of_the_rendered_book_lead_somewhere() {
    let folder = variable("GRIDFUSION_BOOK");
    let pages = pages(Path::new(&folder));
    assert!(pages.len() > 20, "{} pages in {folder:?}", pages.len());
    // The page for missing pages is written for any place, and the print page repeats the others.
    let checked = pages
        .iter()
        .filter(|(path, _)| !path.ends_with("404.html") && !path.ends_with("print.html"));
    let faults: Vec<String> = checked
        .flat_map(|(path, text)| values(text, "href").into_iter().map(move |link| (path, link)))
        .filter(|(_, link)| !link.contains("://") && !link.starts_with("mailto:"))
        .filter_map(|(path, link)| fault(&pages, path, link))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn wrong_links_are_found() {
    let page = |text: &str| text.to_owned();
    let pages = HashMap::from([
        (PathBuf::from("a.html"), page("<a href=\"b.html#x\">")),
        (PathBuf::from("b.html"), page("<h2 id=\"x\">")),
    ]);
    let fault = |link: &str| fault(&pages, Path::new("a.html"), link);
    assert_eq!(values(&pages[Path::new("a.html")], "href"), ["b.html#x"]);
    assert!(fault("b.html#x").is_none() && fault("b.html").is_none());
    assert!(fault("b.html#y").is_some() && fault("#x").is_some() && fault("c.html").is_some());
}
