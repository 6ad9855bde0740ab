# kforensics for hosts without Python: the evidence is mounted read-only, and the file system of the container may be read-only too.
FROM python:3.13-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN python -m venv /opt/kforensics \
    && /opt/kforensics/bin/pip install --no-cache-dir -c constraints.txt '.[sign,salvage]' \
    && find /opt/kforensics -name __pycache__ -prune -exec rm -rf {} +

FROM python:3.13-slim-bookworm
COPY --from=build /opt/kforensics /opt/kforensics
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
WORKDIR /evidence
ENTRYPOINT ["/opt/kforensics/bin/kforensics"]
CMD ["--help"]
