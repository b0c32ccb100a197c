//! Text that is not UTF-8: bytes are never replaced. `tests/data/text/make.py` wrote the files.

use gridfusion::{ArrayOptions, GridfusionSessionContextExt};

use crate::support::{query, reducing, rows_from};

const TEXT: &str = "tests/data/text";
const NAMES: [[&str; 1]; 3] = [["Oslo"], ["Zörich"], ["Zürich"]];

/// `_Encoding` names the character set of a variable, as in xarray.
#[tokio::test]
async fn a_declared_character_set_is_used() {
    let ctx = reducing(2, 8192);
    for (file, function) in [
        ("declared_classic.nc", "read_netcdf"),
        ("declared.h5", "read_netcdf"),
        ("declared.zarr", "read_zarr"),
    ] {
        let table = format!("{function}('{TEXT}/{file}'");
        let column = "SELECT \"value\" FROM";
        let rows = rows_from(&ctx, &format!("{column} {table}, 'name') ORDER BY 1")).await;
        assert_eq!(rows, NAMES, "{file}");
        // The option wins, also if it is wrong.
        let wrong = format!("{column} {table}, 'name', text_encoding => 'koi8-r') ORDER BY 1");
        assert!(rows_from(&ctx, &wrong).await.contains(&vec!["ZЭrich".to_owned()]), "{file}");
        let utf8 = format!("{column} {table}, 'name', text_encoding => 'utf-8')");
        let error = query(&ctx, &utf8).await.unwrap_err().to_string();
        assert!(error.contains("text_encoding, such as 'latin1'"), "{error}");
    }
}

/// Labels and values of text in another character set than the file declares are an error, bytes, or text by option.
#[tokio::test]
async fn an_undeclared_character_set_is_an_error() {
    let ctx = reducing(2, 8192);
    let file = format!("{TEXT}/undeclared.h5");
    for sql in [
        format!("SELECT station, count(*) FROM read_netcdf('{file}', 'v') GROUP BY station"),
        format!("SELECT \"value\" FROM read_netcdf('{file}', 'station')"),
        format!("SELECT fixed FROM read_netcdf('{file}')"),
    ] {
        let error = query(&ctx, &sql).await.unwrap_err().to_string();
        assert!(error.contains("not valid Utf8: \"Z\\xfcrich\""), "{error}");
        assert!(error.contains("text_encoding") && error.contains("text_as_binary"), "{error}");
    }
    let bytes = format!(
        "SELECT encode(station, 'hex') AS name, sum(v) FROM read_netcdf('{file}', text_as_binary => true)
         GROUP BY station ORDER BY name"
    );
    let expected = [["4f736c6f", "3.0"], ["5af672696368", "2.0"], ["5afc72696368", "1.0"]];
    assert_eq!(rows_from(&ctx, &bytes).await, expected);
    let latin = format!(
        "SELECT station, sum(v), max(fixed) FROM read_netcdf('{file}', text_encoding => 'Latin-1')
         GROUP BY station ORDER BY station"
    );
    let expected =
        [["Oslo", "3.0", "Oslo"], ["Zörich", "2.0", "Zörich"], ["Zürich", "1.0", "Zürich"]];
    assert_eq!(rows_from(&ctx, &latin).await, expected);
    // The attribute `units` is in ISO 8859-1 too, and no option is needed for it.
    let frame = ctx.read_array(
        &*file,
        ArrayOptions::default().with_dataset("v").with_option("text_as_binary", true),
    );
    let schema = frame.await.unwrap().schema().as_arrow().clone();
    assert_eq!(schema.field_with_name("value").unwrap().metadata()["units"], "°C");
    // A session's default, and a name that no character set has.
    ctx.sql("SET gridfusion.text_encoding = 'cp1252'").await.unwrap();
    let options = ArrayOptions::default();
    ctx.register_array("t", &file, options.clone()).await.unwrap();
    let rows = rows_from(&ctx, "SELECT v FROM t WHERE station = 'Zörich'").await;
    assert_eq!(rows, [["2.0"]]);
    let unknown = options.with_option("text_encoding", "latin0");
    let error = ctx.register_array("u", &file, unknown).await.unwrap_err().to_string();
    assert!(error.contains("'latin0', expected a character set"), "{error}");
}
