//! Quoted paths and URLs as tables, including paths that begin with `~`.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{TableProvider, UrlTableFactory};
use datafusion::error::Result;
use gridfusion::GridUrlTables;

/// Makes tables from names that no catalog has.
#[derive(Debug)]
pub(crate) struct UrlTables(pub(crate) GridUrlTables);

#[async_trait]
impl UrlTableFactory for UrlTables {
    async fn try_new(&self, url: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.0.try_new(&in_home(url)).await
    }
}

/// Replaces a leading `~` in a path by the home directory.
pub(crate) fn in_home(path: &str) -> String {
    let rest = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    match (rest, dirs::home_dir().as_deref().and_then(|home| home.to_str())) {
        (Some(rest), Some(home)) => format!("{home}{rest}"),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tilde_is_the_home_folder() {
        let home = dirs::home_dir().unwrap();
        assert_eq!(in_home("~/a.tet"), format!("{}/a.tet", home.display()));
        assert_eq!(in_home("a~/b"), "a~/b");
        assert_eq!(in_home("~other/b"), "~other/b");
    }
}
