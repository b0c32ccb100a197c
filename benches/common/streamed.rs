//! Writes `.tet` files that do not fit in memory, chunk by chunk, with right zone maps.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::json;

/// An array of hours x stations of f32, which rise with the hour. Chunks divide the axes evenly.
pub(crate) struct Streamed {
    pub(crate) shape: [u64; 2],
    pub(crate) chunk: [u64; 2],
    /// Whether the file has payloads. Without them, queries can be planned, but not run.
    pub(crate) has_payloads: bool,
    pub(crate) has_zones: bool,
}

/// The dataset's type tag.
const F32: u32 = 1;

/// The greatest value, far above all others; one chunk has it.
pub(crate) const PEAK: f32 = 1e9;

impl Streamed {
    pub(crate) fn chunks(&self) -> u64 {
        self.per_axis().iter().product()
    }

    pub(crate) fn cells_per_chunk(&self) -> u64 {
        self.chunk.iter().product()
    }

    fn per_axis(&self) -> [u64; 2] {
        [self.shape[0] / self.chunk[0], self.shape[1] / self.chunk[1]]
    }

    fn at(&self, chunk: u64) -> [u64; 2] {
        [chunk / self.per_axis()[1], chunk % self.per_axis()[1]]
    }

    /// The values of a chunk: its number along the hours, plus noise from 0 to 32.
    fn values(&self, chunk: u64) -> Vec<f32> {
        let mut rng = SmallRng::seed_from_u64(chunk);
        let level = self.at(chunk)[0] as f32;
        let cells = 0..self.cells_per_chunk();
        let mut values: Vec<f32> = cells.map(|_| level + 32.0 * rng.random::<f32>()).collect();
        if chunk == self.chunks() / 2 {
            values[0] = PEAK;
        }
        values
    }

    pub(crate) fn write(&self, path: &Path) {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path).unwrap());
        let rows = if self.has_payloads { self.chunks() } else { 0 };
        let mut directory = Vec::new();
        for field in [5, F32, 2, 0] {
            directory.extend(u32::to_le_bytes(field)); // name length, type, rank, flags
        }
        directory.extend(b"value\0\0\0");
        directory.extend(self.shape.iter().chain(&self.chunk).flat_map(|len| len.to_le_bytes()));
        let index_at = 40 + directory.len() as u64;
        let payloads_at = index_at + 32 + 104 * rows;

        file.write_all(b"TETR").unwrap();
        write_u32s(&mut file, &[1, 1, 1]); // version, datasets, a footer
        write_u64s(&mut file, &[index_at, 32 + 104 * rows, directory.len() as u64]);
        file.write_all(&directory).unwrap();
        file.write_all(b"TIDX").unwrap();
        write_u32s(&mut file, &[1]);
        write_u64s(&mut file, &[rows, 0, 0]);
        let len = self.cells_per_chunk() * 4;
        for chunk in 0..rows {
            let [hour, station] = self.at(chunk);
            write_u64s(&mut file, &[0, hour, station, 0, 0, 0, 0, 0, 0]);
            write_u64s(&mut file, &[payloads_at + chunk * len, len, len, 0]);
        }
        let mut zones = String::new();
        for chunk in 0..self.chunks() {
            self.write_chunk(chunk, &mut file, &mut zones);
        }
        self.write_footer(&mut file, payloads_at + rows * len, &zones);
        file.flush().unwrap();
    }

    /// Writes the payload of a chunk, and appends its zone map to `zones`, if the file has them.
    fn write_chunk(&self, chunk: u64, file: &mut impl Write, zones: &mut String) {
        let (least, greatest) = if self.has_payloads {
            let values = self.values(chunk);
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            file.write_all(&bytes).unwrap();
            let least = values.iter().copied().fold(f32::INFINITY, f32::min);
            (least, values.into_iter().fold(f32::NEG_INFINITY, f32::max))
        } else {
            (chunk as f32, chunk as f32 + 1.0)
        };
        if self.has_zones {
            let hex = |value: f32| format!("{:08x}", u32::from_be_bytes(value.to_le_bytes()));
            let zone = json!({"dataset_id": 0, "chunk_index": self.at(chunk),
                "element_count": self.cells_per_chunk(), "null_count": 0,
                "min_le": hex(least), "max_le": hex(greatest)});
            *zones += if zones.is_empty() { "" } else { "," };
            *zones += &zone.to_string();
        }
    }

    fn write_footer(&self, file: &mut impl Write, at: u64, zones: &str) {
        let labels: Vec<String> = (0..self.shape[1]).map(|i| format!("ST{i:05}")).collect();
        let dims = json!({"dim_names": ["time", "station"], "attrs": {},
            "coords": {"station": {"labels": labels}}});
        let mut footer = json!({"history": [], "metadata": {"datasets": {"value": dims}}});
        if self.has_zones {
            let zones = format!("{{\"version\":1,\"chunks\":[{zones}]}}");
            footer["zone_maps_ref"] = json!({"offset": at, "len": zones.len()});
            file.write_all(zones.as_bytes()).unwrap();
        }
        let footer = footer.to_string();
        file.write_all(footer.as_bytes()).unwrap();
        write_u64s(file, &[footer.len() as u64]);
        write_u32s(file, &[2]);
        file.write_all(b"THST").unwrap();
    }
}

fn write_u32s(file: &mut impl Write, numbers: &[u32]) {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    file.write_all(&bytes).unwrap();
}

fn write_u64s(file: &mut impl Write, numbers: &[u64]) {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    file.write_all(&bytes).unwrap();
}
