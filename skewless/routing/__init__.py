"""Tables from unit to instance; the contract: every row goes to exactly its instances."""
