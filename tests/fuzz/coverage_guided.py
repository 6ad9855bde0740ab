"""One target under atheris: `python -m tests.fuzz.coverage_guided TARGET CORPUS… -runs=N`; started by `python -m tests.fuzz`."""

import sys

import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]

with atheris.instrument_imports(include=["kforensics"]):
    from tests.fuzz.targets import attempt


def main() -> None:
    """Hand the process over to libFuzzer."""
    target = sys.argv[1]

    def test_one_input(data: bytes) -> None:
        attempt(target, data)

    atheris.Setup([sys.argv[0], *sys.argv[2:]], test_one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
