"""Pictures of queries."""

from __future__ import annotations

import datetime as dt
import os
import subprocess

import pytest

import gridfusion as gf

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def lines(con, air):
    return con.sql(f"SELECT time, avg(t2m) AS t2m FROM '{air}' GROUP BY time ORDER BY time")


def test_pictures(lines, tmp_path):
    plot = lines.plot()
    assert plot.size == (1000, 620) and repr(plot) == "<gridfusion.Plot, 1000 × 620 pixels>"
    assert plot._repr_png_().startswith(PNG) and plot._repr_svg_().startswith("<svg")
    plot.save(tmp_path / "a.png")
    plot.save(str(tmp_path / "a.SVG"))
    assert (tmp_path / "a.png").read_bytes() == plot._repr_png_()
    assert (tmp_path / "a.SVG").read_text() == plot._repr_svg_()
    with pytest.raises(gf.ProgrammingError, match=r"\.png or \.svg"):
        plot.save(tmp_path / "a.jpg")
    assert not (tmp_path / "a.jpg").exists()


def test_pictures_are_those_of_the_program(con, air, program, tmp_path):
    sql = f"SELECT lon, lat, avg(t2m) FROM '{air}' WHERE lat > 0 GROUP BY lon, lat"
    words = "--kind heatmap --title A=b --width 600 --height 500 --x-limits 0..180 --color-limits ..300 --log color --invert y,x"
    words += " --colors magma --contours 260,280 --coastlines off"
    done = [os.environ["GRIDFUSION_PROGRAM"], "plot", "-q", sql, "-o", str(tmp_path / "a.svg"), *words.split()]
    subprocess.run(done, check=True)
    plot = con.sql(sql).plot(
        "heatmap",
        title="A=b",
        width=600,
        height=500,
        x_limits=(0, 180),
        color_limits=(None, 300),
        log="color",
        invert=["y", "x"],
        colors="magma",
        contours=[260, 280],
        coastlines=False,
    )
    assert plot._repr_svg_() == (tmp_path / "a.svg").read_text()


def test_options(con, air, lines):
    limited = lines.plot(x_limits=(dt.datetime(2024, 3, 1), dt.date(2024, 6, 1)), y_limits="250..300")
    assert limited._repr_svg_() != lines.plot()._repr_svg_()
    months = con.sql(f"SELECT date_part('month', time) AS m, lon, lat, avg(t2m) FROM '{air}' GROUP BY 1, 2, 3")
    panels = months.plot(facet="m", contours=True, coastlines=True)
    assert panels._repr_svg_().count("<text") > lines.plot()._repr_svg_().count("<text")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "pie"}, "pie.*heatmap"),
        ({"width": 5}, "5"),
        ({"facet": "nope"}, "facet"),
        ({"x_limits": (5, 1)}, "limit"),
        ({"colors": "jet"}, "jet"),
    ],
)
def test_wrong_options(lines, options, message):
    with pytest.raises(gf.ProgrammingError, match=message):
        lines.plot(**options)


def test_rows_that_are_kept(con, lines):
    kept = con.execute("SELECT value AS x, value * value AS y FROM generate_series(1, 20)")
    assert kept.plot()._repr_svg_() == con.sql("SELECT value AS x, value * value AS y FROM generate_series(1, 20)").plot()._repr_svg_()
    assert con.tables() == []


def test_large_pictures_are_no_svg(con):
    plot = con.sql("SELECT value AS x, value % 7 AS y FROM generate_series(1, 150000)").plot("scatter")
    assert plot._repr_svg_() is None and plot._repr_png_().startswith(PNG)


def test_rows_must_suit(con):
    with pytest.raises(gf.ProgrammingError, match="must be a number"):
        con.sql("SELECT 'a' AS x, 'b' AS y").plot()
