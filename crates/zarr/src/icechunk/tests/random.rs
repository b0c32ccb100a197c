//! Random repositories, written and read by the library: see `tests/data/icechunk/random.py`.

use super::*;

/// Reads every version of every repository in the folder `GRIDFUSION_ICECHUNK`.
#[tokio::test]
#[ignore = "needs GRIDFUSION_ICECHUNK, a folder that tests/data/icechunk/random_repositories.py has filled"]
async fn random_repositories_have_the_cells_that_the_library_reads() {
    let folder = std::env::var("GRIDFUSION_ICECHUNK").expect("GRIDFUSION_ICECHUNK");
    let (mut repositories, mut versions, mut all_cells) = (0, 0, 0);
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    entries.sort();
    for repository in entries.into_iter().filter(|it| it.join("expected.json").is_file()) {
        repositories += 1;
        let text = std::fs::read(repository.join("expected.json")).unwrap();
        let expected: BTreeMap<String, Expected> = serde_json::from_slice(&text).unwrap();
        let location = repository.join("repository");
        for (id, expected) in expected {
            versions += 1;
            let location = location.to_str().unwrap();
            let dataset = open(location, version("snapshot", &id)).await.unwrap();
            compare(&dataset, &expected, &format!("{location} {id}")).await;
            all_cells += expected
                .arrays
                .values()
                .filter_map(|it| it.cells.as_array())
                .map(Vec::len)
                .sum::<usize>();
        }
    }
    assert!(repositories > 0);
    println!("{repositories} repositories, {versions} versions, {all_cells} cells");
}
