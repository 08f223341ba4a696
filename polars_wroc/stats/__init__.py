"""General statistics: distributions, proportions, differences, tests and resampling."""
