"""The engine of xarray, compared with the engines of xarray and with SQL."""

from __future__ import annotations

import importlib.metadata
import pickle
import re

import pytest

import gridfusion as gf

np = pytest.importorskip("numpy")
xr = pytest.importorskip("xarray")
pytest.importorskip("netCDF4")

from gridfusion._backend import GridfusionBackend, _absolute  # noqa: E402
from gridfusion._encoding import _missing  # noqa: E402


@pytest.fixture(scope="session")
def pair(air):
    """A file as gridfusion opens it, and as netCDF4 does."""
    with xr.open_dataset(air, engine=GridfusionBackend) as ours, xr.open_dataset(air, engine="netcdf4") as theirs:
        yield ours, theirs.load()


def test_a_file_is_what_netcdf4_reads(pair):
    ours, theirs = pair
    assert set(ours.variables) == set(theirs.variables) and dict(ours.sizes) == dict(theirs.sizes)
    for name in theirs.variables:
        assert ours[name].dims == theirs[name].dims, name
        assert (ours[name].dtype.kind == "M") == (theirs[name].dtype.kind == "M"), name
        if ours[name].dtype.kind == "M":
            assert (ours[name].values == theirs[name].values).all(), name
        else:
            np.testing.assert_allclose(ours[name].values, theirs[name].values, rtol=1e-6)
        assert ours[name].attrs == theirs[name].attrs, name
    assert set(ours.coords) == set(theirs.coords) and ours.attrs == theirs.attrs


@pytest.mark.parametrize("seed", range(20))
def test_random_selections(pair, seed):
    ours, theirs = pair
    random = np.random.default_rng(seed)

    def selection(length: int):
        kind = random.integers(5)
        low, high = sorted(random.integers(0, length + 1, 2).tolist())
        if kind == 0:
            return int(random.integers(-length, length))
        if kind == 1:
            return slice(low, high, int(random.integers(1, 4)))
        if kind == 2:
            return slice(None, None, -1)
        if kind == 3:
            return random.integers(-length, length, random.integers(0, 6))
        return slice(None)

    key = {dim: selection(length) for dim, length in theirs.sizes.items() if dim != "bnds"}
    mine, other = ours["t2m"].isel(key), theirs["t2m"].isel(key)
    assert mine.dims == other.dims and mine.shape == other.shape
    np.testing.assert_allclose(mine.values, other.values, rtol=1e-6)


def test_variables_are_lazy(pair, data):
    with xr.open_dataset(data / "climate.tet", engine=GridfusionBackend) as opened:
        assert not opened["t2m"].variable._in_memory
        again = pickle.loads(pickle.dumps(opened["t2m"]))
        assert again.identical(opened["t2m"])


@pytest.mark.parametrize("file", ["climate.tet", "stations.tet", "sea.zarr"])
def test_files_are_what_sql_reads(con, data, file):
    with xr.open_dataset(data / file, engine=GridfusionBackend) as opened:
        assert opened.data_vars
        for name, variable in opened.data_vars.items():
            rows = con.read(data / file, name)
            assert list(variable.dims) == rows.dims
            total, missing, cells = con.sql(
                f"SELECT sum(value), count(*) - count(value), count(*) FROM read_array('{data / file}', '{name}')"
            ).fetchall()[0]
            assert variable.size == cells and int(variable.isnull().sum()) == missing
            assert float(variable.astype("f8").sum()) == pytest.approx(total, rel=1e-6)
            first = {dim: variable[dim].values[0] for dim in variable.dims}
            assert variable.sel(first).size == 1


def test_types_and_missing_values(tmp_path):
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(tmp_path / "t.nc", "w") as file:
        file.createDimension("x", 3)
        file.createVariable("whole", "i4", ("x",), fill_value=-1)[:] = [5, -1, 7]
        file.createVariable("text", str, ("x",))[:] = np.array(["a", "", "b"], dtype=object)
        file.createVariable("scalar", "f8", ())[:] = 2.5
    with xr.open_dataset(tmp_path / "t.nc", engine=GridfusionBackend) as opened:
        assert np.isnan(opened["whole"].values[1]) and opened["whole"].values[[0, 2]].tolist() == [5, 7]
        assert opened["text"].values.tolist() == ["a", "", "b"]
        assert opened["scalar"].values == 2.5 and opened["scalar"].dims == ()
        assert "x" not in opened.coords
    with xr.open_dataset(tmp_path / "t.nc", engine=GridfusionBackend, drop_variables="text") as opened:
        assert set(opened) == {"whole", "scalar"}


