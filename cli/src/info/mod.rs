//! `gridfusion info`: what a file, an array or a folder of arrays is, at a glance.
//!
//! ```text
//!   PATH ──▶ tet, tiledb ──▶ document ──▶ text ──▶ columns
//!            facts of the     what is       └──▶ JSON
//!            library          said
//! ```

pub(crate) mod columns;
mod document;
mod tet;
mod text;
mod tiledb;

use std::io::{self, Write};
use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use gridfusion::Error;
use gridfusion::exec::to_datafusion;

pub(crate) use self::columns::bytes;
use self::document::Document;
use crate::args::InfoArgs;
use crate::options::PathOptions;
use crate::place::Place;

/// Prints what is at a path.
///
/// # Errors
/// If it cannot be opened, or the text cannot be written.
pub(crate) async fn run(args: &InfoArgs) -> Result<()> {
    let document = describe(args).await.map_err(to_datafusion)?;
    let text = if args.json {
        let json = serde_json::to_string_pretty(&document);
        json.map_err(|error| DataFusionError::External(Box::new(error)))? + "\n"
    } else {
        text::of(&document)
    };
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// Of what is in a directory, so much is named.
const MOST_NAMED: usize = 10;

async fn describe(args: &InfoArgs) -> gridfusion::Result<Document> {
    let runtime = Arc::new(RuntimeEnv::default());
    let options = PathOptions::new(&args.options)?;
    match Place::open(&args.path, &options, &runtime).await? {
        Place::Tet(file, options) => tet::describe(&file, args, &options).await.map(Document::Tet),
        Place::TileDb(arrays) => tiledb::describe(&arrays, args, &runtime).await,
        Place::Directory(catalog) => {
            let mut places: Vec<&str> = catalog.places().map(|(_, place)| place).collect();
            let more = places.len().saturating_sub(MOST_NAMED);
            places.truncate(MOST_NAMED);
            let mut message =
                format!("this is a directory; ask about one of {}", places.join(", "));
            if more > 0 {
                message += &format!(" and {more} more");
            }
            Err(Error::usage(message).in_file(&args.path))
        }
    }
}

impl InfoArgs {
    /// How many chunks or fragments are listed; `None` for no list.
    fn listed(&self) -> Option<usize> {
        self.chunks.then_some(self.count.count())
    }
}
