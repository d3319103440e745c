"""A page about a lake: facts read without Spark, plots as SVG, one HTML file that needs no server and no script."""
