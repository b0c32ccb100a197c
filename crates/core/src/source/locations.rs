//! [`Locations`]: the paths, URLs and patterns of a table, and their expansion.
//!
//! ```text
//!   'year-*.tet'                     year-2023.tet, year-2024.tet      sorted, each once
//!   's3://bucket/*/era5.tet'         the matching objects and folders of the store, sorted
//!   ['a.tet', 'more/b.tet']          in this order
//! ```

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};
use glob::{MatchOptions, Pattern};
use object_store::path::Path as ObjectPath;
use url::Url;

use super::place::{Place, Stores, child, parse_url};
use crate::error::{Error, Result, shown_location};
use crate::io::{FolderEntry, LocalPath, MAX_CONCURRENT_IO, RemoteStore};

/// One or more paths, URLs or patterns. In a pattern, `*` matches any part of a name, `**` any folders, and
/// `[a-c]` one of these characters. In a path, `?` matches one character. The path of an existing local
/// file or folder is not a pattern.
///
/// ```
/// use gridfusion_core::source::Locations;
///
/// let one: Locations = "year-*.tet".into();
/// let many: Locations = ["2023.tet", "2024.tet"].into();
/// let path: Locations = std::env::temp_dir().join("2024.tet").into();
/// # let _ = (one, many, path);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Locations(Vec<String>);

/// Shows no passwords and signatures of URLs: an error of DataFusion may show a whole plan.
impl fmt::Debug for Locations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|it| shown_location(it))).finish()
    }
}

impl From<&str> for Locations {
    fn from(location: &str) -> Self {
        Self(vec![location.to_owned()])
    }
}

impl From<String> for Locations {
    fn from(location: String) -> Self {
        Self(vec![location])
    }
}

impl From<&String> for Locations {
    fn from(location: &String) -> Self {
        Self(vec![location.clone()])
    }
}

impl From<&Path> for Locations {
    /// Takes a path. One that is no UTF-8 cannot be opened: with its bytes replaced, it would be the path of another file.
    fn from(path: &Path) -> Self {
        Self(vec![path.to_str().map_or_else(
            // No path has a NUL, so the system refuses this one.
            || format!("{}\0", path.to_string_lossy()),
            str::to_owned,
        )])
    }
}

impl From<PathBuf> for Locations {
    fn from(path: PathBuf) -> Self {
        Self::from(path.as_path())
    }
}

impl From<&PathBuf> for Locations {
    fn from(path: &PathBuf) -> Self {
        Self::from(path.as_path())
    }
}

impl From<Url> for Locations {
    fn from(url: Url) -> Self {
        Self(vec![url.into()])
    }
}

impl From<&Url> for Locations {
    fn from(url: &Url) -> Self {
        Self(vec![url.to_string()])
    }
}

impl<T: Into<Self>> From<Vec<T>> for Locations {
    fn from(locations: Vec<T>) -> Self {
        Self(locations.into_iter().flat_map(|it| it.into().0).collect())
    }
}

impl<T: Into<Self>, const N: usize> From<[T; N]> for Locations {
    fn from(locations: [T; N]) -> Self {
        Self(locations.into_iter().flat_map(|it| it.into().0).collect())
    }
}

impl<T: Into<Self> + Clone> From<&[T]> for Locations {
    fn from(locations: &[T]) -> Self {
        Self::from(locations.to_vec())
    }
}

impl<T: Into<Self> + Clone> From<&Vec<T>> for Locations {
    fn from(locations: &Vec<T>) -> Self {
        Self::from(locations.as_slice())
    }
}

impl<T: Into<Self> + Clone, const N: usize> From<&[T; N]> for Locations {
    fn from(locations: &[T; N]) -> Self {
        Self::from(locations.as_slice())
    }
}

/// `*` and `?` do not match `/` or a leading dot, as in a shell.
const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

impl Locations {
    /// Returns the locations as they were given.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns one name for all locations, without secrets: the first three and the number of the others.
    pub fn name(&self) -> String {
        let first: Vec<String> = self.0.iter().take(3).map(|it| shown_location(it)).collect();
        match self.0.len().saturating_sub(first.len()) {
            0 => first.join(", "),
            others => format!("{} and {others} more", first.join(", ")),
        }
    }

