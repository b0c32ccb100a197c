//! Grids whose coordinates are no longitudes and latitudes: projections and rotated poles.

use gridfusion::GridfusionSessionContextExt;
use serde_json::json;

use super::store::{Store, boxed};
use crate::support::{cell, query, reducing, rows_from};

/// On a plane, areas are squares of the units. They are NULL if these are no lengths.
#[tokio::test]
async fn planes() {
    let ctx = reducing(2, 100);
    for (units, expected) in [("m", "50.0"), ("km", "50000000.0"), ("degrees", "NULL")] {
        let attributes = |name: &str| json!({"units": units, "standard_name": name});
        let store = Store::new()
            .with("a", &["a"], &[3], attributes("projection_y_coordinate"), &[0.0, 10.0, 20.0])
            .with("b", &["b"], &[2], attributes("projection_x_coordinate"), &[0.0, 10.0])
            .with("v", &["a", "b"], &[3, 2], json!({}), &[0.0; 6]);
        let sql = format!(
            "SELECT round(sum(area_m2), 6) FROM grid_coverage('{}', (SELECT '{}' AS wkt))",
            store.path(),
            boxed([0.0, 5.0], [0.0, 10.0])
        );
        assert_eq!(cell(&ctx, &sql).await, expected, "{units}");
        let named = sql.replace(" AS wkt))", " AS wkt), y => 'b', x => 'a')");
        assert_eq!(cell(&ctx, &named).await, expected, "{units}");
    }
}

/// A grid of a projection, with a latitude and a longitude per cell if `is_curved`.
fn projected(names: [&str; 2], standard_names: [&str; 2], is_curved: bool) -> Store {
    let labels = [0.0, 10.0];
    let [y, x] = names;
    let attributes = |name: &str| json!({"standard_name": name, "units": "m"});
    let store = Store::new().with(y, &[y], &[2], attributes(standard_names[0]), &labels).with(
        x,
        &[x],
        &[2],
        attributes(standard_names[1]),
        &labels,
    );
    let store = match is_curved {
        false => store,
        true => store
            .with(
                "lat",
                &names,
                &[2, 2],
                json!({"units": "degrees_north"}),
                &[50.0, 50.0, 51.0, 51.0],
            )
            .with(
                "lon",
                &names,
                &[2, 2],
                json!({"units": "degrees_east"}),
                &[9.0, 10.0, 9.0, 10.0],
            ),
    };
    store.with("v", &names, &[2, 2], json!({"coordinates": "lat lon"}), &[1.0, 2.0, 3.0, 4.0])
}

const PLANE: [&str; 2] = ["projection_y_coordinate", "projection_x_coordinate"];
const ROTATED: [&str; 2] = ["grid_latitude", "grid_longitude"];

/// Polygons in degrees would find wrong cells of a rotated grid. The names of the axes confirm that polygons have the same coordinates.
/// With a latitude per cell, polygons are those of longitudes and latitudes.
#[tokio::test]
async fn degrees_are_no_coordinates_of_a_plane() {
    let ctx = reducing(2, 100);
    let sum = |store: &Store, wkt: &str, more: &str| {
        format!(
            "SELECT round(sum(coverage), 9) FROM grid_coverage('{}', (SELECT '{wkt}' AS wkt), dataset => 'v'{more})",
            store.path()
        )
    };
    let (of_plane, of_globe) = (boxed([0.0, 5.0], [0.0, 10.0]), boxed([9.5, 10.5], [49.5, 50.5]));
    for (names, standard_names) in
        [(["a", "b"], ROTATED), (["rlat", "rlon"], ["", ""]), (["y", "x"], PLANE)]
    {
        let [y, x] = names;
        let confirmed = format!(", y => '{y}', x => '{x}'");
        for is_curved in [false, true] {
            let store = projected(names, standard_names, is_curved);
            assert_eq!(cell(&ctx, &sum(&store, &of_plane, &confirmed)).await, "0.5", "{names:?}");
            if is_curved {
                assert_eq!(cell(&ctx, &sum(&store, &of_globe, "")).await, "1.0", "{names:?}");
            } else if standard_names != PLANE {
                let error = query(&ctx, &sum(&store, &of_globe, "")).await.unwrap_err();
                let expected =
                    format!("\"{y}\" and \"{x}\" are latitudes and longitudes of a rotated");
                assert!(error.to_string().contains(&expected), "{error}");
            }
        }
    }
}

