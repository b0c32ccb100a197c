//! The rules of `CONTRIBUTING.md` for English that a machine can check: sentences of at most 25 words, and phrases and openings
//! that readers stumble over.
//!
//! Checks the comments of all sources and the prose of all pages. Code spans count as one word. Code blocks, text in double quotes and what
//! the programs print are left out.

use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const SOURCES: [&str; 10] = [
    "src",
    "crates",
    "cli",
    "distributed",
    "plot",
    "python/src",
    "benches",
    "examples",
    "fuzz",
    "tests",
];
const PAGES: [&str; 14] = [
    "docs",
    "benches",
    "src",
    "crates",
    "README.md",
    "DESIGN.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "fuzz/README.md",
    "cli",
    "distributed",
    "packaging",
    "plot",
];

const MOST_WORDS: usize = 25;

/// Words and phrases with a plainer name, in lower case. `CONTRIBUTING.md` has replacements.
const PHRASES: [&str; 31] = [
    "say",
    "says",
    "said",
    "saying",
    "believe",
    "believes",
    "believed",
    "believing",
    "noted",
    "nobody",
    "somebody",
    "whoever",
    "called like",
    "ways in",
    "has a say",
    "hold water",
    "on approval",
    "lie over",
    "lies over",
    "lay over",
    "laid over",
    "is it what it should be",
    "what it should be",
    "what is in it",
    "what nobody reads",
    "leaves no filter",
    "what there is",
    "what is there",
    "of its own accord",
    "not at all",
    "find out while",
];

/// First words of a sentence whose subject comes too late. A question, a table cell and an item of a list may begin so.
const OPENINGS: [&str; 20] = [
    "what",
    "those",
    "whatever",
    "of what",
    "of a",
    "of an",
    "of the",
    "of all",
    "of these",
    "of those",
    "of several",
    "of two",
    "of one",
    "of each",
    "of any",
    "of some",
    "to what",
    "from what",
    "for what",
    "is it",
];

/// A paragraph, a list item, a table cell or a heading.
struct Prose {
    place: String,
    text: String,
}

/// Collects lines into paragraphs.
struct Paragraphs<'a> {
    path: &'a Path,
    done: Vec<Prose>,
    open: Option<Prose>,
    in_block: bool,
}

impl<'a> Paragraphs<'a> {
    fn new(path: &'a Path) -> Self {
        Self { path, done: vec![], open: None, in_block: false }
    }

    /// Ends the open paragraph.
    fn end(&mut self) {
        self.done.extend(self.open.take());
    }

    fn add(&mut self, number: usize, text: &str) {
        let place = || format!("{}:{number}", self.path.display());
        let open = self.open.get_or_insert_with(|| Prose { place: place(), text: String::new() });
        open.text += " ";
        open.text += text;
    }

    /// Takes a line of Markdown.
    fn line(&mut self, number: usize, line: &str) {
        let line = line.trim();
        if line.starts_with("```") {
            self.end();
            self.in_block = !self.in_block;
        } else if self.in_block {
        } else if line.is_empty() || line.starts_with("<!--") {
            self.end();
        } else if line.starts_with(['|', '#']) {
            self.end();
            for cell in line.trim_matches(['|', '#', ' ']).split(" | ") {
                self.add(number, cell);
                self.end();
            }
        } else if let Some(item) = list_item(line) {
            self.end();
            self.add(number, item);
        } else {
            self.add(number, line);
        }
    }
}

fn list_item(line: &str) -> Option<&str> {
    let numbered = || line.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix(". ");
    line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).or_else(numbered)
}

fn of_markdown(path: &Path, text: &str) -> Vec<Prose> {
    let mut paragraphs = Paragraphs::new(path);
    text.lines().zip(1..).for_each(|(line, number)| paragraphs.line(number, line));
    paragraphs.end();
    paragraphs.done
}

/// The comments of a Rust file.
fn of_rust(path: &Path, text: &str) -> Vec<Prose> {
    let mut paragraphs = Paragraphs::new(path);
    let mut last = "";
    for (line, number) in text.lines().zip(1..) {
        let code = line.trim_start();
        let kind = ["///", "//!", "//"].into_iter().find(|kind| code.starts_with(kind));
        if kind.unwrap_or("") != last {
            paragraphs.end();
            paragraphs.in_block = false;
            last = kind.unwrap_or("");
        }
        if let Some(kind) = kind {
            paragraphs.line(number, &code[kind.len()..]);
        } else if let Some((code, comment)) = line.split_once(" // ")
            && code.ends_with([';', '{', '}', ')', ',', ']'])
        {
            paragraphs.add(number, comment);
            paragraphs.end();
        }
    }
    paragraphs.end();
    paragraphs.done
}

/// Replaces what stands between two marks by one word.
fn without(text: &str, mark: char) -> String {
    let pieces: Vec<&str> = text.split(mark).collect();
    let even = pieces.iter().step_by(2).copied().collect::<Vec<_>>();
    even.join("CODE")
}

