//! Quoted paths and URLs as tables: `SELECT * FROM 'stations.tet#temperature'`.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{TableProvider, UrlTableFactory};
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;

use super::spatial::{features_table, is_features};
use super::{ArrayOpener, ArrayTable};
use crate::error::{Error, ErrorKind, Result as GridResult};
use crate::exec::is_taken_for_rows;
use crate::format::Foreign;
use crate::io::is_not_found;
use crate::options::ArrayOptions;
use crate::source::{is_pattern, parse_url, path_of, refuse_foreign};

/// A factory of tables for quoted paths and URLs: of arrays of any format, of GeoJSON, and of the files that DataFusion reads
/// (CSV, Parquet, …).
///
/// | name | table |
/// |---|---|
/// | `'x.tet'`, `'x.tet.d'` | all data variables, a column each |
/// | `'x.tet#temperature'` | this dataset |
/// | `'arrays/forecast'` | a TileDB array |
/// | `'group'`, `'folder'` | all arrays of a TileDB group, or of a folder, a column each |
/// | `'group#forecast'` | one array of a group |
/// | `'regions.geojson'` | the features: a column per property, and `geometry` |
/// | `'years/*.nc'`, `'years/*'` | all files that match, perhaps of several formats, as one table |
///
/// The whole text is tried as a path first, because the name of a file may contain `#`. Then the text is split
/// at its last `#`, then at the one before, and so on. A URL is split at its first `#`; a `#` in the name of
/// an object is written `%23`. The settings `SET gridfusion.…` apply to these tables too.
#[derive(Debug)]
pub struct GridUrlTables {
    /// Makes the tables of other formats, and holds a weak reference to the session.
    listing: DynamicListTableFactory,
}

impl GridUrlTables {
    /// Makes a factory for the tables of a session.
    pub fn new(ctx: &SessionContext) -> Self {
        let listing = DynamicListTableFactory::default();
        listing.session_store().with_state(ctx.state_weak_ref());
        Self { listing }
    }

    /// Opens the array at the path or URL `name` as a table; `None` if no format recognises it.
    ///
    /// # Errors
    /// As [`ArrayOpener::table`], and `Usage` for arrays in another format.
    pub async fn array_table(&self, name: &str) -> GridResult<Option<ArrayTable>> {
        check_order(name)?;
        let opener = self.opener()?;
        // The first reading with arrays counts. A URL whose store is not registered is no array.
        for (location, dataset) in readings(name) {
            let Ok(place) = opener.place(location) else { continue };
            if let Some(found) = opener.formats().recognise(&place).await {
                let format = Some(found.format.name());
                return table(&opener, location, dataset, format).await.map(Some);
            }
        }
        // The matches of a pattern may have several formats.
        for (location, dataset) in readings(name) {
            if opener.matches_arrays(location).await {
                return table(&opener, location, dataset, None).await.map(Some);
            }
        }
        // No format recognises the place. If the ending is one of a format, return the error of opening it.
        for (location, dataset) in readings(name) {
            if let Some((found, _)) = opener.formats().of_name(&path_of(location)) {
                let format = Some(found.format.name());
                return table(&opener, location, dataset, format).await.map(Some);
            }
        }
        match opener.place(name) {
            Ok(place) => refuse_foreign(&place).await?,
            // A path outside of the session's root. Other names may be tables that are missing.
            Err(error) if is_local_path(name) => return Err(error),
            Err(error) => match Foreign::from_name(&path_of(name)).filter(|it| !it.has_rows()) {
                Some(foreign) => return Err(foreign.error().in_file(name)),
                // DataFusion returns an error of its own.
                None => log::debug!("not read as an array: {error}"),
            },
        }
        Ok(None)
    }

    /// Fails for a URL of which it is not known whether something is there: redirects in a circle, no connection. Without this,
    /// the message would only be that there is no such table.
    async fn unreachable(&self, name: &str) -> GridResult<()> {
        let opener = self.opener()?;
        let Some((location, _)) = readings(name).next() else { return Ok(()) };
        let Ok(place) = opener.place(location) else { return Ok(()) };
        if !place.is_remote() {
            return Ok(());
        }
        match place.object().await {
            Err(error) if error.kind() == ErrorKind::Io && !is_not_found(&error) => Err(error),
            _ => Ok(()),
        }
    }

