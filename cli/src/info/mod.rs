//! `gridfusion info`: describes a file, an array or a group, or what the files of a folder or pattern have in common.
//!
//! ```text
//!   PATH…  ──▶ the library's Description ──┬──▶ pages ──▶ text ──▶ columns
//!                                          └──▶ document ──▶ JSON
//! ```

pub(crate) mod columns;
mod text;

use std::io::{self, Write};

use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use gridfusion::source::{Description, Detail, Fact, is_pattern};
use gridfusion::{ArrayOpener, Error};

use crate::args::InfoArgs;
use crate::hints::with_hint;
use crate::options::PathOptions;
use crate::place::OpenedPlace;
use crate::progress::Progress;
use crate::requests::{Requests, gridfusion_config, remote_of};
use crate::secrets::hide;
use crate::session::plain_context;

/// Prints the description of a path, or of several. Fails if some of several files cannot be opened, once the others are
/// described.
///
/// # Errors
/// If the path cannot be opened, or the text cannot be written.
pub(crate) async fn run(args: &InfoArgs) -> Result<bool> {
    let options = PathOptions::of_files(&args.options, &gridfusion::built_in_formats())?;
    let ctx = plain_context(options.for_stores(), args.root.as_deref())?;
    let opening = Progress::is_possible().then(|| Progress::from_opening(&gridfusion_config(&ctx)));
    let described = describe(args, &options, &ctx).await;
    drop(opening);
    let (mut description, is_whole) = described.map_err(|error| with_hint(error.into(), &ctx))?;
    add_requests(&mut description, Requests(remote_of(&ctx).counts()));
    let text = if args.json {
        let json = serde_json::to_string_pretty(&description.document);
        json.map_err(|error| DataFusionError::External(Box::new(error)))? + "\n"
    } else {
        // Only lists of chunks have a limit that can be set.
        text::of(&description.pages, if args.chunks { "-n inf" } else { "--json" })
    };
    // The description has the URLs of the arrays. Attributes may have other URLs, which stay as they are.
    let text = hide(&text);
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    Ok(is_whole)
}

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
) -> gridfusion::Result<(Description, bool)> {
    let [path] = args.paths.as_slice() else {
        return describe_together(args, options, ctx).await;
    };
    if is_pattern(path) {
        return describe_together(args, options, ctx).await;
    }
    match OpenedPlace::open(path, options, ctx).await? {
        OpenedPlace::Group(schema) => {
            let listed = args.chunks.then_some(args.count.count());
            let detail = Detail::default().with_listed(listed).with_metadata(args.metadata);
            Ok((schema.group().describe(&detail).await?, true))
        }
        OpenedPlace::Directory(_) => describe_together(args, options, ctx).await,
    }
}

/// Describes the files of folders, patterns and lists.
async fn describe_together(
    args: &InfoArgs,
    options: &PathOptions,
    ctx: &SessionContext,
) -> gridfusion::Result<(Description, bool)> {
    let of_one = [("--chunks", args.chunks), ("--metadata", args.metadata)];
    if let Some((flag, _)) = of_one.iter().find(|(_, is_set)| *is_set) {
        let message = format!(
            "{flag} is for one file, store or array, and this is a folder, a pattern or a list: name one of its files"
        );
        return Err(Error::usage(message).in_file(&args.paths.join(" ")));
    }
    let opener = ArrayOpener::from_session(&ctx.state());
    let collection = opener.collection(&args.paths, options.for_arrays()).await?;
    let is_whole = !collection.has_unreadable();
    Ok((collection.describe()?, is_whole))
}
