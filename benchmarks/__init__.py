"""What is measured, against whom. Slow; not tests."""
