//! `.cd`: the folder in which relative paths begin.
//!
//! Tables that are open keep their files: the library resolves a path when it opens a table, also for chunks that it reads later.

use std::env;
use std::io::{self, Write};

use datafusion::common::{plan_datafusion_err, plan_err};
use datafusion::error::Result;
use datafusion::prelude::SessionContext;

use crate::catalog::in_home;
use crate::session::Output;
use crate::store::Stores;

/// Changes the folder, unless `folder` is empty, and prints it.
///
/// # Errors
/// If there is no such folder, or it is outside of `--root`, or workers open files in folders of their own.
pub(super) fn change(ctx: &SessionContext, folder: &str, output: &Output) -> Result<()> {
    if !folder.is_empty() {
        if output.has_workers {
            return plan_err!(
                ".cd would not change the folders of the workers; name files by paths that begin with /"
            );
        }
        let path = in_home(folder);
        if let Some(stores) = Stores::in_session(ctx) {
            stores.check_folder(&path)?;
        }
        let failed = |error| plan_datafusion_err!("{folder}: cannot change to the folder: {error}");
        env::set_current_dir(&path).map_err(failed)?;
    }
    let now = env::current_dir()?;
    Ok(writeln!(io::stdout(), "{}", now.display())?)
}
