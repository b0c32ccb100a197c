//! Checks of verification, and of errors about mistakes and damage.

use std::path::Path;

use datafusion::error::Result;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::conformance::doors;
use crate::conformance::subject::Subject;
use crate::support::query;

pub(crate) async fn verification_passes(subject: &Subject<'_>) {
    let ctx = subject.session(1, 8192);
    let report = doors::verify(&ctx, &subject.location()).await;
    assert!(report.is_ok(), "{}: {report:#?}", subject.what());
    assert!(report.checks().len() > 2, "{}: {report:#?}", subject.what());
}

/// Mistakes in a request are planning errors that name the mistake.
pub(crate) async fn mistakes_are_plan_errors(subject: &Subject<'_>) {
    let ctx = subject.session(1, 8192);
    let (format, location) = (subject.format.name(), subject.location());
    let stored_as = format!("STORED AS {} LOCATION '{location}'", format.to_uppercase());
    for (sql, named) in [
        (format!("SELECT * FROM read_{format}('{location}', nonsense => 1)"), "nonsense"),
        (format!("SELECT * FROM read_{format}('{location}', nan_as_null => 'maybe')"), "maybe"),
        (format!("SELECT * FROM read_{format}('{location}', io => 'fast')"), "fast"),
        (format!("SELECT * FROM read_{format}('{location}', dataset => 'nowhere')"), "nowhere"),
        (format!("SELECT * FROM read_{format}()"), "path"),
        (format!("SELECT * FROM read_{format}(17.5)"), "17.5"),
        (format!("CREATE EXTERNAL TABLE x {stored_as} OPTIONS (nonsense '1')"), "nonsense"),
        (format!("CREATE EXTERNAL TABLE x {stored_as} OPTIONS (io 'fast')"), "fast"),
        (format!("CREATE EXTERNAL TABLE x (a INT) {stored_as}"), "column list"),
    ] {
        let error = query(&ctx, &sql).await.expect_err(&sql);
        assert!(doors::is_mistake(&error), "{sql}: {error:?}");
        assert!(error.to_string().contains(named), "{sql}: {error}");
    }
    let nowhere = format!("{}-nowhere{}", subject.array.name, subject.format.suffix());
    let path = subject.folder.path().join(&nowhere).to_str().unwrap().to_owned();
    let error = doors::register(&ctx, "t", vec![path]).await.unwrap_err();
    assert!(error.to_string().contains(&nowhere), "{error}");
}

/// Opens a damaged array, and reads a few rows, as it may have any number of them.
async fn look(subject: &Subject<'_>) -> Result<()> {
    let ctx = subject.session(2, 8192);
    let location = subject.location();
    doors::register(&ctx, "t", vec![location]).await?;
    query(&ctx, "SELECT count(*) FROM t").await?;
    query(&ctx, "SELECT * FROM t LIMIT 20").await?;
    Ok(())
}

pub(crate) async fn damaged_metadata_is_an_error(subject: &Subject<'_>) {
    let (file, range) = subject.format.metadata(&subject.path());
    let good = std::fs::read(&file).unwrap();
    // Replaces the file instead of changing it, as earlier readers may still have it mapped.
    let put = |file: &Path, bytes: &[u8]| {
        let draft = subject.folder.path().join("draft");
        std::fs::write(&draft, bytes).unwrap();
        std::fs::rename(&draft, file).unwrap();
    };
    let mut bad = good.clone();
    bad[range.start] ^= 0x15;
    for bytes in [&bad[..], &good[..range.start + range.len() / 2]] {
        put(&file, bytes);
        let error = look(subject).await.expect_err("a damaged file");
        assert!(doors::is_damage(&error), "{}: {error:?}", subject.what());
        let ctx = subject.session(1, 8192);
        let report = doors::verify(&ctx, &subject.location()).await;
        assert!(!report.is_ok(), "{}", subject.what());
    }
    // Changes elsewhere may go unnoticed, but must not cause panics or internal errors.
    let mut rng = StdRng::seed_from_u64(15);
    let mut refused = 0;
    for _ in 0..30 {
        let mut bad = good.clone();
        bad[rng.random_range(range.clone())] ^= 1 << rng.random_range(0..8);
        put(&file, &bad);
        if let Err(error) = look(subject).await {
            assert!(!error.to_string().contains("bug in gridfusion"), "{error}");
            refused += 1;
        }
    }
    assert!(refused > 3, "{}: {refused} refused", subject.what());
    put(&file, &good);
    look(subject).await.unwrap();
}