/// Replaces targets of links by nothing.
fn without_targets(text: &str) -> String {
    let mut pieces = text.split("](");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, rest| text + rest.split_once(')').map_or(rest, |(_, rest)| rest))
}

fn words(sentence: &str) -> Vec<String> {
    let trimmed = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    sentence.split_whitespace().map(trimmed).filter(|word| !word.is_empty()).collect()
}

/// The sentences of a text; a colon ends one too.
fn sentences(text: &str) -> Vec<String> {
    let text = without(&without(&without_targets(text), '`'), '"');
    let mut sentences = vec![String::new()];
    for word in text.split_whitespace() {
        let open = sentences.last_mut().unwrap();
        *open += word;
        *open += " ";
        let end = word.trim_end_matches(['"', '\'', ')', '*', '_', ']']);
        if end.ends_with(['.', '?', '!', ':']) && !["e.g.", "i.e.", "vs.", "etc."].contains(&end) {
            sentences.push(String::new());
        }
    }
    sentences
}

/// Returns the faults of a piece of prose.
fn faults(prose: &Prose) -> Vec<String> {
    let mut faults = vec![];
    let mut fault = |what: String, sentence: &str| {
        faults.push(format!("{}: {what}: {}", prose.place, sentence.trim()));
    };
    for sentence in sentences(&prose.text) {
        let words = words(&sentence);
        let text = format!(" {} ", words.join(" "));
        if words.len() > MOST_WORDS {
            fault(format!("{} words", words.len()), &sentence);
        }
        for phrase in PHRASES.iter().filter(|phrase| text.contains(&format!(" {phrase} "))) {
            fault(format!("\"{phrase}\""), &sentence);
        }
        let first = sentence.trim_start_matches(|c: char| !c.is_alphanumeric()).chars().next();
        let is_question = sentence.trim_end().trim_end_matches('*').ends_with('?');
        let is_statement = first.is_some_and(char::is_uppercase) && !is_question;
        let begins = |opening: &&&str| text.starts_with(&format!(" {opening} "));
        if let Some(opening) = OPENINGS.iter().find(begins).filter(|_| is_statement) {
            fault(format!("opens with \"{opening}\""), &sentence);
        }
    }
    faults
}

/// The files below a path that have one of these extensions.
fn files(path: PathBuf, extension: &str) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path];
    }
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = entries
        .filter(|path| path.is_dir() || path.extension().is_some_and(|it| it == extension))
        .filter(|path| !["target", "corpus", "artifacts"].iter().any(|name| path.ends_with(name)))
        .flat_map(|path| files(path, extension))
        .collect();
    found.sort();
    found
}

/// The paths of all sources and pages, from the root.
pub(crate) fn checked_files() -> Vec<String> {
    let root = Path::new(ROOT);
    let below = |places: &[&str], extension| -> Vec<PathBuf> {
        places.iter().flat_map(|place| files(root.join(place), extension)).collect()
    };
    let all = [below(&SOURCES, "rs"), below(&PAGES, "md")].concat();
    all.iter().map(|path| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn style_of_comments_and_pages() {
    let mut found = vec![];
    for path in checked_files() {
        let text = fs::read_to_string(Path::new(ROOT).join(&path)).unwrap();
        let path = Path::new(&path);
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        let prose = if is_rust { of_rust(path, &text) } else { of_markdown(path, &text) };
        found.extend(prose.iter().flat_map(faults));
    }
    assert!(found.is_empty(), "CONTRIBUTING.md has the rules\n\n{}", found.join("\n"));
}

#[test]
fn faults_of_style_are_found() {
    let of = |text: &str| -> Vec<Vec<String>> {
        of_rust(Path::new("a.rs"), text).iter().map(faults).collect()
    };
    assert_eq!(of("/// Returns the labels.\nfn a() {}\n"), [Vec::<String>::new()]);
    assert_eq!(of("/// What the file says.\n")[0].len(), 2);
    assert_eq!(of(&format!("let a = 1; {} nobody reads\n", "//"))[0].len(), 1);
    assert_eq!(of("// `says`, \"says\", and [a](says.md).\n")[0].len(), 0);
    assert_eq!(of(&format!("//! {}end.\n", "word ".repeat(25)))[0].len(), 1);
    assert_eq!(of(&format!("//! {}end.\n", "word ".repeat(24)))[0].len(), 0);
    assert_eq!(of("/// ```\n/// what nobody says\n/// ```\n").len(), 0);
    let page = "# What is new\n\n| a | what it says |\n\n- Those:\n  b\n\n**What is it?**\n";
    let faults: Vec<usize> =
        of_markdown(Path::new("a.md"), page).iter().map(|it| faults(it).len()).collect();
    assert_eq!(faults, [1, 0, 1, 1, 0]);
}
