"""Programs that show `orchestra` in use. Run each from the root of the project: `python -m examples.duo`."""
