"""Writes dates.csv: numbers of units in each calendar, and their dates by cftime (1.6). Timestamps have the same
dates; before the year 1, SQL counts a year 0, which cftime lacks in `standard`."""

import csv
import warnings

import cftime

warnings.simplefilter("ignore")

UNITS = ["microseconds", "msec", "seconds", "minutes", "hours", "days", "weeks"]
PER_DAY = [86_400_000_000, 86_400_000, 86_400, 1_440, 24, 1, 1 / 7]
REFERENCES = ["-4712-01-01 12:00", "0001-01-01", "1582-10-15 06:00:00.5", "1850-01-01", "2000-02-28 23:30 -02:30", "9999-12-30"]
YEARS = [-4700, 1, 1500, 1582, 1900, 2000, 9998]
CALENDARS = {
    "standard": 365.2425,
    "proleptic_gregorian": 365.2425,
    "noleap": 365,
    "julian": 365.25,
    "all_leap": 366,
    "360_day": 360,
}


def shown(date):
    year = date.year + (1 if date.year < 0 and date.calendar == "standard" else 0)
    year = f"-{-year:04}" if year < 0 else f"{year:04}"
    text = f"{year}-{date.month:02}-{date.day:02}T{date.hour:02}:{date.minute:02}:{date.second:02}"
    micros = date.microsecond
    fraction = f".{micros // 1000:03}" if micros % 1000 == 0 else f".{micros:06}"
    return text + (fraction if micros else "")


with open("dates.csv", "w", newline="") as file:
    writer = csv.writer(file, delimiter="|", lineterminator="\n")
    for calendar, length in CALENDARS.items():
        for at, (unit, per_day) in enumerate(zip(UNITS, PER_DAY)):
            for reference in [REFERENCES[at % len(REFERENCES)]]:
                units = f"{unit} since {reference}"
                first = int(reference.split("-")[-3].strip() or 0) * (-1 if reference.startswith("-") else 1)
                if reference.startswith("2000"):
                    first = 2000
                for year in YEARS:
                    for part in (58.5, 59.25):
                        number = int((year - first) * length) * per_day + part * per_day
                        # Eighths are exact in binary, and microseconds need whole numbers.
                        number = round(number) if at < 3 else round(number * 8) / 8
                        if abs(number) > 2**53:
                            continue
                        try:
                            date = cftime.num2date(number, units, calendar, only_use_cftime_datetimes=True)
                        except (ValueError, OverflowError):
                            continue
                        if -4712 <= date.year <= 9999:
                            writer.writerow([units, calendar, repr(float(number)), shown(date)])
