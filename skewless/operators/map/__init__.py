"""The stateless map: rows go where there is least work, by what rows like them have cost."""
