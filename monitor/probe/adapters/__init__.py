"""One file per framework: where a step ends."""