@pytest.fixture
def stations(tmp_path):
    """A dataset with coordinates that are not dimensions, in a file."""
    grid = np.arange(12.0).reshape(3, 4)
    coords = {"lat": [10.0, 20.0, 30.0], "height": 2.0, "name": ("lat", ["a", "b", "c"]), "area": (("lat", "lon"), grid * 5)}
    variables = {"tas": (("lat", "lon"), grid, {"units": "K"}), "pr": (("lat", "lon"), grid * 2), "mean": ("lat", [1.0, 2.0, 3.0])}
    xr.Dataset(variables, coords).to_netcdf(tmp_path / "stations.nc")
    return tmp_path / "stations.nc"


def test_coordinates_are_those_of_netcdf4(stations):
    with xr.open_dataset(stations, engine=GridfusionBackend) as ours, xr.open_dataset(stations, engine="netcdf4") as theirs:
        assert set(ours.data_vars) == set(theirs.data_vars) == {"tas", "pr", "mean"}
        assert set(ours.coords) == set(theirs.coords) == {"lat", "height", "name", "area"}
        for name in theirs.variables:
            assert ours[name].dims == theirs[name].dims and (ours[name].values == theirs[name].values).all(), name
        assert ours["tas"].attrs == theirs["tas"].attrs
        assert float(ours["tas"].sel(lat=20.0)[1]) == 5.0
        ours.to_netcdf(stations.with_name("again.nc"))
    with xr.open_dataset(stations.with_name("again.nc"), engine="netcdf4") as again:
        assert set(again.coords) == {"lat", "height", "name", "area"}
    with xr.open_dataset(stations, engine=GridfusionBackend, decode_coords=False) as ours:
        assert set(ours.coords) == {"lat"} and ours["tas"].attrs["coordinates"]


def test_coordinates_of_two_dimensions(data):
    # One name of the attribute `coordinates` is of no variable.
    path = data.parents[1] / "tests" / "data" / "foreign" / "curvilinear_nc4.nc"
    with xr.open_dataset(path, engine=GridfusionBackend) as ours, xr.open_dataset(path, engine="netcdf4") as theirs:
        assert set(ours.coords) == set(theirs.coords) == {"lat", "lon", "run", "height"}
        assert set(ours.data_vars) == set(theirs.data_vars)
        for name in theirs.variables:
            np.testing.assert_array_equal(ours[name].values, theirs[name].values, name)


def test_nothing_is_lost_of_hdf5(data):
    path = data.parents[1] / "tests" / "data" / "foreign" / "odd.h5"
    with pytest.warns(gf.Warning) as warned:
        opened = xr.open_dataset(path, engine=GridfusionBackend)
    texts = [str(it.message) for it in warned]
    for left_out in ["group", '"array_cells": .* arrays', '"lists"', '"references"', '"external"']:
        assert any(re.search(f"left out: .*{left_out}", text) for text in texts), left_out
    variables = {"complex_re", "complex_im", "compound_a", "compound_b", "good", "hard", "null", "opaque", "virtual", "soft"}
    assert set(opened) == variables
    # Dimensions without names have lengths of their own.
    assert (opened["compound_a"].size, opened["good"].size) == (2, 3)
    for name in variables:
        array, _, column = name.partition("_")
        rows = gf.read(path, array)
        values = [row[rows.columns.index(name if array == "complex" else column or rows.columns[-1])] for row in rows.fetchall()]
        assert opened[name].values.tolist() == values, name


def test_paths_stay_right_in_another_folder(stations, monkeypatch):
    monkeypatch.chdir(stations.parent)
    monkeypatch.setenv("HOME", str(stations.parent))
    for path in ["stations.nc", "./stations.nc", "~/stations.nc"]:
        monkeypatch.chdir(stations.parent)
        with xr.open_dataset(path, engine=GridfusionBackend) as opened:
            monkeypatch.chdir("/")
            assert float(opened["tas"].sum()) == 66.0, path
    assert _absolute("a/../b.nc#x/../y") == "/b.nc#x/../y"
    assert _absolute("s3://bucket/a.nc") == "s3://bucket/a.nc"


