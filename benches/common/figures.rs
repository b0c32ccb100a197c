//! Measures queries beside baselines, prints the figures as Markdown, and writes them into `benches/FIGURES.md`.
//!
//! ```text
//!   | query | ms | compared with | ms | ratio |
//!   |---|---|---|---|---|
//!   | `mean(value)` | 12.4 | a loop written by hand | 8.8 | 1.40 (1.38 to 1.58) |
//! ```
//!
//! The ratio is gridfusion's time divided by the baseline's: below 1, gridfusion is faster. Times are medians. The contestants take
//! turns, so a machine that slows down slows all of them; the range is that of the middle half of the turns.
//!
//! `UPDATE_FIGURES=1 cargo bench` replaces the tables of `benches/FIGURES.md`, and the rows of them that `README.md` shows.

use std::fs;
use std::path::Path;
use std::time::{Instant, SystemTime};

use chrono::{DateTime, Utc};

use super::{is_small, words};

/// Turns of a contest, unless they take longer than [`SECONDS`].
const TURNS: usize = 21;
/// Seconds that a contest may take; five turns are the least.
const SECONDS: f64 = 12.0;

/// A table of figures, which has a place of its own in `benches/FIGURES.md`.
pub(crate) struct Figures {
    name: &'static str,
    /// Whether rows have a second column: the chunks or tiles that a query read.
    has_chunks: bool,
    lines: Vec<String>,
    /// Texts in the names of queries to measure; without any, all are measured.
    texts: Vec<String>,
}

/// A query to measure, and for one column of the table how many chunks it read.
pub(crate) struct Query<'a> {
    pub(crate) name: &'a str,
    pub(crate) chunks: String,
}

/// Another way to the same result, with its name.
pub(crate) type Baseline<'a> = (&'a str, Box<dyn FnMut() + 'a>);

impl<'a> From<&'a str> for Query<'a> {
    fn from(name: &'a str) -> Self {
        Self { name, chunks: String::new() }
    }
}

impl Figures {
    /// A table that fills the place of that name.
    pub(crate) fn new(name: &'static str) -> Self {
        Self::with_header(name, None)
    }

    /// A table with a column for the chunks that queries read.
    pub(crate) fn with_chunks(name: &'static str) -> Self {
        Self::with_header(name, Some("chunks read"))
    }

    /// A table with a column for the tiles that queries of TileDB arrays read.
    pub(crate) fn with_tiles(name: &'static str) -> Self {
        Self::with_header(name, Some("tiles read"))
    }

    /// A table with a column for the requests to an object store.
    pub(crate) fn with_requests(name: &'static str) -> Self {
        Self::with_header(name, Some("requests"))
    }

    fn with_header(name: &'static str, column: Option<&str>) -> Self {
        let chunks = column.map_or_else(String::new, |column| format!(" {column} |"));
        let rule = if column.is_some() { "|---" } else { "" };
        let texts = words().skip(1).collect();
        let mut figures = Self { name, has_chunks: column.is_some(), lines: vec![], texts };
        figures.push(format!("| query |{chunks} ms | compared with | ms | ratio |"));
        figures.push(format!("|---{rule}|---|---|---|---|"));
        figures
    }

