//! `gridfusion info`: describes a file, an array or a directory of TileDB arrays.
//!
//! ```text
//!   PATH ──▶ the library's Description ──┬──▶ pages ──▶ text ──▶ columns
//!                                        └──▶ document ──▶ JSON
//! ```

pub(crate) mod columns;
mod text;

use std::io::{self, Write};

use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use gridfusion::Error;
use gridfusion::source::{Description, Detail, Fact};

use crate::args::InfoArgs;
use crate::hints::with_hint;
use crate::options::PathOptions;
use crate::place::OpenedPlace;
use crate::progress::Progress;
use crate::requests::{Requests, gridfusion_config, remote_of};
use crate::secrets::hide;
use crate::session::plain_context;

/// Prints the description of a path.
///
/// # Errors
/// If the path cannot be opened, or the text cannot be written.
pub(crate) async fn run(args: &InfoArgs) -> Result<()> {
    let options = PathOptions::new(&args.options, &gridfusion::built_in_formats())?;
    let ctx = plain_context(options.for_stores(), args.root.as_deref())?;
    let opening = Progress::is_possible().then(|| Progress::from_opening(&gridfusion_config(&ctx)));
    let described = describe(args, &options, &ctx).await;
    drop(opening);
    let mut description = described.map_err(|error| with_hint(error.into(), &ctx))?;
    add_requests(&mut description, Requests(remote_of(&ctx).counts()));
    let text = if args.json {
        let json = serde_json::to_string_pretty(&description.document);
        json.map_err(|error| DataFusionError::External(Box::new(error)))? + "\n"
    } else {
        text::of(&description.pages)
    };
    // The description has the URLs of the arrays. Attributes may have other URLs, which stay as they are.
    let text = hide(&text);
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// Most entries of a directory that the error message lists.
const MOST_NAMED: usize = 10;

/// Adds the requests that the description took, if there were any.
fn add_requests(description: &mut Description, requests: Requests) {
    if requests.is_none() {
        return;
    }
    if let Fact::Record(fields) = &mut description.document {
        fields.push(("requests", requests.fact()));
    }
    if let Some(page) = description.pages.last_mut() {
        page.lines.push(requests.to_string());
    }
}

async fn describe(
    args: &InfoArgs,
    options: &PathOptions,
    ctx: &SessionContext,
) -> gridfusion::Result<Description> {
    match OpenedPlace::open(&args.path, options, ctx).await? {
        OpenedPlace::Group(schema) => {
            let listed = args.chunks.then_some(args.count.count());
            let detail = Detail::default().with_listed(listed).with_metadata(args.metadata);
            schema.group().describe(&detail).await
        }
        OpenedPlace::Directory(catalog) => {
            let mut places: Vec<&str> = catalog.places().map(|(_, place)| place).collect();
            let more = places.len().saturating_sub(MOST_NAMED);
            places.truncate(MOST_NAMED);
            let mut message =
                format!("this is a directory; name one of its entries: {}", places.join(", "));
            if more > 0 {
                message += &format!(" and {more} more");
            }
            Err(Error::usage(message).in_file(&args.path))
        }
    }
}
