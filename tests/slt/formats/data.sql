-- The arrays of this folder, for other engines. `tests/it/sql/slt/arrays.rs` writes the same numbers into each format.

CREATE TABLE air AS
SELECT TIMESTAMP '2024-02-28' + to_hours(h) AS time, l AS level,
       CASE WHEN (3 * h + l) % 17 > 0 AND (h + l) % 19 > 0
            THEN CAST(((7 * h + 5 * l * l) % 23 - 8) / 4.0 AS FLOAT) END AS value
FROM range(72) AS hours(h), range(1, 4) AS levels(l);

CREATE TABLE rain AS
SELECT TIMESTAMP '2024-02-29' + to_hours(h) AS time, l AS level,
       CASE WHEN (h + 2 * l) % 13 > 0 THEN CAST(5 * h * l % 12 AS INTEGER) END AS value
FROM range(48) AS hours(h), range(2, 5) AS levels(l);

CREATE TABLE normal AS
SELECT h AS hour, l AS level, CAST(((3 * h + 7 * l) % 19 - 5) / 4.0 AS DOUBLE) AS value
FROM range(24) AS hours(h), range(1, 4) AS levels(l);

CREATE TABLE wind AS
SELECT TIMESTAMP '2024-02-28 12:00:00' + to_hours(h) AS time, m AS member,
       CASE WHEN (h + 2 * m) % 10 <> 7 THEN CAST((11 * h + 3 * m) % 29 / 4.0 AS DOUBLE) END AS speed,
       CASE WHEN (h + m) % 11 <> 3 THEN CAST((13 * h + m * m) % 31 AS INTEGER) END AS gust
FROM range(24) AS hours(h), range(4) AS members(m);

CREATE TABLE towns AS
SELECT town, height, CASE WHEN t <> 2 OR h <> 1 THEN 10 * t + h END AS value
FROM (VALUES (0, 'Alta'), (1, 'Bergen'), (2, 'Oslo'), (3, 'Tromso')) AS towns(t, town),
     (VALUES (0, CAST(0.5 AS DOUBLE)), (1, 2.0), (2, 10.0)) AS heights(h, height);

-- Two files, which meet in the middle of the second day.
CREATE TABLE parts AS SELECT * FROM air;

-- What gridfusion has beside SQL.
CREATE MACRO weighted_avg(v, w) AS sum(v * w) / sum(CASE WHEN v IS NOT NULL THEN w END);
CREATE MACRO date_bin(width, t) AS time_bucket(width, t, TIMESTAMP '1970-01-01');
