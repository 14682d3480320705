"""The commands of `python -m stowage`: each parses, calls the package, and reports."""
