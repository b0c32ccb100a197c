//! Standard input as data: `CREATE EXTERNAL TABLE … LOCATION '/dev/stdin'`.
//!
//! A pipe has no length and cannot be read twice. So its bytes are kept in memory, under a URL:
//!
//! ```text
//!   '/dev/stdin' STORED AS CSV ──▶ stdin:///stdin.csv ──▶ the bytes, for every ending
//! ```

use std::io::{self, Read};
use std::sync::Arc;

use futures::FutureExt;
use gridfusion::{Error, Result};
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};

/// Paths that stand for standard input.
const NAMES: [&str; 3] = ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];
/// Endings of the formats that can be read from standard input; DataFusion finds files by their ending.
const ENDINGS: [&str; 3] = ["csv", "json", "parquet"];

/// Whether a path stands for standard input.
pub(crate) fn is_stdin(path: &str) -> bool {
    NAMES.contains(&path)
}

/// Returns the URL of standard input in a format. Other locations stay as they are.
pub(crate) fn location(path: String, file_type: &str) -> String {
    match is_stdin(&path) {
        true => format!("{}:///stdin.{}", Stdin::SCHEME, file_type.to_ascii_lowercase()),
        false => path,
    }
}

/// Reads standard input, unless it holds SQL.
#[derive(Debug)]
pub(crate) struct Stdin {
    is_sql: bool,
}

impl Stdin {
    pub(crate) const SCHEME: &str = "stdin";

    /// `is_sql` means that standard input holds SQL, so it cannot be a table.
    pub(crate) fn new(is_sql: bool) -> Self {
        Self { is_sql }
    }

    /// Reads standard input to its end, and returns a store with its bytes.
    ///
    /// # Errors
    /// `Usage` if standard input holds SQL; `Io` if it cannot be read.
    pub(crate) fn store(&self) -> Result<Arc<dyn ObjectStore>> {
        if self.is_sql {
            let message = "standard input holds SQL, so it cannot be a table; give SQL by -c or -f";
            return Err(Error::usage(message));
        }
        let mut bytes = vec![];
        io::stdin()
            .read_to_end(&mut bytes)
            .map_err(|error| Error::io("cannot read standard input", error))?;
        store_of(&bytes.into())
    }
}

fn store_of(bytes: &PutPayload) -> Result<Arc<dyn ObjectStore>> {
    let store = InMemory::new();
    for ending in ENDINGS {
        let path = format!("stdin.{ending}").into();
        // A store in memory is ready at once, so the future needs no executor.
        let put = store.put(&path, bytes.clone()).now_or_never();
        if !matches!(put, Some(Ok(_))) {
            return Err(Error::internal("an object in memory was not stored"));
        }
    }
    Ok(Arc::new(store))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_input_is_named_by_a_url() {
        assert_eq!(location("/dev/stdin".to_owned(), "CSV"), "stdin:///stdin.csv");
        assert_eq!(location("/data/x.csv".to_owned(), "CSV"), "/data/x.csv");
    }

    #[test]
    fn sql_and_data_do_not_share_standard_input() {
        let error = Stdin::new(true).store().unwrap_err().to_string();
        assert!(error.contains("give SQL by -c or -f"), "{error}");
    }

    #[tokio::test]
    async fn each_ending_has_all_bytes() {
        let store = store_of(&b"a,b\n1,2\n".to_vec().into()).unwrap();
        for ending in ENDINGS {
            let object = store.get(&format!("stdin.{ending}").into()).await.unwrap();
            assert_eq!(object.bytes().await.unwrap(), "a,b\n1,2\n");
        }
    }
}
