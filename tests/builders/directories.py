"""Data directories on disk, made or copied, that a test may alter."""

from pathlib import Path

CLUSTER = "6It1kTHbTjKY3LNflMZizQ"


def log_dir(
    path: Path, node_id: int = 1, *, directory_id: str = "", partitions: tuple[str, ...] = ("orders-0",)
) -> Path:
    """A log directory of a node of `CLUSTER`, its partitions empty."""
    path.mkdir(parents=True)
    text = f"version=1\nnode.id={node_id}\ncluster.id={CLUSTER}\n"
    (path / "meta.properties").write_text(text + (f"directory.id={directory_id}\n" if directory_id else ""))
    (path / "replication-offset-checkpoint").write_text("0\n0\n")
    for name in partitions:
        (path / name).mkdir()
    return path
