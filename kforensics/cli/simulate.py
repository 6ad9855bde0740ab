"""`kforensics simulate`: histories replayed, explored, and written as data directories."""

from kforensics.ask.simulate import SimulateAsk
from kforensics.cli.command import Output, question


@question("simulate")
def simulate(output: Output, ask: SimulateAsk) -> None:
    """Do the one thing that is asked for."""
    shape = "write" if ask.write else "explore" if ask.model else "replay" if ask.scenario else "list"
    output.check((), f"simulate {shape}")
    from kforensics.commands.simulate import run
    from kforensics.render.emit import truth_json

    output.finish(run(ask, truth_json))
