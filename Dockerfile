# Stage one builds the wheel and installs it with its locked requirements; only that directory goes on.
FROM python:3.11-slim AS build
WORKDIR /src
COPY requirements-image.lock requirements-build.lock ./
RUN python3 -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements-build.lock \
    && python3 -m venv /opt/edgewise \
    && /opt/edgewise/bin/pip install --no-cache-dir --no-compile --require-hashes -r requirements-image.lock
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY policies policies
COPY proxy proxy
RUN /opt/build/bin/hatchling build -t wheel -d dist \
    && /opt/edgewise/bin/pip install --no-cache-dir --no-deps dist/*.whl \
    && /opt/edgewise/bin/python -m compileall -q /opt/edgewise/lib \
    && /opt/edgewise/bin/pip uninstall --yes --quiet pip setuptools

FROM python:3.11-slim
RUN groupadd --system --gid 10001 app \
    && useradd --system --uid 10001 --gid app --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin app \
    && install -d -m 0700 -o app -g app /var/lib/edgewise
COPY --from=build /opt/edgewise /opt/edgewise
ENV PATH=/opt/edgewise/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    EDGEWISE_HOST=0.0.0.0 \
    EDGEWISE_PORT=8400 \
    EDGEWISE_LEDGER=/var/lib/edgewise
VOLUME /var/lib/edgewise
# Beyond loopback Edgewise starts only with EDGEWISE_INBOUND_KEYS, or when told outright that it may serve anyone.
USER 10001:10001
EXPOSE 8400
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"EDGEWISE_PORT\"]}/healthz', timeout=2)"]
ENTRYPOINT ["edgewise"]
CMD ["serve"]
