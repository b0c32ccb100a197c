//! [`StoreOptions`]: options of object stores, from the environment, the command line and statements.

use std::collections::HashMap;
use std::fmt;

use gridfusion::io::is_same_origin;
use gridfusion::provider::is_secret_option;
use gridfusion::{Error, Result};
use object_store::ClientConfigKey;
use object_store::aws::AmazonS3ConfigKey;
use object_store::azure::AzureConfigKey;
use object_store::gcp::GoogleConfigKey;
use url::Url;

use super::client::{ALLOW_PRIVATE, flag};
use super::names::{Key, split};

/// Options with their values. Each option occurs once.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct StoreOptions(Vec<(Key, String)>);

/// Shows no values, because they may be keys.
impl fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(key, _)| key)).finish()
    }
}

impl StoreOptions {
    /// Returns the options that environment variables such as `AWS_REGION` set.
    pub(crate) fn from_environment() -> Self {
        let mut options = Self::default();
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        for (name, value) in variables.filter(|(_, value)| !value.is_empty()) {
            if let Some(key) = Key::from_variable(&name) {
                // `AWS_SESSION_TOKEN` is `aws.session_token`.
                if is_secret_option(&name.replacen('_', ".", 1)) {
                    crate::secrets::learn(&value);
                }
                options.put(key, value);
            }
        }
        options
    }

    /// Returns the options for object stores among those of a statement.
    ///
    /// # Errors
    /// `Usage` for an unknown name, or two names of the same option.
    pub(crate) fn from_sql(options: &HashMap<String, String>) -> Result<Self> {
        let mut of_store: Vec<_> =
            options.iter().filter(|(name, _)| split(name).is_some()).collect();
        of_store.sort();
        let mut found = Self::default();
        for (name, value) in of_store {
            found.set(name, value)?;
        }
        Ok(found)
    }

    /// Sets an option.
    ///
    /// # Errors
    /// `Usage` for an unknown name, or an option that is set.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let key = Key::try_new(name)?;
        if is_secret_option(name) {
            crate::secrets::learn(value);
        }
        if key == Key::AllowPrivate {
            flag(name, value).map_err(Error::usage)?;
        }
        if self.0.iter().any(|(it, _)| *it == key) {
            return Err(Error::usage(format!("option '{name}' is given twice")));
        }
        self.0.push((key, value.to_owned()));
        Ok(())
    }

    fn put(&mut self, key: Key, value: String) {
        // An endpoint for S3 alone wins over one for all services. An option must win over a variable.
        let hides = |it: &Key| {
            key == Key::Aws(AmazonS3ConfigKey::Endpoint)
                && *it == Key::Aws(AmazonS3ConfigKey::S3Endpoint)
        };
        self.0.retain(|(it, _)| *it != key && !hides(it));
        self.0.push((key, value));
    }

    /// Returns these options, replaced and completed by others.
    #[must_use]
    pub(crate) fn overridden_by(&self, others: &Self) -> Self {
        let mut all = self.clone();
        for (key, value) in &others.0 {
            all.put(key.clone(), value.clone());
        }
        all
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn each<K>(&self, of: impl Fn(&Key) -> Option<K>) -> impl Iterator<Item = (K, &str)> {
        self.0.iter().filter_map(move |(key, value)| Some((of(key)?, value.as_str())))
    }

    /// Whether references of remote files, and redirects, may reach private addresses.
    pub(super) fn allows_private(&self) -> bool {
        let value =
            |(key, value): &(Key, String)| (*key == Key::AllowPrivate).then(|| value.clone());
        self.0.iter().find_map(value).is_some_and(|value| flag(ALLOW_PRIVATE, &value) == Ok(true))
    }

    /// Whether an option sends headers to this server, although only a file names it.
    pub(super) fn names_origin(&self, url: &Url) -> bool {
        let all = self.each(|key| (*key == Key::HeaderOrigins).then_some(()));
        let mut origins = all.flat_map(|((), value)| value.split([',', ' ']));
        origins.any(|it| Url::parse(it).is_ok_and(|it| is_same_origin(&it, url)))
    }

    /// Returns the options without headers for web servers.
    pub(super) fn without_headers(mut self) -> Self {
        self.0.retain(|(key, _)| !matches!(key, Key::Header(_)));
        self
    }

    pub(super) fn aws(&self) -> impl Iterator<Item = (AmazonS3ConfigKey, &str)> {
        self.each(|key| if let Key::Aws(key) = key { Some(*key) } else { None })
    }

    pub(super) fn azure(&self) -> impl Iterator<Item = (AzureConfigKey, &str)> {
        self.each(|key| if let Key::Azure(key) = key { Some(*key) } else { None })
    }

    pub(super) fn google(&self) -> impl Iterator<Item = (GoogleConfigKey, &str)> {
        self.each(|key| if let Key::Google(key) = key { Some(*key) } else { None })
    }

    pub(super) fn http(&self) -> impl Iterator<Item = (ClientConfigKey, &str)> {
        self.each(|key| if let Key::Http(key) = key { Some(*key) } else { None })
    }

    /// Returns the headers of requests to web servers.
    pub(super) fn headers(&self) -> impl Iterator<Item = (String, &str)> {
        self.each(|key| if let Key::Header(name) = key { Some(name.clone()) } else { None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(pairs: &[(&str, &str)]) -> Result<StoreOptions> {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        StoreOptions::from_sql(&pairs.iter().map(pair).collect())
    }

    #[test]
    fn later_options_win() {
        let first = options(&[("aws.region", "a"), ("aws.endpoint_url_s3", "b"), ("io", "x")]);
        let second = options(&[("aws.region", "c"), ("aws.endpoint", "d")]).unwrap();
        let both = first.unwrap().overridden_by(&second);
        let all: Vec<_> = both.aws().collect();
        assert_eq!(all, [(AmazonS3ConfigKey::Endpoint, "d"), (AmazonS3ConfigKey::Region, "c")]);
        assert!(!format!("{both:?}").contains("\"c\""));
    }

    #[test]
    fn names_of_one_option_are_one() {
        let error = options(&[("gcp.service_account", "a"), ("google.service_account_path", "b")]);
        assert!(error.unwrap_err().to_string().contains("is given twice"));
        assert!(options(&[("aws.regoin", "a")]).is_err());
    }
}
