"""xarray's own tests of backends that read: its engines write the files, and ours opens them."""

from __future__ import annotations

import contextlib
import os

import pytest

xr = pytest.importorskip("xarray")
pytest.importorskip("netCDF4")
pytest.importorskip("dask")
suite = pytest.importorskip("xarray.tests.test_backends")

from xarray.tests.conftest import time_unit, use_dask  # noqa: E402, F401

from gridfusion._backend import GridfusionBackend  # noqa: E402

#: Tests of writers, which open nothing, and one that needs a plugin of pytest.
OTHERS = {
    "test_append_with_invalid_dim_raises",
    "test_dtype_coercion_error",
    "test_encoding_kwarg_vlen_string",
    "test_invalid_dataarray_names_raise",
    "test_load_async",
    "test_raise_on_forward_slashes_in_names",
    "test_roundtrip_string_with_fill_value_nchar",
    "test_write_store",
}

BYTES = "texts without an encoding are texts, not bytes"
COMPRESSION = "array_info names codecs, not their levels"
ENUM = "the numbers of an enumeration are its names"
#: Tests that cannot hold, and why.
REASONS = {
    "test_byte_attrs": "attributes that are not UTF-8 are Latin-1",
    "test_compression_encoding": COMPRESSION,
    "test_compression_encoding_legacy": COMPRESSION,
    "test_default_to_char_arrays": BYTES,
    "test_dump_encodings": COMPRESSION,
    "test_encoding_enum__error_multiple_variable_with_changing_enum": ENUM,
    "test_encoding_enum__multiple_variable_with_enum": ENUM,
    "test_encoding_enum__no_fill_value": ENUM,
    "test_encoding_kwarg_compression": COMPRESSION,
    "test_encoding_kwarg_fixed_width_string": "texts have no width",
    "test_encoding_unlimited_dims": "array_info does not tell which dimensions are unlimited",
    "test_roundtrip_None_variable": "a variable without a name is called __values__, as in the file",
    "test_roundtrip_bytes_with_fill_value": BYTES,
    "test_roundtrip_cftime_datetime_data": "dates before 1582 are of the calendar of numpy",
    "test_roundtrip_character_array": BYTES,
    "test_roundtrip_complex": "complex numbers are two variables",
    "test_roundtrip_object_dtype": BYTES,
    "test_roundtrip_test_data": "times are microseconds, not nanoseconds",
    "test_setncattr_string": "a list of texts is one text with commas",
    "test_zero_dimensional_variable": BYTES,
}


@pytest.fixture(autouse=True)
def engine(request, monkeypatch):
    """Open with our engine, whatever engine a test names. A test with a reason must fail."""
    name = request.node.originalname
    reason = REASONS.get(name)
    if reason is not None:
        request.node.add_marker(pytest.mark.xfail(reason=reason, strict=True))
    opened = []

    def open_dataset(path, **keywords):
        if keywords.get("decode_cf") is False:
            # We always decode masks and scales. Here a test looks at what xarray has written.
            engine = "zarr" if os.path.isdir(path) else "netcdf4"
        else:
            engine = GridfusionBackend
            opened.append(path)
        return xr.open_dataset(path, **{**keywords, "engine": engine})

    monkeypatch.setattr(suite, "open_dataset", open_dataset)
    yield
    # A writer's refusal skips some of these.
    assert opened or reason or name == "test_roundtrip_mask_and_scale", "the test opens nothing"


class Ours:
    def __init_subclass__(cls) -> None:
        for name in OTHERS:
            setattr(cls, name, None)

    @contextlib.contextmanager
    def open(self, path, **keywords):
        with suite.open_dataset(path, **keywords) as data:
            yield data


class TestNetCDF4(Ours, suite.TestNetCDF4Data):
    pass


class TestNetCDF3(Ours, suite.TestNetCDF3ViaNetCDF4Data):
    pass


@suite.requires_zarr
class TestZarr(Ours, suite.CFEncodedBase):
    @pytest.fixture(autouse=True)
    def doubles(self, request):
        if request.node.originalname == "test_roundtrip_mask_and_scale" and request.getfixturevalue("dtype") == "float32":
            pytest.skip("xarray writes the scale as a double")

    def save(self, dataset, path, **keywords):
        return dataset.to_zarr(path, consolidated=False, **keywords)
