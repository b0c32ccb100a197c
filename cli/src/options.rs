//! What `--option NAME=VALUE` says about how the PATHs of the command line are read.

use std::collections::HashMap;

use gridfusion::options::{OPTIONS, OptionInfo, Scope};
use gridfusion::{Error, TetReadOptions, TileDbReadOptions};

/// Options that are about one table. A PATH is a schema, or a catalog, of many.
const OF_ONE_TABLE: [&str; 3] = ["dataset", "concat_dimension", "file_column"];

/// A name and a value, as given.
pub(crate) type Setting = (String, String);

/// Takes `NAME=VALUE` apart.
///
/// # Errors
/// If there is no `=`, or no name before it.
pub(crate) fn parse_setting(text: &str) -> Result<Setting, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE, for instance timestamp=2024-03-01".to_owned()),
    }
}

/// How what is at a PATH is read, whatever that is. Not to be printed: it may hold a key.
#[derive(Default)]
pub(crate) struct PathOptions {
    said: HashMap<String, String>,
    /// Whether what is about the other format is passed over rather than refused.
    is_mixed: bool,
}

impl PathOptions {
    /// The options that the command line says.
    ///
    /// # Errors
    /// `Usage` for a name that stands for nothing, or nothing that is about a PATH; for one that is given
    /// twice; and for a value that it cannot have.
    pub(crate) fn new(settings: &[Setting]) -> gridfusion::Result<Self> {
        let mut options = Self::default();
        for (name, value) in settings {
            if options.said.insert(name.clone(), value.clone()).is_some() {
                return Err(Error::usage(format!("option '{name}' is given twice")));
            }
        }
        options.refuse_all_but(&[Scope::Tet, Scope::TileDb])?;
        let mixed = options.in_directory();
        mixed.tet()?;
        mixed.tiledb()?;
        Ok(options)
    }

    /// The same for what is in a directory, where each format takes the options that are about it.
    pub(crate) fn in_directory(&self) -> Self {
        Self { said: self.said.clone(), is_mixed: true }
    }

    /// What is said, for object stores.
    pub(crate) fn for_store(&self) -> &HashMap<String, String> {
        &self.said
    }

    /// How a `.tet` file or package is read.
    ///
    /// # Errors
    /// `Usage` if something is said that is not about one.
    pub(crate) fn tet(&self) -> gridfusion::Result<TetReadOptions> {
        TetReadOptions::from_sql(&self.of(Scope::Tet)?)
    }

    /// How TileDB arrays are read.
    ///
    /// # Errors
    /// `Usage` if something is said that is not about them.
    pub(crate) fn tiledb(&self) -> gridfusion::Result<TileDbReadOptions> {
        TileDbReadOptions::from_sql(&self.of(Scope::TileDb)?)
    }

    fn of(&self, scope: Scope) -> gridfusion::Result<HashMap<String, String>> {
        if !self.is_mixed {
            self.refuse_all_but(&[scope])?;
        }
        let said = self.said.iter().filter(|(name, _)| scope.option(name).is_ok());
        Ok(said.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    fn refuse_all_but(&self, scopes: &[Scope]) -> gridfusion::Result<()> {
        let is_about = |option: &OptionInfo| {
            option.scopes.iter().any(|scope| scopes.contains(scope))
                && !OF_ONE_TABLE.contains(&option.name)
        };
        let mut names: Vec<&str> = self.said.keys().map(String::as_str).collect();
        names.sort_unstable();
        for name in names {
            let option = OPTIONS.iter().find(|option| option.name == name);
            if is_of_store(name) || option.is_some_and(is_about) {
                continue;
            }
            let known: Vec<&str> =
                OPTIONS.iter().filter(|it| is_about(it)).map(|it| it.name).collect();
            let why = match option {
                Some(option) if OF_ONE_TABLE.contains(&option.name) => {
                    "is about one table, and a PATH is a schema of several; say it in SQL"
                }
                Some(option) if option.scopes == [Scope::Session] => {
                    "is for SET gridfusion.… in SQL"
                }
                Some(option) if option.scopes.contains(&Scope::Tet) => {
                    "is for .tet files and packages"
                }
                Some(_) => "is for TileDB arrays",
                None => "is unknown",
            };
            return Err(Error::usage(format!(
                "option '{name}' {why}; the options here are {}",
                known.join(", ")
            )));
        }
        Ok(())
    }
}

/// Whether an option is a setting of an object store, which has its own names.
fn is_of_store(name: &str) -> bool {
    let prefix = name.split_once('.').map(|(prefix, _)| prefix);
    prefix.is_some_and(|prefix| ["aws", "azure", "gcp", "google"].contains(&prefix))
}

#[cfg(test)]
mod tests {
    use gridfusion::IoMode;

    use super::*;

    fn options(settings: &[&str]) -> gridfusion::Result<PathOptions> {
        let settings: Vec<Setting> =
            settings.iter().map(|text| parse_setting(text).unwrap()).collect();
        PathOptions::new(&settings)
    }

    #[test]
    fn settings_are_taken_apart() {
        let pair = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(parse_setting("io=pread"), pair("io", "pread"));
        assert_eq!(parse_setting("encryption_key=a=b"), pair("encryption_key", "a=b"));
        assert!(parse_setting("io").is_err() && parse_setting("=pread").is_err());
    }

    #[test]
    fn each_format_takes_its_own() {
        let both = options(&["io=pread", "timestamp=7", "aws.region=x"]).unwrap();
        assert_eq!(both.tiledb().unwrap().open.end, Some(7));
        let error = both.tet().unwrap_err().to_string();
        let expected =
            "option 'timestamp' is for TileDB arrays; the options here are generation, io, ";
        assert!(error.starts_with(expected), "{error}");
        let mixed = both.in_directory();
        assert_eq!(mixed.tet().unwrap().io(), IoMode::Pread);
        assert_eq!(mixed.tiledb().unwrap().open.end, Some(7));
        assert!(options(&["generation=1"]).unwrap().tiledb().is_err());
    }

    #[test]
    fn mistakes_are_named() {
        for (settings, expected) in [
            (&["io=fast"][..], "io = 'fast'"),
            (&["io=mmap", "io=pread"], "option 'io' is given twice"),
            (&["time=1"], "option 'time' is unknown; the options here are generation, timestamp, "),
            (&["dataset=t"], "option 'dataset' is about one table"),
            (&["reduce=false"], "option 'reduce' is for SET gridfusion"),
            (&["encryption_key=short"], "key"),
        ] {
            let error = options(settings).err().unwrap().to_string();
            assert!(error.contains(expected) && !error.contains("short"), "{settings:?}: {error}");
        }
    }
}