    /// Measures `ours` and each baseline in turns, and adds a row per baseline, or one row if there is none.
    pub(crate) fn compare<'q>(
        &mut self,
        query: impl Into<Query<'q>>,
        mut ours: impl FnMut(),
        baselines: Vec<Baseline<'_>>,
    ) {
        let query = query.into();
        if !self.is_chosen(query.name) {
            return;
        }
        let (names, mut runs): (Vec<&str>, Vec<_>) = baselines.into_iter().unzip();
        let mut contestants: Vec<&mut dyn FnMut()> = vec![&mut ours];
        contestants.extend(runs.iter_mut().map(|run| run.as_mut() as &mut dyn FnMut()));
        let times = take_turns(&mut contestants);
        let ms = median(times[0].clone());
        for (name, theirs) in names.iter().zip(&times[1..]) {
            let mut ratios: Vec<f64> = times[0].iter().zip(theirs).map(|(a, b)| a / b).collect();
            ratios.sort_by(f64::total_cmp);
            let quarter = |n: usize| ratios[(ratios.len() - 1) * n / 4];
            let [low, middle, high] = [1, 2, 3].map(|n| ratio(quarter(n)));
            let ratio = format!("{middle} ({low} to {high})");
            self.row(&query, ms, name, &figure(median(theirs.clone())), &ratio);
        }
        if names.is_empty() {
            self.row(&query, ms, "", "", "");
        }
    }

    /// Measures `ours`, and adds a row for each peer with the milliseconds that it took in a process of its own.
    pub(crate) fn beside_peers<'q, 'p>(
        &mut self,
        query: impl Into<Query<'q>>,
        mut ours: impl FnMut(),
        peers: impl IntoIterator<Item = (&'p str, f64)>,
    ) {
        let query = query.into();
        let ms = median(take_turns(&mut [&mut ours]).remove(0));
        for (peer, theirs) in peers {
            self.row(&query, ms, peer, &figure(theirs), &ratio(ms / theirs));
        }
    }

    /// Whether a query is to be measured: `cargo bench -- masks latitude` chooses those with this text in their names.
    fn is_chosen(&self, query: &str) -> bool {
        self.texts.is_empty() || self.texts.iter().any(|text| query.contains(text))
    }

    /// Takes the texts that choose queries, for a bench where they choose parts. It measures all queries of a part.
    pub(crate) fn take_texts(&mut self) -> Vec<String> {
        std::mem::take(&mut self.texts)
    }

    fn row(&mut self, query: &Query<'_>, ms: f64, baseline: &str, other_ms: &str, ratio: &str) {
        let chunks = if self.has_chunks { format!(" {} |", query.chunks) } else { String::new() };
        let ms = figure(ms);
        self.push(format!("| {} |{chunks} {ms} | {baseline} | {other_ms} | {ratio} |", query.name));
    }

    /// Adds a paragraph below the table.
    pub(crate) fn remark(&mut self, text: &str) {
        self.push(format!("\n{text}"));
    }

    fn push(&mut self, line: String) {
        println!("{line}");
        self.lines.push(line);
    }

    /// Writes the table into `benches/FIGURES.md`, if `UPDATE_FIGURES` is set.
    pub(crate) fn finish(self) {
        println!();
        let is_part = !self.texts.is_empty();
        if std::env::var_os("UPDATE_FIGURES").is_none() || is_small() || is_part {
            return;
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let machine = format!("{}, measured on {}.", machine(), today());
        let text = format!("{machine}\n\n{}", self.lines.join("\n"));
        let figures = replace(&root.join("benches/FIGURES.md"), self.name, &text);
        copy_rows(&figures, &root.join("README.md"));
    }
}

/// Milliseconds of every contestant in every turn, after one turn that fills caches.
fn take_turns(contestants: &mut [&mut dyn FnMut()]) -> Vec<Vec<f64>> {
    let mut turn = || -> Vec<f64> { contestants.iter_mut().map(|run| milliseconds(run)).collect() };
    let first: f64 = turn().iter().sum::<f64>() / 1e3;
    let is_smoke = is_small() || std::env::args().any(|argument| argument == "--test");
    let turns = if is_smoke { 1 } else { ((SECONDS / first.max(1e-9)) as usize).clamp(5, TURNS) };
    let turns: Vec<Vec<f64>> = (0..turns).map(|_| turn()).collect();
    (0..turns[0].len()).map(|number| turns.iter().map(|turn| turn[number]).collect()).collect()
}

fn milliseconds(run: &mut dyn FnMut()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64() * 1e3
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// A number of milliseconds with as many digits as mean something.
fn figure(ms: f64) -> String {
    match ms {
        100.0.. => format!("{ms:.0}"),
        10.0.. => format!("{ms:.1}"),
        _ => format!("{ms:.2}"),
    }
}

/// A ratio with at least two digits.
fn ratio(ratio: f64) -> String {
    if ratio < 0.1 { format!("{ratio:.3}") } else { format!("{ratio:.2}") }
}

/// The processor's name and the number of threads, where the system tells them.
fn machine() -> String {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("An unknown processor", |(_, name)| name.trim());
    let threads = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{model}, {threads} virtual cores")
}

fn today() -> String {
    DateTime::<Utc>::from(SystemTime::now()).format("%Y-%m-%d").to_string()
}

/// Replaces the text between `<!-- figures: NAME -->` and `<!-- end -->` of a page, and returns the new page.
fn replace(page: &Path, name: &str, text: &str) -> String {
    let old = fs::read_to_string(page).unwrap();
    let opening = format!("<!-- figures: {name} -->\n");
    let start = old.find(&opening).unwrap() + opening.len();
    let end = start + old[start..].find("<!-- end -->").unwrap();
    let new = format!("{}\n{text}\n\n{}", &old[..start], &old[end..]);
    fs::write(page, &new).unwrap();
    new
}

/// Replaces the rows of a page that `figures` has too, told by their query and their baseline.
fn copy_rows(figures: &str, page: &Path) {
    let old = fs::read_to_string(page).unwrap();
    let newest = |row| {
        let key = key(row)?;
        figures.lines().find(|line| self::key(line) == Some(key))
    };
    let new: String = old.lines().map(|row| format!("{}\n", newest(row).unwrap_or(row))).collect();
    fs::write(page, new).unwrap();
}

/// The query and the baseline of a row of five columns.
fn key(row: &str) -> Option<(&str, &str)> {
    let cells: Vec<&str> = row.strip_prefix("| ")?.split(" | ").collect();
    (cells.len() == 5).then(|| (cells[0], cells[2]))
}
