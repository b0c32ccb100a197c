"""Writes parts.csv: numbers of units in each calendar, and the parts of their dates by cftime (1.6): the date, the day of the week
(Sunday is 0), the day of the year, and the number of the first day of the month."""

import csv
import warnings

import cftime

warnings.simplefilter("ignore")

CALENDARS = {"standard": 365.2425, "julian": 365.25, "all_leap": 366, "360_day": 360}
UNITS = {
    "days since 0001-01-01": (1, 1),
    "hours since 1850-02-28 12:00": (24, 1850),
    "seconds since 2000-01-01": (86_400, 2000),
    "minutes since 1582-10-04": (1_440, 1582),
}
OF_360_DAY = {"days since 2000-02-30": (1, 2000), "hours since 1859-02-29 06:00": (24, 1859)}
YEARS = [-4712, -401, -1, 1, 4, 300, 1100, 1582, 1583, 1900, 2000, 2001, 9999]


def row(units, calendar, number):
    date = cftime.num2date(number, units, calendar, only_use_cftime_datetimes=True)
    if not -4712 <= date.year <= 9999:
        return None
    first = date.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    begin = cftime.date2num(first, units, calendar)
    year = f"-{-date.year:04}" if date.year < 0 else f"{date.year:04}"
    text = f"{year}-{date.month:02}-{date.day:02}"
    if date.hour or date.minute or date.second or date.microsecond:
        text += f"T{date.hour:02}:{date.minute:02}:{date.second:02}"
    micros = date.microsecond
    text += f".{micros // 1000:03}" if micros and micros % 1000 == 0 else f".{micros:06}" if micros else ""
    dow = (date.dayofwk + 1) % 7
    return [units, calendar, repr(float(number)), text, dow, date.dayofyr, repr(float(begin))]


with open("parts.csv", "w", newline="") as file:
    writer = csv.writer(file, delimiter="|", lineterminator="\n")
    for calendar, length in CALENDARS.items():
        more = OF_360_DAY if calendar == "360_day" else {"days since 1900-02-29": (1, 1900)} if calendar in ("julian", "all_leap") else {}
        for units, (per_day, first) in {**UNITS, **more}.items():
            for year in YEARS:
                # The halves of days of monthly means, and the days around the ends of months.
                for day in (0, 15.5, 58.5, 60.25, 287.5):
                    number = int((year - first) * length + day) * per_day + (day % 1) * per_day
                    try:
                        found = row(units, calendar, number)
                    except (ValueError, OverflowError):
                        continue
                    if found:
                        writer.writerow(found)
