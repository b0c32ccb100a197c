"""Writes folders like those of well-known archives, and asks the program what a scientist asks of them.

    python3 tests/data/foreign/archives.py PROGRAM FOLDER [--update]

    FOLDER/era5/t2m_2024-01.nc   packed integers, each month with a packing of its own
    FOLDER/cmip6/tas_*.nc        monthly means with bounds: a calendar without leap years, and one of 360 days
    FOLDER/wrf/wrfout_*.nc       latitudes and longitudes of two dimensions and time, times as characters
    FOLDER/nemo/*.nc             a curved grid, masked on land
    FOLDER/argo/*.nc             profiles, and each file with a number of levels of its own
    FOLDER/stations/ragged.nc    time series of stations behind one another (CF, contiguous ragged)
    FOLDER/anndata/cells.h5ad    counts of genes in cells, as a matrix of compressed rows
    FOLDER/soma/cells.soma       such counts as sparse arrays

xarray and numpy answer each question, too. Also runs the commands of docs/archives.md, whose outputs --update writes. Fails if
an answer or an output differs.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import soma as soma_store
import xarray as xr

LATS = np.arange(60.0, 48.0, -2.0, dtype="f4")
LONS = np.arange(0.0, 16.0, 2.0, dtype="f4")


# ----------------------------------------------------------------------------------------------------- folders


def era5(folder, random):
    """Three months of a reanalysis, and the same month of two versions of an experiment."""
    for month, (scale, offset) in {1: (0.001, 270.0), 2: (0.002, 275.5), 3: (0.0015, 280.0)}.items():
        times = pd.date_range(f"2024-{month:02}-01", periods=8, freq="6h")
        t2m = offset + 5 * random.standard_normal((len(times), len(LATS), len(LONS)))
        t2m[1, 2, 3] = np.nan
        data = xr.Dataset(
            {"t2m": (("valid_time", "latitude", "longitude"), t2m.astype("f4"), {"units": "K"})},
            {"valid_time": times, "latitude": LATS, "longitude": LONS},
        )
        packed = {"dtype": "i2", "scale_factor": scale, "add_offset": offset, "_FillValue": -32767}
        data.to_netcdf(folder / f"t2m_2024-{month:02}.nc", encoding={"t2m": packed})
    times = pd.date_range("2024-04-01", periods=6, freq="12h")
    both = random.standard_normal((6, 2, len(LATS))).astype("f4")
    # The final version has the first times, and the preliminary one the others.
    both[4:, 0], both[:4, 1] = np.nan, np.nan
    data = xr.Dataset(
        {"t2m": (("time", "expver", "latitude"), both)}, {"time": times, "expver": [1, 5], "latitude": LATS}
    )
    data.to_netcdf(folder / "expver.nc")


def cmip6(folder, random):
    """Monthly means of two models, in files of ten years."""
    for model, calendar, decades in (("A", "noleap", (2000, 2010)), ("B", "360_day", (2000,))):
        for decade in decades:
            edges = xr.date_range(f"{decade}-01-01", periods=121, freq="MS", calendar=calendar, use_cftime=True)
            middles = [a + (b - a) / 2 for a, b in zip(edges[:-1], edges[1:], strict=True)]
            tas = (280 + random.standard_normal((120, len(LATS), len(LONS)))).astype("f4")
            data = xr.Dataset(
                {
                    "tas": (("time", "lat", "lon"), tas, {"units": "K", "cell_methods": "time: mean"}),
                    "time_bnds": (("time", "bnds"), np.stack([edges[:-1], edges[1:]], axis=1)),
                },
                {
                    "time": ("time", middles, {"bounds": "time_bnds"}),
                    "lat": LATS.astype("f8"),
                    "lon": LONS.astype("f8"),
                },
            )
            units = {"units": "days since 1850-01-01", "calendar": calendar, "dtype": "f8"}
            data.to_netcdf(folder / f"tas_Amon_{model}_{decade}.nc", encoding={"time": units, "time_bnds": units})


def wrf(folder, random):
    """Hours of a regional model."""
    south_north, west_east = 7, 9
    for day in (1, 2):
        shape = (4, south_north, west_east)
        y, x = np.mgrid[0:south_north, 0:west_east]
        lat = np.broadcast_to(45 + y + 0.1 * x, shape).astype("f4")
        lon = np.broadcast_to(5 + x - 0.1 * y, shape).astype("f4")
        times = [f"2024-06-{day:02}_{hour:02}:00:00".encode() for hour in (0, 6, 12, 18)]
        dims = ("Time", "south_north", "west_east")
        t2 = (285 + random.standard_normal(shape)).astype("f4")
        data = xr.Dataset(
            {
                "Times": ("Time", np.array(times)),
                "XLAT": (dims, lat, {"units": "degree_north"}),
                "XLONG": (dims, lon, {"units": "degree_east"}),
                "T2": (dims, t2, {"units": "K"}),
            }
        )
        data.T2.encoding["coordinates"] = "XLONG XLAT"
        data.Times.encoding["char_dim_name"] = "DateStrLen"
        data.to_netcdf(folder / f"wrfout_d01_2024-06-{day:02}.nc", unlimited_dims=["Time"])


def nemo(folder, random):
    """Months of an ocean on a curved grid."""
    y, x = np.mgrid[0:6, 0:8]
    for month in (1, 2):
        sst = (10 + random.standard_normal((1, 6, 8))).astype("f4")
        sst[:, 0, :3] = np.nan
        data = xr.Dataset(
            {"tos": (("time_counter", "y", "x"), sst, {"units": "degC"})},
            {
                "time_counter": pd.to_datetime([f"2024-{month:02}-15"]),
                "nav_lat": (("y", "x"), (50 + y + 0.3 * x).astype("f4"), {"units": "degrees_north"}),
                "nav_lon": (("y", "x"), (-10 + x - 0.3 * y).astype("f4"), {"units": "degrees_east"}),
            },
        )
        data.tos.encoding.update(_FillValue=np.float32(1e20), coordinates="nav_lat nav_lon")
        data.to_netcdf(folder / f"nemo_1m_2024{month:02}.nc")


def argo(folder, random):
    """Profiles of floats: as many levels as the longest of a file."""
    for at, (profiles, levels) in enumerate([(3, 5), (2, 9)]):
        pressure = np.sort(random.uniform(0, 2000, (profiles, levels))).astype("f4")
        pressure[0, levels - 2 :] = np.nan
        dims = ("N_PROF", "N_LEVELS")
        data = xr.Dataset(
            {
                "PLATFORM_NUMBER": ("N_PROF", np.array([f"69000{at}{it} ".encode() for it in range(profiles)])),
                "JULD": ("N_PROF", pd.date_range(f"2024-0{at + 1}-01", periods=profiles, freq="10D")),
                "LATITUDE": ("N_PROF", random.uniform(-60, 60, profiles)),
                "PRES": (dims, pressure, {"units": "decibar"}),
                "TEMP": (dims, (2 + pressure * 0.01).astype("f4"), {"units": "degree_Celsius"}),
            }
        )
        for name in ("PRES", "TEMP"):
            data[name].encoding["_FillValue"] = np.float32(99999)
        units = {"JULD": {"units": "days since 1950-01-01 00:00:00 UTC", "dtype": "f8"}}
        data.to_netcdf(folder / f"profiles_{at}.nc", format="NETCDF3_CLASSIC", encoding=units)


def stations(folder, random):
    """Time series of different lengths behind one another."""
    lengths = [4, 2, 7]
    data = xr.Dataset(
        {
            "station_name": ("station", np.array([b"Oslo", b"Bergen", b"Bodo"]), {"cf_role": "timeseries_id"}),
            "lat": ("station", [59.9, 60.4, 67.3], {"units": "degrees_north"}),
            "row_size": ("station", np.array(lengths, "i4"), {"sample_dimension": "obs"}),
            "time": ("obs", pd.date_range("2024-01-01", periods=sum(lengths), freq="h")),
            "temp": ("obs", random.standard_normal(sum(lengths)).astype("f4"), {"coordinates": "time lat"}),
        },
        attrs={"featureType": "timeSeries", "Conventions": "CF-1.8"},
    )
    data.to_netcdf(folder / "ragged.nc")


def anndata(folder, random):
    """Cells with a type, one of which has none, and the genes that were counted in each."""
    counts = random.integers(1, 9, (6, 3)) * (random.random((6, 3)) > 0.4)
    with h5py.File(folder / "cells.h5ad", "w") as file:
        text = h5py.string_dtype()
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        file["var/_index"] = np.array(["CD3", "CD19", "MS4A1"], text)
        file["obs/_index"] = np.array([f"cell{at}" for at in range(6)], text)
        file["obs/cell_type/categories"] = np.array(["B", "T"], text)
        file["obs/cell_type/codes"] = np.array([0, 1, 1, 0, 1, -1], "i1")
        file["X/data"] = counts[counts > 0].astype("f4")
        file["X/indices"] = np.nonzero(counts)[1].astype("i4")
        file["X/indptr"] = np.concatenate([[0], np.cumsum((counts > 0).sum(axis=1))]).astype("i4")
        file["X"].attrs.update({"encoding-type": "csr_matrix", "shape": counts.shape})


def soma(folder, random):
    """A store of the library tiledbsoma, which `soma.py` wrote."""
    shutil.copytree(soma_store.STORE, folder / "cells.soma", dirs_exist_ok=True)


# --------------------------------------------------------------------------------------------------- questions


def opened(folder, pattern, dim):
    """Opens files as one dataset: each is unpacked by its own packing."""
    return xr.concat([xr.open_dataset(path) for path in sorted(folder.glob(pattern))], dim, data_vars="minimal")


def years_of_360_days(folder):
    times = xr.coders.CFDatetimeCoder(use_cftime=True)
    data = xr.open_dataset(folder / "cmip6/tas_Amon_B_2000.nc", decode_times=times)
    return list(data.tas.astype("f8").groupby("time.year").mean(...).values)


def questions(folder):
    """Yields each question with its SQL, and the answer of xarray as a list of numbers or texts."""
    months = opened(folder / "era5", "t2m_*.nc", "valid_time").t2m.astype("f8")
    era5 = f"'{folder}/era5/t2m_*.nc'"
    yield (
        "the mean of each month, all packed in their own way",
        f"SELECT avg(t2m) FROM {era5} GROUP BY {{0}} ORDER BY {{0}}".format("date_part('month', valid_time)"),
        months.groupby("valid_time.month").mean(...).values,
    )
    yield (
        "the series at a place",
        f"SELECT t2m FROM {era5} WHERE latitude = 56 AND longitude = 6 ORDER BY valid_time",
        months.sel(latitude=56, longitude=6).values,
    )
    yield (
        "the mean weighted by the cosine of the latitude",
        "SELECT sum(t2m * cos(radians(latitude))) / sum(cos(radians(latitude))) "
        f"FROM {era5} WHERE t2m IS NOT NULL",
        [float(months.weighted(np.cos(np.deg2rad(months.latitude.astype("f8")))).mean())],
    )
    final = xr.open_dataset(folder / "era5/expver.nc").t2m.astype("f8")
    yield (
        "one series of the final and the preliminary version",
        "SELECT avg(v) FROM (SELECT time, latitude, "
        "coalesce(max(t2m) FILTER (WHERE expver = 1), max(t2m) FILTER (WHERE expver = 5)) AS v "
        f"FROM '{folder}/era5/expver.nc' GROUP BY time, latitude) GROUP BY time ORDER BY time",
        final.sel(expver=1).combine_first(final.sel(expver=5)).mean("latitude").values,
    )
    tas = opened(folder / "cmip6", "tas_Amon_A_*.nc", "time").tas.astype("f8")
    model = f"'{folder}/cmip6/tas_Amon_A_*.nc'"
    yield (
        "the mean of each year in a calendar without leap years",
        f"SELECT avg(tas) FROM {model} GROUP BY date_part('year', time) ORDER BY date_part('year', time)",
        tas.groupby("time.year").mean(...).values,
    )
    yield (
        "the anomalies from the mean of each month",
        "WITH climate AS (SELECT date_part('month', time) AS month, lat, lon, avg(tas) AS mean "
        f"FROM {model} GROUP BY 1, 2, 3) SELECT max(tas - mean) FROM {model} AS m JOIN climate AS c "
        "ON date_part('month', m.time) = c.month AND m.lat = c.lat AND m.lon = c.lon",
        [float((tas.groupby("time.month") - tas.groupby("time.month").mean("time")).max())],
    )
    yield (
        "the mean of each year in a calendar of 360 days",
        f"SELECT avg(tas) FROM '{folder}/cmip6/tas_Amon_B_2000.nc' GROUP BY date_part('year', time) "
        "ORDER BY date_part('year', time)",
        years_of_360_days(folder),
    )
    hours = opened(folder / "wrf", "wrfout_*.nc", "Time")
    model = f"'{folder}/wrf/wrfout_*.nc', '{{}}', concat_dimension => 'Time'"
    inside = (hours.XLAT > 48) & (hours.XLONG >= 7) & (hours.XLONG <= 11)
    yield (
        "the mean in a box of latitudes and longitudes of a regional model",
        f"SELECT avg(value) FROM read_netcdf({model.format('T2')}, coordinates => true) "
        """WHERE "XLAT" > 48 AND "XLONG" BETWEEN 7 AND 11""",
        [float(hours.T2.astype("f8").where(inside).mean())],
    )
    yield (
        "the times of a regional model",
        f"""SELECT value FROM read_netcdf({model.format("Times")}) ORDER BY "Time", value""",
        [text.decode() for text in hours.Times.values],
    )
    ocean = opened(folder / "nemo", "*.nc", "time_counter")
    yield (
        "the mean of each month of an ocean between two latitudes",
        f"SELECT avg(value) FROM read_netcdf('{folder}/nemo/*.nc', 'tos', coordinates => true) "
        "WHERE nav_lat BETWEEN 51 AND 54 GROUP BY time_counter ORDER BY time_counter",
        ocean.tos.astype("f8").where((ocean.nav_lat >= 51) & (ocean.nav_lat <= 54)).mean(("y", "x")).values,
    )
    profiles = [xr.open_dataset(path) for path in sorted((folder / "argo").glob("*.nc"))]
    yield (
        "the warmest cell of each profile of a file",
        f"""SELECT max(value) FROM '{folder}/argo/profiles_1.nc#TEMP' GROUP BY "N_PROF" ORDER BY "N_PROF" """,
        profiles[1].TEMP.max("N_LEVELS").values,
    )
    yield (
        "the deepest level of all profiles, of any number of levels",
        f"SELECT max(value) FROM read_netcdf('{folder}/argo/*.nc', 'PRES', concat_dimension => 'N_PROF')",
        [max(float(it.PRES.max()) for it in profiles)],
    )
    ragged = xr.open_dataset(folder / "stations/ragged.nc")
    ends = np.cumsum(ragged.row_size.values)
    yield (
        "the mean of each station",
        f"SELECT avg(temp) FROM '{folder}/stations/ragged.nc' GROUP BY station_name ORDER BY max(lat)",
        [float(it.mean()) for it in np.split(ragged.temp.values.astype("f8"), ends[:-1])],
    )
    with h5py.File(folder / "anndata/cells.h5ad") as file:
        totals = np.bincount(file["X/indices"][:], file["X/data"][:])
        # A code of -1 stands for no type, and joins none.
        codes = file["obs/cell_type/codes"][:]
    cells = f"{folder}/anndata/cells.h5ad"
    yield (
        "the sum of each gene",
        f"SELECT sum(data) FROM read_netcdf('{cells}', 'data, indices', group => 'X') GROUP BY indices ORDER BY indices",
        totals,
    )
    yield (
        "the cells of each type",
        f"SELECT count(*) FROM '{cells}#obs/cell_type/codes' AS cell JOIN '{cells}#obs/cell_type/categories' AS kind "
        "ON cell.value = kind.dim_0 GROUP BY kind.value ORDER BY kind.value",
        np.bincount(codes[codes >= 0]),
    )


    of_soma = soma_store.counts()
    kinds = np.array([str(kind) for kind in soma_store.KINDS])
    yield (
        "the sum of each gene in cells of type T",
        f"SELECT sum(soma_data) FROM '{folder}/soma/cells.soma/ms/RNA/X/data' AS x JOIN '{folder}/soma/cells.soma/obs' AS obs "
        "ON x.soma_dim_0 = obs.soma_joinid WHERE cell_type = 'T' GROUP BY soma_dim_1 ORDER BY soma_dim_1",
        of_soma[kinds == "T"].sum(axis=0),
    )


def asked(program, sql):
    """Returns the first column of an answer, or the text of the error."""
    command = [program, "-q", "--format", "json", "-c", sql]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return (
        outcome.stderr.strip()
        if outcome.returncode
        else [next(iter(row.values())) for row in json.loads(outcome.stdout)]
    )


def is_same(found, wanted):
    if isinstance(found, str) or len(found) != len(wanted):
        return False
    for one, other in zip(found, wanted, strict=True):
        if isinstance(other, str):
            if one != other:
                return False
        elif not np.isclose(np.nan if one is None else one, other, rtol=1e-6, atol=1e-9, equal_nan=True):
            return False
    return True


def refreshed(page, program, folder):
    """Returns the text of a page with the outputs that its commands have now."""
    with tempfile.TemporaryDirectory() as tools:
        (Path(tools) / "gridfusion").symlink_to(Path(program).resolve())
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}

        def output(command):
            shell = subprocess.run(
                ["sh", "-c", command], cwd=folder.parent, env=environment, capture_output=True, text=True, timeout=300, check=False
            )
            return shell.stdout + shell.stderr

        def block(found):
            # A command ends where its quotes are closed.
            commands = re.findall(r"^\$ ([^\"\n]*\"(?:[^\"\\]|\\.)*\")$", found[2], re.MULTILINE | re.DOTALL)
            return found[1] + "".join(f"$ {command}\n{output(command)}" for command in commands) + "```\n"

        return re.sub(r"(```console no_run: archives.py runs it\n)(.*?)```\n", block, page, flags=re.DOTALL)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    random = np.random.default_rng(1)
    for write in (era5, cmip6, wrf, nemo, argo, stations, anndata, soma):
        folder = arguments.folder / write.__name__
        folder.mkdir(parents=True, exist_ok=True)
        write(folder, random)
    wrong = 0
    for question, sql, wanted in questions(arguments.folder):
        found = asked(arguments.program, sql)
        if is_same(found, list(wanted)):
            print(f"equal: {question}")
        else:
            wrong += 1
            print(f"WRONG: {question}\n  {sql}\n  {found}\n  expected {list(wanted)}")
    page = Path(__file__).resolve().parents[3] / "docs/archives.md"
    shown, now = page.read_text(), refreshed(page.read_text(), arguments.program, arguments.folder)
    if arguments.update:
        page.write_text(now)
    elif shown != now:
        wrong += 1
        differing = [line for line in now.splitlines() if line not in shown.splitlines()]
        print("WRONG: docs/archives.md, --update writes its outputs:", *differing, sep="\n  ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
