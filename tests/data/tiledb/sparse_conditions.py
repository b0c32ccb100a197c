"""Random conditions of deletes, in the syntax of TileDB-Py."""

from sparse_schemas import FLOATS, TEXTS, UTF8

SIGNS = ["==", "!=", "<", "<=", ">", ">="]


def quoted(text):
    return repr(text)


def value(rng, field, coordinates):
    """A value to compare with, as TileDB-Py parses it."""
    if field.labels is not None:
        label = rng.choice(field.labels)
        return quoted(label) if isinstance(label, str) else str(label)
    if field.is_dimension:
        found = rng.choice(coordinates)
        return quoted(found) if isinstance(found, str) else repr(found)
    if field.kind in ("STRING_ASCII", "STRING_UTF8"):
        return quoted(rng.choice(TEXTS if field.kind == "STRING_ASCII" else UTF8))
    if field.kind == "CHAR":
        return quoted(rng.choice(["a", "ab", "abc", "b"]))
    if field.kind == "BOOL":
        return rng.choice(["True", "False"])
    if field.kind.startswith("FLOAT"):
        return repr(rng.choice(FLOATS))
    low = 0 if field.kind.startswith("UINT") else -5
    return str(rng.randint(low, 9))


def can_be_compared(field):
    """Whether a condition takes the field, and libtiledb can read it back afterwards."""
    is_text = field.kind in ("STRING_ASCII", "STRING_UTF8", "CHAR")
    is_single = not field.isvar and field.ncells == 1 and field.kind != "BLOB"
    return is_text or (is_single and not field.kind.startswith("TIME_"))


def members_of(rng, field, pool):
    """Some values for IN. TileDB-Py parses no negative numbers there. libtiledb reads no lone ''."""
    members = {value(rng, field, pool) for _ in range(rng.randint(1, 4))}
    members = sorted(member for member in members if not member.startswith("-"))
    return [] if members == ["''"] else members


def leaf(rng, fields, coordinates):
    """One comparison and the field in it."""
    number = rng.choice([n for n, field in enumerate(fields) if can_be_compared(field)])
    field = fields[number]
    pool = coordinates[number] if field.is_dimension else None
    name = f"{'dim' if field.is_dimension else 'attr'}({field.name!r})"
    names = set() if field.is_dimension else {field.name}
    # libtiledb cannot read the array after a test for null of numbers.
    if field.isnullable and field.isvar and rng.random() < 0.1:
        return f"{name} {rng.choice(SIGNS[:2])} None", names
    if rng.random() < 0.25 and not field.is_dimension:
        members = members_of(rng, field, pool)
        if members:
            return f"{name} {rng.choice(['in', 'not in'])} [{', '.join(members)}]", names
    sign = rng.choice(SIGNS[:2] if field.labels is not None else SIGNS)
    return f"{name} {sign} {value(rng, field, pool)}", names


def condition(rng, fields, coordinates, depth=2):
    """A condition, and the names of the attributes in it. AND is frequent, so that cells remain."""
    if depth == 0 or rng.random() < 0.4:
        return leaf(rng, fields, coordinates)
    parts = [condition(rng, fields, coordinates, depth - 1) for _ in range(rng.randint(2, 3))]
    word = rng.choice([" and ", " and ", " or "])
    return "(" + word.join(text for text, _ in parts) + ")", set().union(*(n for _, n in parts))
