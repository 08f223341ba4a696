"""Statistics of arrays: estimates with limits, differences, tests, designs and distributions."""
