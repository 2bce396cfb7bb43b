"""Complete programs that use Skewless as its users do."""