    /// Replaces patterns by the places that match them, in sorted order, and removes duplicates.
    ///
    /// # Errors
    /// `Usage` if there are no locations, or if a pattern is malformed or matches nothing. `Io` if a folder
    /// cannot be listed.
    pub async fn expand(&self, stores: &Arc<dyn Stores>) -> Result<Places> {
        match self.0.as_slice() {
            [] => Err(Error::usage("a table needs a path or URL, or several")),
            [location] if !is_pattern(location) => Ok(Places::One(location.clone())),
            locations => {
                let mut found = Vec::new();
                for location in locations {
                    match is_pattern(location) {
                        true => found.extend(matches(location, stores).await?),
                        false => found.push(location.clone()),
                    }
                }
                // A file may match several entries of a list. Its rows must not be counted twice, so the
                // first occurrence is kept.
                let mut seen = BTreeSet::new();
                found.retain(|location| seen.insert(location.clone()));
                Ok(Places::Many(found))
            }
        }
    }
}

/// The result of expanding locations.
#[derive(Debug, PartialEq, Eq)]
pub enum Places {
    /// A single location that is not a pattern.
    One(String),
    /// The places of a list or a pattern; at least one.
    Many(Vec<String>),
}

impl Places {
    /// Returns the first place.
    pub fn first(&self) -> &str {
        match self {
            Self::One(location) => location,
            Self::Many(locations) => locations.first().map_or("", String::as_str),
        }
    }
}

/// Whether a location has wildcards and is not the path of an existing file. In a URL, `?` begins the
/// query, so it is no wildcard.
pub fn is_pattern(location: &str) -> bool {
    let is_url = location.contains("://");
    let special = if is_url { &['*', '['][..] } else { &['*', '?', '['] };
    location.contains(special) && !local_path(location).is_some_and(|path| path.exists())
}

/// Returns the local path of a path or `file://` URL.
fn local_path(location: &str) -> Option<PathBuf> {
    match parse_url(location) {
        Some(url) if url.scheme() == "file" => url.to_file_path().ok(),
        Some(_) => None,
        None => Some(location.into()),
    }
}

/// Returns the paths or URLs that match a pattern, at least one.
///
/// A pattern lists only the folders that its parts match. `**` lists all that is below them.
async fn matches(pattern: &str, stores: &Arc<dyn Stores>) -> Result<BTreeSet<String>> {
    let malformed = |error: glob::PatternError| {
        Error::usage(format!(
            "'{pattern}' is not a valid pattern: {error}; use '[*]' for a star in a name"
        ))
    };
    let place = Place::new(pattern, Arc::clone(stores))?;
    let found: BTreeSet<String> = match (place.store(), place.local().map(LocalPath::given)) {
        (None, path) => {
            let pattern = path.unwrap_or(Path::new("")).to_string_lossy().into_owned();
            let wanted = Pattern::new(&pattern).map_err(malformed)?;
            if pattern.contains("**") {
                let found = walked(&pattern, &wanted)?;
                return match found.is_empty() {
                    true => Err(Error::usage(format!("nothing matches '{pattern}'"))),
                    false => Ok(found),
                };
            }
            let paths = glob::glob_with(&pattern, OPTIONS).map_err(malformed)?;
            let outside = || Error::usage(format!("'{pattern}' leads out of the root by a link"));
            let text = |path: Result<PathBuf, glob::GlobError>| match path {
                // Links may lead out of the root. The message does not tell the names that are there.
                Ok(path) if stores.root().is_some_and(|root| root.check(&path).is_err()) => {
                    Err(outside())
                }
                Ok(path) => path.to_str().map(str::to_owned).ok_or_else(|| {
                    let name = path.as_os_str().as_encoded_bytes().escape_ascii();
                    Error::unsupported(format!(
                        "'{pattern}' matches \"{name}\", which is not UTF-8"
                    ))
                }),
                Err(error) => {
                    let folder = error.path().display().to_string();
                    Err(Error::io("cannot list the folder", std::io::Error::from(error))
                        .in_file(&folder))
                }
            };
            paths.map(text).collect::<Result<_>>()?
        }
        (Some((store, path)), _) => {
            // The scheme and the bucket, `s3://bucket` of `s3://bucket/y/*.tet`, to which matching paths
            // are appended.
            let base = pattern.find("://").map_or(0, |at| at + 3);
            let base = pattern[base..].find('/').map_or(pattern.len(), |at| base + at);
            // The path as the store has it, without URL escapes.
            let found =
                Box::pin(matches_in_store(store, path)).await.map_err(|error| match error {
                    NoMatch::Pattern(error) => malformed(error),
                    NoMatch::Listing(error) => error.in_file(pattern),
                })?;
            let url = |path: &str| {
                path.split('/').fold(pattern[..base].to_owned(), |url, part| child(&url, part))
            };
            found.iter().map(|path| url(path)).collect()
        }
    };
    match found.is_empty() {
        true => Err(Error::usage(format!("nothing matches '{pattern}'"))),
        false => Ok(found),
    }
}

