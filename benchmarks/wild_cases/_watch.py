"""Runs a case under the monitor: its report, and its steps as rows."""

import csv
import json
import subprocess
import sys
import tempfile


def watched(case):
    """The report of `case work`, and a row for each step."""
    folder, run = tempfile.mkdtemp(), [sys.executable, "-m", "monitor"]
    how = ["run", "--no-dashboard", "--run-dir", folder, "--json", folder + "/r"]
    subprocess.run([*run, *how, case, "work"], check=False)
    with open(folder + "/r") as file:
        report = json.load(file)
    rows = [*run, "report", report["run"], "--run-dir", folder, "--csv", folder + "/c"]
    subprocess.run(rows, stdout=subprocess.DEVNULL, check=False)
    with open(folder + "/c") as file:
        return report, list(csv.DictReader(file))


def total(rows, key):
    """The sum of one column."""
    return sum(float(row[key] or 0) for row in rows if key in row)
