"""The program's answers in Python: `stowage.check`, `batch`, `plan`, `table`, `assert_fits`."""