def test_keywords_of_xarray(air, data, recwarn):
    with xr.open_dataset(air, engine=GridfusionBackend, decode_times=False) as ours:
        with xr.open_dataset(air, engine="netcdf4", decode_times=False) as theirs:
            assert ours["time"].values.tolist() == theirs["time"].values.tolist()
            assert ours["time"].attrs["units"] == theirs["time"].attrs["units"]
        with xr.open_dataset(air, engine="netcdf4") as theirs:
            assert (xr.decode_cf(ours)["time"].values == theirs["time"].values).all()
    assert not [it for it in recwarn if it.category is gf.Warning]
    with xr.open_dataset(data.parents[1] / "tests" / "data" / "tiledb" / "fill", engine=GridfusionBackend, decode_times=False) as tiledb:
        assert tiledb.data_vars, "a format without the option"
    with pytest.warns(gf.Warning, match="no effect: mask_and_scale, concat_characters"):
        xr.open_dataset(air, engine=GridfusionBackend, decode_cf=False)


def test_what_cannot_be_opened(data, tmp_path):
    netCDF4 = pytest.importorskip("netCDF4")
    with pytest.raises(ValueError, match="sparse"):
        xr.open_dataset(data / "ships", engine=GridfusionBackend)
    with pytest.raises(gf.Error, match="none.tet"):
        xr.open_dataset(tmp_path / "none.tet", engine=GridfusionBackend)
    with netCDF4.Dataset(tmp_path / "g.nc", "w") as file:
        file.createDimension("x", 2)
        file.createVariable("a", "f8", ("x",))[:] = [1, 2]
        file.createGroup("inner").createVariable("b", "f8", ("x",))[:] = [3, 4]
    with pytest.warns(gf.Warning, match="inner"), xr.open_dataset(tmp_path / "g.nc", engine=GridfusionBackend) as opened:
        assert set(opened) == {"a"}


def test_the_engine_is_known_by_name(data):
    try:
        importlib.metadata.distribution("gridfusion")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package is not installed")
    with xr.open_dataset(data / "climate.tet") as opened:
        assert "t2m" in opened
    assert "gridfusion" in xr.backends.list_engines()


@pytest.mark.parametrize("name", ["x.nc", "x.zarr"])
def test_attributes_have_types(tmp_path, name):
    pytest.importorskip("zarr" if name.endswith("zarr") else "netCDF4")
    own = {"integer": 3, "float": 0.5, "integers": [1, 2], "floats": [0.5, 1.5], "text": "1, 2", "large": 2**60, "empty": ""}
    made = xr.Dataset({"v": ("x", np.arange(3.0), own), "is_open": ("x", [True, False, True])}, attrs=own)
    path = tmp_path / name
    made.to_zarr(path) if name.endswith("zarr") else made.to_netcdf(path)
    with xr.open_dataset(path, engine=GridfusionBackend) as ours:
        assert ours.attrs == ours["v"].attrs == own
        assert ours["is_open"].attrs == {}
        ours.to_netcdf(tmp_path / "again.nc")
    with xr.open_dataset(path, engine=GridfusionBackend, decode_coords=False) as ours:
        assert ours.attrs == own
    result = gf.default_connection().read(str(path), "v").xarray()
    assert result["value"].attrs == own


def test_labels_that_no_variable_has(tmp_path):
    labels = {"t": np.array(["2000-01-01", "NaT"], "M8[us]"), "x": [2.0, 1.0], "none": np.array([], "f4")}
    xr.Dataset({"v": ("x", [1, 2])}, labels).to_netcdf(tmp_path / "x.nc")
    with xr.open_dataset(tmp_path / "x.nc", engine=GridfusionBackend) as ours:
        assert ours.equals(xr.Dataset({"v": ("x", [1, 2])}, labels)), "a label that is missing is NaT"
    with xr.open_dataset(tmp_path / "x.nc", engine=GridfusionBackend, drop_variables=["t", "v"]) as ours:
        assert set(ours.variables) == {"x", "none"}