/// Points with latitudes need a grid with latitudes.
#[tokio::test]
async fn latitudes_of_points_are_no_coordinates_of_a_plane() {
    let ctx = reducing(2, 100);
    let store = projected(["y", "x"], PLANE, false);
    let sql = |point: &str, more: &str| {
        format!(
            "SELECT cell_y, cell_x FROM grid_points('{}', (SELECT {point}), dataset => 'v'{more})",
            store.path()
        )
    };
    let error = query(&ctx, &sql("8 AS lat, 1 AS lon", "")).await.unwrap_err().to_string();
    assert!(error.contains("the coordinate along \"y\": name it with option 'lat'"), "{error}");
    let named = ", lat => 'lat', lon => 'lon'";
    for sql in [sql("8 AS lat, 1 AS lon", named), sql("8 AS y, 1 AS x", "")] {
        assert_eq!(rows_from(&ctx, &sql).await, [["10.0", "0.0"]]);
    }
    // With a latitude per cell, points find that.
    let store = projected(["y", "x"], PLANE, true);
    let sql = format!(
        "SELECT cell_y, cell_x FROM grid_points('{}', (SELECT 50.9 AS lat, 9.9 AS lon), dataset => 'v')",
        store.path()
    );
    assert_eq!(rows_from(&ctx, &sql).await, [["10.0", "10.0"]]);
}

/// Files of polygons tell their coordinates: GeoJSON without a reference system has longitudes and latitudes.
#[tokio::test]
async fn files_tell_their_coordinates() {
    let ctx = reducing(2, 100);
    ctx.enable_gridfusion_urls();
    let features = |crs: &str| {
        format!(
            r#"{{"type": "FeatureCollection", {crs} "features": [{{"type": "Feature", "properties": {{}}, "geometry":
            {{"type": "Polygon", "coordinates": [[[0, 0], [5, 0], [5, 10], [0, 10], [0, 0]]]}}}}]}}"#
        )
    };
    let utm = r#""crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32633"}},"#;
    let plane = projected(["y", "x"], PLANE, false);
    let degrees = Store::of_degrees(&[0.0, 10.0], &[0.0, 10.0]);
    for (store, crs, expected) in [
        (&plane, "", Err("has longitudes and latitudes, and the grid coordinates \"y\" and \"x\"")),
        (&plane, utm, Ok("0.5")),
        (&degrees, "", Ok("0.5")),
        (&degrees, utm, Err("has coordinates of a projection")),
    ] {
        let file = store.write("r.geojson", &features(crs));
        let sql = format!(
            "SELECT round(sum(coverage), 9) FROM grid_coverage('{}', '{file}', dataset => 'v')",
            store.path()
        );
        match (query(&ctx, &sql).await, expected) {
            (Err(error), Err(expected)) => {
                assert!(error.to_string().contains(expected), "{crs}: {error}");
            }
            (_, Ok(expected)) => assert_eq!(cell(&ctx, &sql).await, expected, "{crs}"),
            (Ok(_), Err(expected)) => panic!("{crs}: expected {expected}"),
        }
        assert_eq!(cell(&ctx, &format!("SELECT count(*) FROM '{file}'")).await, "1");
    }
    let pattern = format!("SELECT count(*) FROM '{}'", plane.beside("*.geojson"));
    let error = query(&ctx, &pattern).await.unwrap_err().to_string();
    assert!(error.contains("not from a pattern"), "{error}");
}

#[tokio::test]
async fn radians_are_refused() {
    let radians = json!({"standard_name": "latitude", "units": "radian"});
    let store = Store::new()
        .with("a", &["a"], &[2], radians, &[0.0, 0.1])
        .with("lon", &["lon"], &[2], json!({}), &[0.0, 0.1])
        .with("v", &["a", "lon"], &[2, 2], json!({}), &[1.0; 4]);
    let sql = format!("SELECT * FROM grid_points('{}', (SELECT 0 AS lat, 0 AS lon))", store.path());
    let error = query(&reducing(2, 100), &sql).await.unwrap_err().to_string();
    assert!(error.contains("the units of \"a\" are 'radian'"), "{error}");
}
