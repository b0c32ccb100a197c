//! `Drawing`: the picture of a query.

use std::path::Path;

use datafusion::common::plan_datafusion_err;
use datafusion::error::Result;
use gridfusion_plot::{Format, Picture};

/// The picture of a query, which becomes the bytes of files.
#[derive(Debug)]
pub struct Drawing {
    pub(super) picture: Picture,
    pub(super) rows: usize,
}

impl Drawing {
    /// Returns the bytes of the file `path`, whose ending is `.png` or `.svg`.
    ///
    /// # Errors
    /// If the path has another ending, or the query has too many rows for an SVG file.
    pub fn encode(&self, path: &str) -> Result<Vec<u8>> {
        let format = Format::from_path(Path::new(path));
        let format = format.ok_or_else(|| {
            plan_datafusion_err!("the file name '{path}' must end in .png or .svg")
        })?;
        let checked = format.check_rows(self.rows);
        let bytes = checked.and_then(|()| self.picture.encode(format));
        bytes.map_err(|error| plan_datafusion_err!("{error}"))
    }

    /// The width and the height in pixels.
    pub fn size(&self) -> (u32, u32) {
        self.picture.size()
    }
}
