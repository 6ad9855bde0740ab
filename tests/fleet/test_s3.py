"""A fleet on S3, sources and tables, against a server of that interface in this process; run with `pytest -m slow tests/fleet/test_s3.py`.

It needs `pip install 'moto[server]'`, which development does not; without it the test is left out.
"""

import os
from pathlib import Path

import pytest

from kforensics.commands.diff import DiffOptions, compare
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.fleet.storage import parse_location

pytestmark = [pytest.mark.slow, pytest.mark.spark]


@pytest.fixture(scope="session")
def server():
    """Where the server answers; it comes before Spark, whose workers take this environment over."""
    moto = pytest.importorskip("moto.server")
    given = {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_EC2_METADATA_DISABLED": "true",
        # This server keeps some bodies with the chunks that checksums behind them bring.
        "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
    }
    before = dict(os.environ)
    os.environ.update(given)
    running = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    running.start()
    _, port = running.get_host_and_port()
    yield f"127.0.0.1:{port}"
    running.stop()
    os.environ.clear()
    os.environ.update(before)


def test_sources_and_tables_on_s3(server, run_audit, incident, plain):
    from pyarrow.fs import S3FileSystem

    storage = S3FileSystem(endpoint_override=server, scheme="http", region="us-east-1", allow_bucket_creation=True)
    storage.create_dir("copies")
    place = incident("unclean-election-4.x") / "snapshots" / "03-old-leader-down-live"
    for folder, _, names in os.walk(place):
        for name in names:
            target = f"copies/fleet/{Path(folder, name).relative_to(place)}"
            with storage.open_output_stream(target, compression=None) as stream:
                stream.write(Path(folder, name).read_bytes())
    where = f"?region=us-east-1&scheme=http&endpoint_override={server.replace(':', '%3A')}"
    sources = [f"s3://copies/fleet/{pattern}{where}" for pattern in ("broker-*", "controller-100")]

    first, tables = run_audit(*sources, out=f"s3://copies/first{where}")
    second, _ = run_audit(*sources, out=f"s3://copies/second{where}", since=parse_location(f"s3://copies/first{where}"))

    expected = compare(find_inputs([place]), DiffOptions(), jobs=1)
    assert sorted(one.statement for one in expected.findings) == sorted(
        one.statement for one in first.findings if not one.code.startswith("KF4")
    )
    assert str(tables) == "s3://copies/first"
    assert (0, first.segments, ()) == (second.read_bytes, second.reused_segments, second.problems)
    assert list(map(plain, first.findings)) == list(map(plain, second.findings))
