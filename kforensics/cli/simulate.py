"""`kforensics simulate`: histories replayed, explored, and written as data directories."""

from kforensics.ask.simulate import SimulateAsk
from kforensics.cli.command import Output, question
from kforensics.cli.simulate_modes import choose_mode, refuse_out_of_place


@question("simulate")
def simulate(output: Output, ask: SimulateAsk) -> None:
    """Do the one thing that is asked for."""
    mode = choose_mode(ask)
    refuse_out_of_place(output.context, mode)
    output.check((), mode.shape)
    from kforensics.commands.simulate import run
    from kforensics.render.emit import truth_json

    output.finish(run(ask, truth_json))
