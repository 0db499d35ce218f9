"""Computes what a fleet of concurrent workspaces needs, for docs/fleet.md: nodes, PostgreSQL, object store, cost.

    python3 packaging/python/bench/fleet_size.py 10000 1000000

The figures of the first group were measured on a machine with 2 cores. Those of the second describe the work and the
prices: put in your own.
"""

import argparse
import math
from dataclasses import dataclass, fields


@dataclass
class Figures:
    """What the computation uses."""

    # Measured: bench/load.py, `cargo xtask bench workspaces`, pgbench on PostgreSQL 15,
    # the example rows_per_second of crates/store.
    cpu_ms_per_call: float = 13.0
    mb_per_workspace: float = 2.9
    commits_per_second: float = 800.0
    rows_per_second: float = 3_200.0

    # The work: an agent that waits for its model most of the time.
    calls_per_second: float = 0.1
    changing_calls: float = 0.33
    command_cpus: float = 0.1
    command_mb: float = 50.0
    kb_per_change: float = 20.0
    changes_kept_days: float = 1.0

    # Nodes and prices.
    node_cpus: float = 32.0
    node_gb: float = 128.0
    utilization: float = 0.7
    node_dollars_per_hour: float = 1.5
    dollars_per_million_puts: float = 5.0
    dollars_per_gb_month: float = 0.023
    lease_renewal_seconds: float = 3.0
    workspace_renewal_seconds: float = 8.0


@dataclass
class Fleet:
    """What a number of workspaces needs."""

    nodes: int
    workspaces_per_node: float
    own_cpu_share: float
    calls: float
    records: float
    node_renewals: float
    workspace_renewals: float
    head_commits: float
    puts: float
    stored_tb: float
    compute_cents: float
    store_cents: float


def fleet(workspaces: int, given: Figures) -> Fleet:
    calls = workspaces * given.calls_per_second
    own_cpus = calls * given.cpu_ms_per_call / 1000
    cpus = workspaces * given.command_cpus + own_cpus
    gigabytes = workspaces * (given.mb_per_workspace + given.command_mb) / 1000
    nodes = math.ceil(max(cpus / given.node_cpus, gigabytes / given.node_gb) / given.utilization)
    puts = calls * given.changing_calls
    stored_gb = puts * given.kb_per_change / 1e6 * 86_400 * given.changes_kept_days
    put_dollars = puts * 3600 / 1e6 * given.dollars_per_million_puts
    stored_dollars = stored_gb * given.dollars_per_gb_month / 730
    return Fleet(
        nodes=nodes,
        workspaces_per_node=workspaces / nodes,
        own_cpu_share=own_cpus / cpus,
        calls=calls,
        records=calls,
        node_renewals=nodes / given.lease_renewal_seconds,
        workspace_renewals=workspaces / given.workspace_renewal_seconds,
        head_commits=puts,
        puts=puts,
        stored_tb=stored_gb / 1000,
        compute_cents=nodes * given.node_dollars_per_hour / workspaces * 100,
        store_cents=(put_dollars + stored_dollars) / workspaces * 100,
    )


def rows(counts: list[int], given: Figures) -> list[str]:
    """The table."""
    fleets = [fleet(count, given) for count in counts]

    def row(name: str, show: list[str]) -> str:
        return "| " + " | ".join([name, *show]) + " |"

    def of(limit: float, value: float) -> str:
        return f"{value:,.0f} ({value / limit * 100:,.0f} %)"

    commits, records = given.commits_per_second, given.rows_per_second
    return [
        row("concurrent workspaces", [f"{count:,}" for count in counts]),
        row("---", ["--:"] * len(counts)),
        row("calls per second", [f"{one.calls:,.0f}" for one in fleets]),
        row(f"nodes of {given.node_cpus:.0f} CPUs", [f"{one.nodes:,}" for one in fleets]),
        row("workspaces on a node", [f"{one.workspaces_per_node:,.0f}" for one in fleets]),
        row("Toolcrib's share of the CPU time", [f"{one.own_cpu_share:.1%}" for one in fleets]),
        row("audit records per second, of one PostgreSQL here", [of(records, one.records) for one in fleets]),
        row("renewals per second, a lease for each workspace", [of(commits, one.workspace_renewals) for one in fleets]),
        row("renewals per second, a lease for each node", [of(commits, one.node_renewals) for one in fleets]),
        row("commits of copied changes per second", [of(commits, one.head_commits) for one in fleets]),
        row("objects stored per second", [f"{one.puts:,.0f}" for one in fleets]),
        row("objects of a day, TB", [f"{one.stored_tb:,.1f}" for one in fleets]),
        row("compute, cents per workspace and hour", [f"{one.compute_cents:.2f}" for one in fleets]),
        row("object store, cents per workspace and hour", [f"{one.store_cents:.3f}" for one in fleets]),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("counts", nargs="+", type=int, metavar="WORKSPACES")
    for figure in fields(Figures):
        parser.add_argument(f"--{figure.name.replace('_', '-')}", type=float, default=figure.default)
    given = vars(parser.parse_args())
    counts = given.pop("counts")
    print("\n".join(rows(counts, Figures(**given))))


if __name__ == "__main__":
    main()
