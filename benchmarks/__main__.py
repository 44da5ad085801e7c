"""Run every benchmark: python -m benchmarks."""

from benchmarks import cold_start, heads, speed, votes

for benchmark in (speed, cold_start, votes, heads):
    print(f"\n## {benchmark.__name__}\n\n{benchmark.__doc__}")
    benchmark.main()
