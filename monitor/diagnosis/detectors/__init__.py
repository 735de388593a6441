"""One pitfall a file, in folders by what they are about.

A module has `CODE`, `NEEDS` (names from `core/needs.py`; where one is absent the check is listed as not
checked) and `detect(window)`; where other findings are its mere consequences `EXPLAINS`, and where a metric
shows it `CURVE` (origin and key). A code that nothing can tell yet has `UNCHECKED`, the reason, instead.
Its docstring is what users read in docs/findings.md, and what its signals are in docs/detectors.md: run
`scripts/findings-docs` after a change. Chinese texts are in `static/locale/zh-CN.json`.
"""

#: Folders, in the order of docs/findings.md.
GROUPS = ("data", "precision", "memory", "distributed", "graph", "time", "gpu", "health")
