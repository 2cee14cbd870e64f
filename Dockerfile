# syntax=docker/dockerfile:1
# The page and the HTTP interface, `prevalens serve`, from the wheel:
#
#     make dist
#     docker build -t prevalens .
#     docker run --rm -p 127.0.0.1:8321:8321 -e PREVALENS_TOKEN=<16 characters or more> \
#         -v "$PWD/models:/models:ro" prevalens /models
#
# Without a folder of models, train one in the page. Without PREVALENS_TOKEN, one is generated and
# printed as part of the address.
FROM python:3.13-slim AS build

# Pinned by the lock file; the wheel itself comes last, since it changes most often.
COPY requirements/serve.txt /tmp/serve.txt
RUN python -m venv /opt/prevalens \
    && /opt/prevalens/bin/pip install --no-cache-dir --require-hashes -r /tmp/serve.txt
COPY dist/*.whl /tmp/
RUN /opt/prevalens/bin/pip install --no-cache-dir --no-deps /tmp/prevalens-*.whl

FROM python:3.13-slim

RUN useradd --create-home --uid 10001 prevalens
COPY --from=build /opt/prevalens /opt/prevalens

ENV PATH="/opt/prevalens/bin:$PATH" \
    PYTHONUNBUFFERED=1 \
    NUMBA_CACHE_DIR=/tmp/numba

USER prevalens
WORKDIR /home/prevalens
EXPOSE 8321

HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8321/healthz', timeout=4)"]

ENTRYPOINT ["prevalens", "serve", "--host", "0.0.0.0"]
