//! The public face: no example imports a hidden module, and no signature names a hidden type.
//!
//! Rustdoc links each type that has a page. A type of the workspace without a link is in a hidden module:
//!
//! ```text
//!   pub fn plan(&self) -> &Arc<SparsePlan>        SparsePlan is a name of the workspace, but no link
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{shipped, variable};

/// The folders of the libraries' sources.
const SOURCES: [&str; 8] = [
    "src",
    "crates/core/src",
    "crates/cf/src",
    "crates/tet/src",
    "crates/tiledb/src",
    "crates/zarr/src",
    "distributed/src",
    "plot/src",
];

/// Calls `visit` with the path and the text of each file below a folder whose name has the ending.
fn each_file(folder: &Path, ending: &str, visit: &mut impl FnMut(&Path, &str)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            each_file(&path, ending, visit);
        } else if path.extension().is_some_and(|extension| extension == ending) {
            visit(&path, &fs::read_to_string(&path).unwrap());
        }
    }
}

/// Splits a text into words of letters, digits and underscores.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|it: char| !it.is_alphanumeric() && it != '_');
    words.filter(|word| !word.is_empty())
}

/// The names that `src/lib.rs` marks with `#[doc(hidden)]`.
fn hidden_names(lib: &str) -> BTreeSet<&str> {
    let items = lib.split("#[doc(hidden)]\n").skip(1);
    let items = items.map(|rest| rest.split_once(';').unwrap().0);
    items
        .flat_map(|item| match item.split_once('{') {
            Some((_, list)) => words(list).collect::<Vec<_>>(),
            None => words(item).last().into_iter().collect(),
        })
        .collect()
}

/// The names that code takes from the crate's root: `gridfusion::a::b` takes `a`, `gridfusion::{a::b, C}` takes `a` and `C`.
fn taken(code: &str) -> Vec<&str> {
    let mut taken = vec![];
    for rest in code.split("gridfusion::").skip(1) {
        let Some(list) = rest.strip_prefix('{') else {
            taken.extend(words(rest).next());
            continue;
        };
        let mut depth = 0;
        let inner = list.split_once("};").map_or(list, |(inner, _)| inner);
        let parts = inner.split(|it: char| {
            depth += i32::from(it == '{') - i32::from(it == '}');
            it == ',' && depth == 0
        });
        taken.extend(parts.filter_map(|part| words(part).next()));
    }
    taken
}

/// The text of comments that rustdoc shows.
fn doc_comments(source: &str) -> String {
    let lines = source.lines().map(str::trim_start);
    let docs = lines.filter_map(|it| it.strip_prefix("///").or_else(|| it.strip_prefix("//!")));
    docs.collect::<Vec<_>>().join("\n")
}

