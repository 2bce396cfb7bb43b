"""From a row to its instances. Contract: every row goes to exactly the instances it should."""
