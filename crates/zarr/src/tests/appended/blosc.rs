//! Stores with chunks in Blosc that become longer.

use std::process::Command;

use gridfusion_core::format::codecs::{BloscCompressor, BloscShuffle};

use super::*;
use crate::{ZarrBlosc, ZarrCompressor};

/// Stores in Blosc, with the settings of other programs, become longer in the same ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_in_blosc_become_longer() {
    let folder = tempfile::tempdir().unwrap();
    for (number, change) in [
        json!({}),
        json!({"cname": "lz4hc", "clevel": 9, "shuffle": "bitshuffle"}),
        json!({"cname": "zlib", "blocksize": 4096}),
        json!({"cname": "zstd", "typesize": 2, "shuffle": "noshuffle"}),
    ]
    .into_iter()
    .enumerate()
    {
        let path = &folder.path().join(format!("{number}.zarr"));
        let blosc = ZarrBlosc::new(BloscCompressor::Lz4, 5).with_shuffle(BloscShuffle::Bytes);
        let compressor = Some(ZarrCompressor::Blosc(blosc));
        make(path, ZarrEncoding { compressor, ..ZarrEncoding::default() }, false).await;
        for array in ["v", "w", "x", "y"] {
            let mut own = document(path, array);
            for (name, value) in change.as_object().unwrap() {
                own["codecs"][1]["configuration"][name] = value.clone();
            }
            fs::write(path.join(array).join("zarr.json"), own.to_string()).unwrap();
        }
        append(path, &[3, 4], None).await.unwrap();
        assert_eq!(read(path).await.unwrap(), rows(&upto(5), &Y, |_| 0), "{change}");
    }
    for change in [json!({"cname": "blosclz"}), json!({"clevel": 10}), json!({"typesize": 0})] {
        let path = &folder.path().join("0.zarr");
        let before = document(path, "v");
        let mut own = before.clone();
        for (name, value) in change.as_object().unwrap() {
            own["codecs"][1]["configuration"][name] = value.clone();
        }
        fs::write(path.join("v/zarr.json"), own.to_string()).unwrap();
        let error = append(path, &[5], None).await.unwrap_err();
        assert!(error.to_string().contains("writing cells in the codec"), "{change}: {error}");
        fs::write(path.join("v/zarr.json"), before.to_string()).unwrap();
    }
}

/// Stores of zarr-python in Blosc and without consolidated metadata, and one of our own: zarr-python and xarray read the appended rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs GRIDFUSION_READERS_PYTHON: a Python with zarr and xarray"]
async fn zarr_python_reads_what_is_appended() {
    let folder = tempfile::tempdir().unwrap();
    let python = |word: &str| {
        let script =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/foreign/append_blosc.py");
        let python = std::env::var("GRIDFUSION_READERS_PYTHON").unwrap();
        let outcome =
            Command::new(python).arg(script).arg(word).arg(folder.path()).output().unwrap();
        let parts = [&outcome.stdout, &outcome.stderr].map(|it| String::from_utf8_lossy(it));
        assert!(outcome.status.success(), "{}{}", parts[0], parts[1]);
        parts[0].clone().into_owned()
    };
    python("make");
    let compressor = Some(ZarrCompressor::Blosc(ZarrBlosc::new(BloscCompressor::Zstd, 5)));
    let new = folder.path().join("new.zarr");
    make(&new, ZarrEncoding { compressor, ..ZarrEncoding::default() }, false).await;
    for store in fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().path()) {
        append(&store, &[3, 4], None).await.unwrap();
        append(&store, &[5, 6], None).await.unwrap();
    }
    assert!(python("check").contains("7 stores"));
}
