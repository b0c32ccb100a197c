//! The queries of the bench `sparse`.

/// A query of an array, and its contestants.
pub(crate) struct Case {
    /// The name in `FIGURES.md`.
    pub(crate) name: &'static str,
    /// The name of the array in `sparse_peer.py`.
    pub(crate) array: &'static str,
    pub(crate) sql: &'static str,
    pub(crate) reads: Reads,
    /// Queries of `sparse_peer.py` with the same result: their names in `FIGURES.md` and in the script.
    pub(crate) peers: &'static [(&'static str, &'static str)],
    /// An array with which the same query is compared: its names in `FIGURES.md` and in the script.
    pub(crate) other: Option<(&'static str, &'static str)>,
}

/// The tiles that a query has to read.
#[derive(Clone, Copy)]
pub(crate) enum Reads {
    /// None: footers and statistics have the result.
    Nothing,
    /// Tiles of which nothing is asserted.
    Tiles,
    /// All tiles of these data files.
    All(&'static [&'static str]),
}

const TILEDB: &str = "TileDB-Py";
const INSIDE: &str = "TileDB-Py, aggregated by TileDB";

// The same constants are in sparse_peer.py.
const BOX: &str = "SELECT * FROM t WHERE x BETWEEN 10 AND 21.384 AND y BETWEEN 10 AND 15.692";
const SHIP: &str = "SELECT * FROM t WHERE ship = 'S00042'";
/// Statistics of tiles answer a plain average, and this one not.
const AVG: &str = "SELECT avg(value + 1) - 1 FROM t";
const WARM: &str = "SELECT count(*) FROM t WHERE value > 290";
const ALL: &str = "SELECT * FROM t";

impl Case {
    fn new(name: &'static str, array: &'static str, sql: &'static str) -> Self {
        Self { name, array, sql, reads: Reads::Tiles, peers: &[], other: None }
    }

    /// Adds the peers.
    fn beside(self, peers: &'static [(&'static str, &'static str)]) -> Self {
        Self { peers, ..self }
    }

    /// Compares the query with the same query of another array.
    fn against(self, name: &'static str, array: &'static str) -> Self {
        Self { other: Some((name, array)), ..self }
    }

    /// Asserts the tiles that are read.
    fn reading(self, reads: Reads) -> Self {
        Self { reads, ..self }
    }
}

/// Returns all cases, in the order of `FIGURES.md`.
pub(crate) fn cases() -> impl Iterator<Item = Case> {
    boxes()
        .into_iter()
        .chain(answered())
        .chain(scans())
        .chain(hidden())
        .chain(ships())
        .chain(many())
}

/// Returns boxes of few points. Tiles are compact in Hilbert order; in row-major order, they are strips from south to
/// north.
fn boxes() -> [Case; 2] {
    [
        Case::new("a box with 0.1 % of the points, Hilbert order", "hilbert", BOX)
            .beside(&[(TILEDB, "box")]),
        Case::new("a box with 0.1 % of the points, row-major order", "row_major", BOX)
            .beside(&[(TILEDB, "box")]),
    ]
}

/// Returns aggregates that need no tile.
fn answered() -> [Case; 2] {
    [
        Case::new("`count(*)`", "row_major", "SELECT count(*) FROM t")
            .beside(&[(INSIDE, "count")])
            .reading(Reads::Nothing),
        Case::new(
            "`sum, min, max, count`, from statistics",
            "row_major",
            "SELECT sum(value), min(value), max(value), count(value) FROM t",
        )
        .beside(&[(INSIDE, "aggregate")])
        .reading(Reads::Nothing),
    ]
}

/// Returns scans of all points. Every tile has values on both sides of 290, so statistics skip none.
fn scans() -> [Case; 6] {
    const AVG_PEERS: &[(&str, &str)] = &[(TILEDB, "avg"), (INSIDE, "avg_inside")];
    const WARM_PEERS: &[(&str, &str)] = &[(TILEDB, "count_warm"), (INSIDE, "count_warm_inside")];
    const ALL_PEERS: &[(&str, &str)] = &[(TILEDB, "all")];
    const VALUE: Reads = Reads::All(&["a0.tdb"]);
    const COLUMNS: Reads = Reads::All(&["d0.tdb", "d1.tdb", "a0.tdb", "a1.tdb"]);
    [
        Case::new("`count(*) WHERE value > 290`, Hilbert order", "hilbert", WARM)
            .beside(WARM_PEERS)
            .reading(VALUE),
        Case::new("`count(*) WHERE value > 290`, row-major order", "row_major", WARM)
            .beside(WARM_PEERS)
            .reading(VALUE),
        Case::new("`avg(value + 1)`, Hilbert order", "hilbert", AVG)
            .beside(AVG_PEERS)
            .reading(VALUE),
        Case::new("`avg(value + 1)`, row-major order", "row_major", AVG)
            .beside(AVG_PEERS)
            .reading(VALUE),
        Case::new("`SELECT *`, Hilbert order", "hilbert", ALL).beside(ALL_PEERS).reading(COLUMNS),
        Case::new("`SELECT *`, row-major order", "row_major", ALL)
            .beside(ALL_PEERS)
            .reading(COLUMNS),
    ]
}

/// Returns queries over cells that newer ones replace, and over cells that were deleted.
fn hidden() -> [Case; 3] {
    const ONE: &str = "the same in one fragment";
    [
        Case::new("`SELECT *`, four overlapping fragments", "four", ALL)
            .beside(&[(TILEDB, "all")])
            .against(ONE, "hilbert"),
        Case::new("`avg(value + 1)`, four overlapping fragments", "four", AVG)
            .beside(&[(TILEDB, "avg")])
            .against(ONE, "hilbert"),
        Case::new("`avg(value + 1)`, 1 % of the points deleted", "deleted", AVG)
            .beside(&[(TILEDB, "avg")])
            .against("the same without the deletion", "hilbert"),
    ]
}

/// Returns queries of an array with texts as coordinates.
fn ships() -> [Case; 4] {
    const ONE: &str = "the same in one fragment";
    [
        Case::new("one of 5000 ships, by its name", "ships", SHIP).beside(&[(TILEDB, "ship")]),
        Case::new("`SELECT ship, value`", "ships", "SELECT ship, value FROM t")
            .beside(&[(TILEDB, "ship_value")]),
        Case::new("one of 5000 ships, four overlapping fragments", "ships_four", SHIP)
            .beside(&[(TILEDB, "ship")])
            .against(ONE, "ships"),
        Case::new("`avg(value + 1)` of all ships, four overlapping fragments", "ships_four", AVG)
            .beside(&[(TILEDB, "avg")])
            .against(ONE, "ships"),
    ]
}

/// Returns queries over many fragments of 100 cells.
fn many() -> [Case; 2] {
    const DENSE: &str = "a dense array of the same cells";
    [
        Case::new("one of 1000 fragments", "many", "SELECT * FROM t WHERE hour = 7")
            .against(DENSE, "many_dense"),
        Case::new("`avg(value + 1)`, 1000 fragments", "many", AVG)
            .beside(&[(TILEDB, "avg")])
            .against(DENSE, "many_dense"),
    ]
}