/// Returns the local files and folders that match a pattern with `**`. Visits each folder once, whatever links lead to it, so
/// that links to folders above do not go on for ever. Finds nothing in a folder that matches.
fn walked(pattern: &str, wanted: &Pattern) -> Result<BTreeSet<String>> {
    let fixed = pattern.find(['*', '?', '[']).unwrap_or(pattern.len());
    let start = pattern[..fixed].rfind('/').map_or("", |at| &pattern[..=at]);
    let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::new());
    // Links come last, so that a folder is found under its own name.
    let (mut folders, mut links) = (vec![PathBuf::from(start)], vec![]);
    while let Some(folder) = folders.pop().or_else(|| links.pop()) {
        let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { &*folder };
        let failed = |error| {
            Error::io("cannot list the folder", error).in_file(&listed.display().to_string())
        };
        match std::fs::canonicalize(listed) {
            Ok(path) if seen.insert(path.clone()) => {}
            Ok(_) => continue,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(error)),
        }
        for entry in std::fs::read_dir(listed).map_err(failed)? {
            let path = folder.join(entry.map_err(failed)?.file_name());
            let text = path.to_string_lossy().into_owned();
            if wanted.matches_with(&text, OPTIONS) {
                found.insert(text);
            } else if path.is_dir() {
                if path.is_symlink() { links.push(path) } else { folders.push(path) }
            }
        }
    }
    Ok(found)
}

/// The reason why a pattern has no matches.
enum NoMatch {
    Pattern(glob::PatternError),
    Listing(Error),
}

/// Returns the paths in a store that match a pattern.
///
/// ```text
///   y/202*/*.tet    list y/ ─▶ 2023/, 2024/ match ─▶ list both at once ─▶ their matching objects
/// ```
async fn matches_in_store(
    store: &RemoteStore,
    wanted: &ObjectPath,
) -> Result<BTreeSet<String>, NoMatch> {
    let whole = Pattern::new(wanted.as_ref()).map_err(NoMatch::Pattern)?;
    let parts: Vec<_> = wanted.parts().collect();
    let mut folders = vec![ObjectPath::default()];
    for (at, part) in parts.iter().enumerate() {
        let (name, is_last) = (part.as_ref(), at + 1 == parts.len());
        if name.contains("**") {
            let below = folders.iter().map(|folder| store.objects_below(folder));
            let below: Vec<Vec<ObjectPath>> = at_once(below).await?;
            let found = below.iter().flatten();
            let found = found.filter_map(|path| beginning(path.as_ref(), &whole));
            return Ok(found.map(str::to_owned).collect());
        }
        if !is_last && !name.contains(['*', '[', '?']) {
            folders = folders.into_iter().map(|folder| folder.join(part.clone())).collect();
            continue;
        }
        let pattern = Pattern::new(name).map_err(NoMatch::Pattern)?;
        let entries: Vec<Vec<FolderEntry>> =
            at_once(folders.iter().map(|folder| store.entries(folder))).await?;
        let mut found = vec![];
        for (folder, entries) in folders.iter().zip(entries) {
            let fits = |entry: &FolderEntry| {
                (is_last || entry.size.is_none()) && pattern.matches_with(&entry.name, OPTIONS)
            };
            let entries = entries.into_iter().filter(fits);
            found.extend(entries.map(|entry| {
                // Names in listings have the escapes that paths have.
                let name = ObjectPath::parse(&entry.name).unwrap_or_default();
                folder.parts().chain(name.parts()).collect()
            }));
        }
        folders = found;
    }
    Ok(folders.into_iter().map(String::from).collect())
}

/// Runs listings side by side, and returns their results in order.
async fn at_once<T>(
    listings: impl Iterator<Item = impl Future<Output = Result<T>>>,
) -> Result<Vec<T>, NoMatch> {
    let listings: Vec<_> = listings.collect();
    stream::iter(listings).buffered(MAX_CONCURRENT_IO).try_collect().await.map_err(NoMatch::Listing)
}

