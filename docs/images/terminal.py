"""Draws terminals with the program as pictures of the book: prompt.svg and info.svg.

    python3 docs/images/terminal.py          needs pyte, and gridfusion on the path

The program runs in a terminal of its own, and pyte tells which text and which colours are then on the screen. No test needs this script. Run it again
when the output of `gridfusion info` or of the prompt changes.
"""

import fcntl
import itertools
import os
import pty
import select
import struct
import termios
from html import escape
from pathlib import Path

import pyte

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

WIDTH, HEIGHT, MARGIN, SIZE = 8.4, 18, 16, 14  # of a character, of a line, around both, of the font
FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
BACKGROUND, TEXT = "#0d1117", "#e6edf3"
COLORS = {"brightred": "#ff7b72", "brightgreen": "#7ee787", "brightblack": "#8b949e"}

PROMPT = [
    "FROM 'examples/data/sea.zarr' WHERE lat = nearest(lat, 15) LIMIT 3;",
    ".mode box",
    "SELECT date_trunc('month', time) AS month, round(avg(sst), 2) AS warmth",
    "FROM 'examples/data/sea.zarr' WHERE lat > 0 GROUP BY month ORDER BY month;",
]


def read(terminal, stream, quiet=3.0):
    """Shows what the program writes, until it writes nothing for some time or ends."""
    while select.select([terminal], [], [], quiet)[0]:
        try:
            stream.feed(os.read(terminal, 65536))
        except OSError:  # the program has ended
            return


def shown(command, lines=(), columns=128):
    """Runs a command with these lines of input. Returns the characters of each line of the screen."""
    screen = pyte.Screen(columns, 100)
    stream = pyte.ByteStream(screen)
    process, terminal = pty.fork()
    if process == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 100, columns, 0, 0))
        os.chdir(ROOT)
        quiet = {"GRIDFUSION_HISTORY": "", "GRIDFUSION_RC": "", "GRIDFUSION_PAGER": "", "TERM": "xterm-256color"}
        os.execvpe(command[0], command, {**os.environ, **quiet})
    for line in lines:
        read(terminal, stream)
        os.write(terminal, line.encode() + b"\r")
    read(terminal, stream)
    rows = [[screen.buffer[y][x] for x in range(columns)] for y in range(100)]
    os.close(terminal)
    os.waitpid(process, 0)
    while rows and all(it.data == " " for it in rows[-1]):
        rows.pop()
    return rows


def words(row):
    """The words of a line, each with its column and colour."""
    place = 0
    for (is_blank, color), letters in itertools.groupby(row, lambda it: (it.data == " ", it.fg)):
        text = "".join(it.data for it in letters)
        if not is_blank:
            yield place, text, COLORS.get(color, TEXT)
        place += len(text)


def picture(command, rows, label):
    """The screen as SVG. Each word has its place and length, so columns are straight in any font."""
    first = [pyte.screens.Char(it) for it in "$ " + " ".join(command)]
    rows = [first, *rows]
    width = max(place + len(text) for row in rows for place, text, _ in words(row)) * WIDTH + 2 * MARGIN
    height = len(rows) * HEIGHT + 2 * MARGIN
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{escape(label)}</title>",
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
        f'<g font-family="{FONT}" font-size="{SIZE}" fill="{TEXT}">',
    ]
    for number, row in enumerate(rows):
        spans = []
        for place, text, color in words(row):
            fill = "" if color == TEXT else f' fill="{color}"'
            spans.append(
                f'<tspan x="{MARGIN + place * WIDTH:.1f}" textLength="{len(text) * WIDTH:.1f}" lengthAdjust="spacingAndGlyphs"{fill}>{escape(text)}</tspan>'
            )
        out.append(f'<text y="{MARGIN + number * HEIGHT + SIZE}">{"".join(spans)}</text>')
    return "\n".join([*out, "</g>", "</svg>", ""])


def main():
    for name, command, lines, label in [
        ("prompt", ["gridfusion", "-q", "--color"], PROMPT, "A session at the prompt, with two queries"),
        ("info", ["gridfusion", "info", "examples/data/air.nc"], [], "The description of a NetCDF file"),
    ]:
        (HERE / f"{name}.svg").write_text(picture(command, shown(command, lines), label))


main()