    fn opener(&self) -> GridResult<ArrayOpener> {
        let session = self.listing.session_store().get_session().upgrade();
        let session = session.ok_or_else(|| Error::usage("the session of this table has ended"))?;
        let opener = ArrayOpener::from_session(&*session.read());
        Ok(opener)
    }
}

/// Whether a name is a local path with folders, or the URL of a local file.
fn is_local_path(name: &str) -> bool {
    match parse_url(name) {
        Some(url) => url.scheme() == "file",
        None => name.contains('/'),
    }
}

/// Refuses a query behind the dataset of a URL. It would be no part of the request, and messages would show it.
fn check_order(name: &str) -> GridResult<()> {
    let dataset = parse_url(name).and_then(|_| name.split_once('#')).map(|(_, dataset)| dataset);
    if dataset.is_none_or(|it| !it.contains('?')) {
        return Ok(());
    }
    let message = "the query of a URL stands before the dataset: 'URL?QUERY#DATASET'; the name of a dataset with '?' is an argument: \
                   read_array('URL', 'DATASET')";
    Err(Error::usage(message).in_file(name))
}

/// Splits a name into a location and perhaps a dataset, in each way that it can be read.
fn readings(name: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let is_url = parse_url(name).is_some();
    let parts = |at: usize| (&name[..at], Some(&name[at + 1..]));
    let (whole, first, marks) = match name.find('#') {
        Some(at) if is_url => (None, Some(parts(at)), None),
        _ => (Some((name, None)), None, Some(name.rmatch_indices('#'))),
    };
    let split = marks.into_iter().flatten().map(move |(at, _)| parts(at));
    whole.into_iter().chain(first).chain(split)
}

/// Opens the table of a dataset, or of all data variables.
async fn table(
    opener: &ArrayOpener,
    location: &str,
    dataset: Option<&str>,
    format: Option<&str>,
) -> GridResult<ArrayTable> {
    let options = ArrayOptions::default();
    let options = match dataset {
        Some(dataset) => options.with_dataset(dataset),
        None => options,
    };
    opener.table(location, format, &options).await
}

#[async_trait]
impl UrlTableFactory for GridUrlTables {
    async fn try_new(&self, url: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        match self.array_table(url).await? {
            Some(table) => Ok(Some(table.into_provider())),
            None if is_features(url) => match features_table(&self.opener()?.place(url)?).await {
                Ok((table, _)) => Ok(Some(table)),
                Err(_) if is_pattern(url) => {
                    let message = "GeoJSON is read from one file, not from a pattern: put files together with UNION ALL";
                    Err(Error::usage(message).in_file(url).into())
                }
                Err(error) => Err(error),
            },
            None => match self.listing.try_new(url).await {
                Ok(None) => {
                    self.unreachable(url).await?;
                    Ok(None)
                }
                // A folder of arrays is no table.
                Err(error) if is_taken_for_rows(&error) => Ok(None),
                table => table,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_in_every_way() {
        let read = |name| readings(name).collect::<Vec<_>>();
        assert_eq!(read("x.tet"), [("x.tet", None)]);
        assert_eq!(
            read("a#1.tet#b#c"),
            [
                ("a#1.tet#b#c", None),
                ("a#1.tet#b", Some("c")),
                ("a#1.tet", Some("b#c")),
                ("a", Some("1.tet#b#c"))
            ]
        );
        assert_eq!(read("s3://b/a%231.tet#t#u"), [("s3://b/a%231.tet", Some("t#u"))]);
        assert_eq!(read("s3://b/a.tet"), [("s3://b/a.tet", None)]);
        let refused = |name| check_order(name).map_err(|error| error.to_string());
        assert!(refused("http://h/a#t?sig=S").unwrap_err().starts_with("http://h/a#t: the query"));
        assert!(refused("http://h/a?b#t").is_ok() && refused("a#t?").is_ok());
    }
}