/// Returns the shortest beginning of `path` that `wanted` matches: the object or one of its folders. Packages and
/// arrays are folders, and object stores list objects only.
///
/// For `**/*.tet.d`, the object `y/p.tet.d/CURRENT` has the beginnings `y`, `y/p.tet.d` and itself. The second
/// matches.
fn beginning<'a>(path: &'a str, wanted: &Pattern) -> Option<&'a str> {
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    ends.map(|end| &path[..end]).find(|path| wanted.matches_with(path, OPTIONS))
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;
    use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
    use url::Url;

    use super::*;

    /// Returns the same store for every URL.
    #[derive(Debug, Default)]
    struct OneStore(Arc<InMemory>);

    impl Stores for OneStore {
        fn store(&self, _: &Url) -> Result<RemoteStore> {
            Ok((Arc::clone(&self.0) as Arc<dyn ObjectStore>).into())
        }
    }

    async fn expand(locations: impl Into<Locations>, stores: &Arc<dyn Stores>) -> Result<Places> {
        locations.into().expand(stores).await
    }

    /// Its bytes with replacements are the name of another file.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_path_that_is_no_utf_8_is_no_other_file() {
        use std::os::unix::ffi::OsStrExt;

        let dir = tempfile::tempdir().unwrap();
        let stores: Arc<dyn Stores> = Arc::new(OneStore::default());
        std::fs::write(dir.path().join("a\u{fffd}.tet"), "another").unwrap();
        for (name, is_opened) in [(&b"a\xff.tet"[..], false), ("a\u{fffd}.tet".as_bytes(), true)] {
            let path = dir.path().join(std::ffi::OsStr::from_bytes(name));
            let locations = Locations::from(path);
            let location = locations.iter().next().unwrap();
            let opened = Place::new(location, Arc::clone(&stores)).unwrap().object().await;
            assert_eq!(opened.is_ok(), is_opened, "{name:?}");
        }
    }

    #[tokio::test]
    async fn patterns_stand_for_files_that_are_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| format!("{}/{name}", dir.path().display());
        for name in ["b.tet", "a.tet", "c.txt", ".d.tet", "odd[1].tet"] {
            std::fs::write(path(name), "").unwrap();
        }
        std::fs::create_dir(path("p.tet.d")).unwrap();
        let runtime: Arc<dyn Stores> = Arc::new(OneStore::default());
        let many = |names: &[&str]| Places::Many(names.iter().map(|name| path(name)).collect());
        let found = expand(path("?.tet"), &runtime).await.unwrap();
        assert_eq!(found, many(&["a.tet", "b.tet"]));
        let found = expand(vec![path("b.tet"), path("*.tet*")], &runtime).await.unwrap();
        assert_eq!(found, many(&["b.tet", "a.tet", "odd[1].tet", "p.tet.d"]));
        let odd = expand(path("odd[1].tet"), &runtime).await.unwrap();
        assert_eq!(odd, Places::One(path("odd[1].tet")));
        let url = format!("file://{}", path("odd[1].tet"));
        assert_eq!(expand(url.as_str(), &runtime).await.unwrap(), Places::One(url));
        assert_eq!(expand("gone.tet", &runtime).await.unwrap(), Places::One("gone.tet".into()));
        for wrong in [path("*.nc"), path("[a.tet"), "***".into()] {
            assert!(expand(wrong.as_str(), &runtime).await.is_err(), "{wrong}");
        }
        assert!(expand(Vec::<String>::new(), &runtime).await.is_err());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn links_that_lead_up_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| format!("{}/{name}", dir.path().display());
        std::fs::create_dir_all(path("a/b")).unwrap();
        std::fs::write(path("a/b/x.tet"), "").unwrap();
        std::os::unix::fs::symlink("..", path("a/b/up")).unwrap();
        std::os::unix::fs::symlink(dir.path(), path("a/above")).unwrap();
        let runtime: Arc<dyn Stores> = Arc::new(OneStore::default());
        let found = expand(path("**/*.tet"), &runtime).await.unwrap();
        assert_eq!(found, Places::Many(vec![path("a/b/x.tet")]));
    }

    #[tokio::test]
    async fn patterns_stand_for_objects_and_folders_of_stores() {
        let store = Arc::new(InMemory::new());
        for path in ["y/2023/t.tet", "y/2024/t.tet", "y/2024/u.tet", "y/p.tet.d/CURRENT", "t.tet"] {
            store.put(&path.into(), PutPayload::new()).await.unwrap();
        }
        let runtime: Arc<dyn Stores> = Arc::new(OneStore(store));
        for (pattern, expected) in [
            ("mem://bucket/y/*/t.tet", &["y/2023/t.tet", "y/2024/t.tet"][..]),
            ("mem://bucket/y/*.tet.d", &["y/p.tet.d"]),
            ("mem://bucket/**/t.tet", &["t.tet", "y/2023/t.tet", "y/2024/t.tet"]),
            ("mem://bucket/*.tet", &["t.tet"]),
            ("mem://bucket/y/202[4-5]/*.tet", &["y/2024/t.tet", "y/2024/u.tet"]),
        ] {
            let expected = expected.iter().map(|path| format!("mem://bucket/{path}")).collect();
            assert_eq!(
                expand(pattern, &runtime).await.unwrap(),
                Places::Many(expected),
                "{pattern}"
            );
        }
        assert!(expand("mem://bucket/z/*.tet", &runtime).await.is_err());
    }
}
