//! The package of the corpus, generation by generation.

use gridfusion::ArrayOptions;
use gridfusion::format::Location;
use gridfusion::io::LocalFolder;
use gridfusion::tile::{Objects, drive};
use gridfusion_tet::TetReader;

use super::answers::check_dataset;
use super::tables::{dataset_names, indexed, open, plain, raw};
use super::{Report, corpus, read_json};

/// The generations of a package and the files that their datasets come from. Publishing drops the
/// metadata of footers, so the only fill value among them becomes an ordinary value, as in the answers.
const GENERATIONS: [(u64, &[&str]); 2] = [
    (1, &["reference/sample.tet"]),
    (2, &["converted/nc_small_labels.tet", "reference/sample.tet"]),
];
const PACKAGE: &str = "package/demo.tet.d";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs GRIDFUSION_CORPUS: the shared corpora"]
async fn packages() {
    let files = corpus();
    let answers = read_json(&files.join("answers.json"));
    let mut report = Report::default();
    let current = (None, GENERATIONS[1].1);
    let pinned = GENERATIONS.map(|(generation, parts)| (Some(generation), parts));
    for (generation, parts) in pinned.into_iter().chain([current]) {
        report.subject = format!("generation {generation:?} of {PACKAGE}");
        let schemas = [plain(), indexed(), raw()]
            .map(|(schema, options)| (schema, of_generation(options, generation)));
        let opened = open(&files.join(PACKAGE), &schemas).await;
        let Some(ctx) = report.note(opened) else { continue };
        let mut expected = 0;
        for part in parts {
            let datasets = answers[part]["datasets"].as_object().expect("a part has datasets");
            expected += datasets.len();
            for (dataset, answer) in datasets {
                check_dataset(&ctx, dataset, &answer["truth"], &mut report).await;
            }
        }
        let found = dataset_names(&ctx).len();
        report.equal("the number of datasets", &found.to_string(), &expected.to_string());
    }
    report.finish();
}

/// `ZONE.json` has the same zone maps as the file next to it.
#[tokio::test]
#[ignore = "needs GRIDFUSION_CORPUS: the shared corpora"]
async fn zone_files_agree_with_the_file() {
    let files = corpus();
    for (generation, _) in GENERATIONS {
        let open = || LocalFolder::open(&files.join(PACKAGE), true).map(std::sync::Arc::new);
        let (folder, objects) = (open().unwrap(), Objects::many(open().unwrap()));
        let file = TetReader::open_package(folder, Some(generation)).await.unwrap();
        let path = format!("generations/{generation:08}");
        let size = |name: &str| std::fs::metadata(files.join(PACKAGE).join(name)).unwrap().len();
        let (packed, zones) = (format!("{path}/packed.tet"), format!("{path}/ZONE.json"));
        let at = Location::new(zones.as_str(), 0..size(&zones));
        let within = file.tet().zone_maps_at().expect("zone maps are embedded");
        for dataset in 0..file.tet().datasets().len() {
            let beside = file.tet().read_zone_file(dataset, at.clone(), generation).unwrap();
            let beside = drive(beside, &objects).await.unwrap();
            let at = Location::new(packed.as_str(), within.clone());
            let embedded = file.tet().read_zone_file(dataset, at, generation).unwrap();
            assert_eq!(beside, drive(embedded, &objects).await.unwrap());
        }
    }
}

fn of_generation(options: ArrayOptions, generation: Option<u64>) -> ArrayOptions {
    match generation {
        Some(generation) => options.with_option("generation", generation),
        None => options,
    }
}
