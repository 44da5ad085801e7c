"""Run every benchmark: python -m benchmarks."""

from benchmarks import busy, cold_start, encode, heads, jobs, speed, votes

for benchmark in (speed, cold_start, jobs, encode, busy, votes, heads):
    print(f"\n## {benchmark.__name__}\n\n{benchmark.__doc__}")
    benchmark.main()
