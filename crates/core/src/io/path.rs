//! Parts of paths and URLs.

/// Returns the last part of a path or URL.
pub fn last_part(location: &str) -> &str {
    let path = location.trim_end_matches(['/', '\\']);
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}
