"""From a table of numbers, categories and dates to the numbers that learners read."""