@pytest.mark.parametrize("name", ["x.nc", "x.zarr"])
def test_groups(tmp_path, name):
    pytest.importorskip("zarr" if name.endswith("zarr") else "netCDF4")
    path = tmp_path / name
    for group, values in [(None, [1.0]), ("inner", [1.0, 2.0]), ("inner/most", [1.0, 2.0, 3.0])]:
        made = xr.Dataset({"v": ("x", values)}, {"x": np.arange(len(values))}, {"group": str(group)})
        write = made.to_zarr if name.endswith("zarr") else made.to_netcdf
        write(path, mode="a" if group else "w", group=group, **({"consolidated": False} if name.endswith("zarr") else {}))
        with xr.open_dataset(path, engine=GridfusionBackend, group=group) as ours:
            assert ours.identical(made)
    with pytest.warns(gf.Warning, match="left out: inner/most"), xr.open_dataset(path, engine=GridfusionBackend, group="/inner/") as ours:
        assert ours["v"].size == 2
    with pytest.raises(OSError, match="'none'"):
        xr.open_dataset(path, engine=GridfusionBackend, group="none")


def test_a_file_is_written_as_it_was_stored(air, tmp_path):
    with xr.open_dataset(air, engine=GridfusionBackend) as ours, xr.open_dataset(air, engine="netcdf4") as theirs:
        # What bounds do not declare, a writer takes from the variable that has them.
        for name in set(theirs.variables) - {"time_bnds"}:
            for key in ["dtype", "_FillValue", "scale_factor", "add_offset", "units", "calendar"]:
                assert ours[name].encoding.get(key) == theirs[name].encoding.get(key), (name, key)
        assert ours["t2m"].encoding["preferred_chunks"] == theirs["t2m"].encoding["preferred_chunks"]
        ours.to_netcdf(tmp_path / "again.nc")
        raw = [xr.open_dataset(it, engine="netcdf4", decode_cf=False) for it in (air, tmp_path / "again.nc")]
        for name in theirs.variables:
            np.testing.assert_array_equal(*(it[name].values for it in raw), name)


def test_what_is_missing_stays_missing(tmp_path):
    """Integers without a declared value for what is missing are not written as integers."""
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(tmp_path / "x.nc", "w") as file:
        file.createDimension("x", 2)
        file.createVariable("v", "i4", ("x",))[0] = 5
    with xr.open_dataset(tmp_path / "x.nc", engine=GridfusionBackend) as ours:
        expected = ours["v"].values.tolist()
        ours.to_netcdf(tmp_path / "again.nc")
    with xr.open_dataset(tmp_path / "again.nc", engine=GridfusionBackend) as again:
        np.testing.assert_array_equal(again["v"].values, expected)


def test_times_that_xarray_decodes(tmp_path):
    cftime = pytest.importorskip("cftime")
    times = xr.date_range("2000-02-28", periods=3, calendar="360_day", use_cftime=True)
    spans = np.array([1, 2, 3], "m8[s]")
    xr.Dataset({"v": ("t", times), "span": ("t", spans), "day": np.datetime64("2000-01-01", "ns")}).to_netcdf(tmp_path / "x.nc")
    with xr.open_dataset(tmp_path / "x.nc", engine=GridfusionBackend) as ours:
        assert ours["v"].values.tolist() == times.tolist()
        assert ours["span"].dtype.kind == "m" and ours["day"].dtype.kind == "M"
    with xr.open_dataset(tmp_path / "x.nc", engine=GridfusionBackend, decode_timedelta=False) as ours:
        assert ours["span"].values.tolist() == [1, 2, 3] and ours["day"].dtype.kind == "M"
    coder = xr.coders.CFDatetimeCoder(use_cftime=True)
    with xr.open_dataset(tmp_path / "x.nc", engine=GridfusionBackend, decode_times=coder) as ours:
        assert isinstance(ours["day"].item(), cftime.datetime)


@pytest.mark.parametrize(
    ("value", "stored", "missing"),
    [
        (-1, "i1", -1),
        (255, "i1", -1),
        (-1, "u1", 255),
        (256, "i1", None),
        (7.0, "i2", 7),
        (7.5, "i2", None),
        (float("nan"), "i2", None),
        (float("inf"), "i2", None),
        (2**64 - 1, "u8", 2**64 - 1),
        (1e20, "f4", np.float32(1e20)),
        ("AAAAAAAAFEA=", "f4", 5.0),
        ("AAAAAAAAFEA=", "i4", None),
        ([1, 2], "i4", None),
    ],
)
def test_what_is_missing_fits_the_type(value, stored, missing):
    found = _missing(value, np.dtype(stored))
    assert found == missing and (found is None or found.dtype == stored)
