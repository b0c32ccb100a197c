"""What :meth:`Connection.verify` found."""

from __future__ import annotations

from typing import Any


class Verification:
    """The checks of the files or arrays at a path, and their findings.

    ``checks`` and ``findings`` are lists of dictionaries with the fields that ``gridfusion verify --json`` has, and the path of the file or
    array. ``pandas.DataFrame(verification.findings)`` is a table of them.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        #: ``"ok"``, ``"warning"`` or ``"failed"``: the worst of all checks.
        self.status: str = document["status"]
        #: The path that was verified.
        self.path: str = document["path"]
        #: Whether every cell was decoded.
        self.deep: bool = document["deep"]
        #: A dictionary per check: ``path``, ``check``, ``status``, ``detail``, ``failures``, ``warnings``, ``left_out``.
        self.checks: list[dict[str, Any]] = []
        #: A dictionary per finding: ``path``, ``check``, ``status``, ``file``, ``region``, ``offset``, ``dataset``, ``chunk``, ``message``.
        self.findings: list[dict[str, Any]] = []
        for subject in document["subjects"]:
            for check in subject["checks"]:
                place = {"path": subject["path"], "check": check["check"]}
                self.checks.append({**place, **{key: value for key, value in check.items() if key != "findings"}})
                self.findings += [{**place, **finding} for finding in check["findings"]]

    @property
    def ok(self) -> bool:
        """Whether no check failed. Warnings make no answer wrong."""
        return self.status != "failed"

    def __repr__(self) -> str:
        lines = [f"<gridfusion.Verification of {self.path}: {self.status}, {len(self.checks)} checks>"]
        lines += [f"{it['status']:8} {it['check']}: {it['message']}" for it in self.findings]
        left_out = sum(check["left_out"] for check in self.checks)
        return "\n".join([*lines, *([f"{left_out} more findings are not listed"] if left_out else [])])