#[test]
fn examples_import_no_hidden_module() {
    let lib = fs::read_to_string(shipped("src/lib.rs")).unwrap();
    let hidden = hidden_names(&lib);
    assert!(hidden.contains("exec") && hidden.contains("tile"), "{hidden:?}");
    let (mut faults, mut seen) = (vec![], 0);
    let mut check = |path: &Path, text: &str| {
        for name in taken(text) {
            seen += 1;
            if hidden.contains(name) {
                faults.push(format!("{}: gridfusion::{name} is hidden", path.display()));
            }
        }
    };
    for folder in SOURCES {
        let mut visit = |path: &Path, text: &str| check(path, &doc_comments(text));
        each_file(Path::new(&shipped(folder)), "rs", &mut visit);
    }
    each_file(Path::new(&shipped("examples")), "rs", &mut check);
    each_file(Path::new(&shipped("docs")), "md", &mut check);
    check(Path::new("README.md"), &fs::read_to_string(shipped("README.md")).unwrap());
    assert!(seen > 60, "only {seen} names; are the examples still found?");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn imports_are_found() {
    let lib = "#[doc(hidden)]\npub mod exec;\npub mod extend;\n#[doc(hidden)]\npub use core::{array, tile};\n";
    assert_eq!(hidden_names(lib).into_iter().collect::<Vec<_>>(), ["array", "exec", "tile"]);
    let code = "use gridfusion::exec::A;\nuse gridfusion::{B, tile::{C, D}, E};\ngridfusion::f()";
    assert_eq!(taken(code), ["exec", "B", "tile", "E", "f"]);
}

/// The names of types that the sources define, shown or not.
fn defined() -> BTreeSet<String> {
    let mut defined = BTreeSet::new();
    for folder in SOURCES {
        each_file(Path::new(&shipped(folder)), "rs", &mut |_, text| {
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            let lines = code.lines().filter(|line| line.starts_with("pub "));
            for line in lines {
                let mut words = words(line);
                let is_type = |word: &str| ["struct", "enum", "trait", "type"].contains(&word);
                if words.by_ref().any(is_type) {
                    defined.extend(words.next().map(str::to_owned));
                }
            }
        });
    }
    defined
}

/// The signatures of a page, as HTML. Lists of implementors and blanket implementations name types of any crate, so they are
/// left out.
fn signatures(page: &str) -> Vec<&str> {
    let lists = ["implementors", "foreign-impls", "blanket-implementations"];
    let page = lists
        .iter()
        .fold(page, |page, list| page.split(&format!("<h2 id=\"{list}\"")).next().unwrap_or(page));
    let between = |opening: &'static str, closing: &'static str| {
        page.split(opening).skip(1).filter_map(move |rest| Some(rest.split_once(closing)?.0))
    };
    between("<pre class=\"rust item-decl\">", "</pre>")
        .chain(between("<h4 class=\"code-header\">", "</h4>"))
        .chain(between("<h3 class=\"code-header\">", "</h3>"))
        .collect()
}

/// The names of types in a signature that have no link. Names of variants and of associated types are not among them.
fn unlinked(signature: &str) -> Vec<String> {
    let mut text = String::new();
    for part in signature.split("<a ") {
        // Leaves out the link itself, which every part but the first begins with.
        let rest =
            if text.is_empty() && signature.starts_with(part) { part } else { after_link(part) };
        let tags = rest.split('<').enumerate();
        text.extend(
            tags.map(
                |(at, it)| if at == 0 { it } else { it.split_once('>').map_or("", |it| it.1) },
            ),
        );
        text.push(' ');
    }
    let is_enum = text.contains("pub enum ");
    let is_variant = !is_enum && text.trim_start().starts_with(char::is_uppercase);
    let lines = text.lines().enumerate().flat_map(|(number, line)| {
        let of_variant = is_variant && number == 0 || is_enum && line.starts_with("    ");
        // `Output = X` binds an associated type, whose name is the trait's.
        let parts: Vec<&str> = line.split(" = ").collect();
        let mut found: Vec<&str> = vec![];
        for (number, part) in parts.iter().enumerate() {
            found.extend(words(part));
            if number + 1 < parts.len() {
                found.pop();
            }
        }
        found.into_iter().skip(usize::from(of_variant)).map(str::to_owned).collect::<Vec<_>>()
    });
    lines.filter(|it| it.starts_with(char::is_uppercase)).collect()
}

fn after_link(part: &str) -> &str {
    part.split_once("</a>").map_or("", |it| it.1)
}

#[test]
#[ignore = "needs GRIDFUSION_DOC: the folder that cargo doc wrote"]
fn signatures_name_no_hidden_type() {
    let folder = PathBuf::from(variable("GRIDFUSION_DOC"));
    let crates = [
        "gridfusion",
        "gridfusion_cf",
        "gridfusion_core",
        "gridfusion_tet",
        "gridfusion_tiledb",
        "gridfusion_zarr",
    ];
    let (mut shown, mut pages) = (BTreeSet::new(), vec![]);
    for name in crates {
        each_file(&folder.join(name), "html", &mut |path, text| {
            // KIND.NAME.html
            let file = path.file_stem().unwrap().to_str().unwrap();
            shown.extend(file.split_once('.').map(|(_, name)| name.to_owned()));
            pages.push((path.to_owned(), text.to_owned()));
        });
    }
    let (defined, mut seen, mut faults) = (defined(), 0, BTreeSet::new());
    for (path, text) in &pages {
        for signature in signatures(text) {
            seen += 1;
            let hidden = unlinked(signature).into_iter();
            let hidden = hidden.filter(|it| defined.contains(it) && !shown.contains(it));
            faults.extend(hidden.map(|name| format!("{}: {name} is hidden", path.display())));
        }
    }
    assert!(pages.len() > 300 && seen > 2000, "{} pages, {seen} signatures", pages.len());
    assert!(faults.is_empty(), "{}", faults.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn types_without_links_are_found() {
    let page = "<h4 class=\"code-header\">pub fn <a href=\"#x\" class=\"fn\">plan</a>(&amp;self) -&gt; \
                &amp;<a href=\"s\" title=\"struct Arc\">Arc</a>&lt;Hidden&gt;</h4>\
                <h2 id=\"implementors\">…</h2><h3 class=\"code-header\">impl A for Other</h3>";
    let found = signatures(page);
    assert_eq!(found.len(), 1);
    assert_eq!(unlinked(found[0]), ["Hidden"]);
    let variants =
        "<code>pub enum E {\n    Whole,\n    Part(<a href=\"p\">Place</a>, Secret),\n}</code>";
    assert_eq!(unlinked(variants), ["E", "Secret"]);
    assert_eq!(unlinked("Whole"), [""; 0]);
    let future = "fn run() -&gt; <a href=\"b\">Box</a>&lt;dyn <a href=\"f\">Future</a>&lt;Output = u8&gt;&gt;";
    assert!(!unlinked(future).contains(&"u8".to_owned()));
}
