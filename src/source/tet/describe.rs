//! What a file is, at a glance.

use super::reader::TetReader;
use crate::array::ReadOptions;
use crate::error::Result;
use crate::source::description::{Description, Detail, Fact};

/// What is known of a file.
pub(super) async fn describe(
    file: &TetReader,
    location: &str,
    options: &ReadOptions,
    detail: &Detail,
) -> Result<Description> {
    let _ = (file, options, detail);
    Ok(Description { document: Fact::Text(location.to_owned()), pages: vec![] })
}
