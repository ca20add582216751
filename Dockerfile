FROM python:3.12-slim

ENV PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_ROOT_USER_ACTION=ignore

WORKDIR /app

COPY requirements.lock ./
RUN pip install --require-hashes -r requirements.lock

COPY LICENSE ./
COPY bot ./bot
COPY handlers ./handlers
COPY plugins ./plugins
COPY locales ./locales
COPY docs/es ./docs/es
COPY docs/en ./docs/en

# Compiled here, because the bot's user may not write beside the code; data/ is the one folder that is theirs.
RUN python -m compileall -q bot handlers plugins \
    && useradd --system --uid 10001 --no-create-home --home-dir /app/data sabio \
    && mkdir data \
    && chown sabio data
USER sabio
VOLUME /app/data

# Setting the port is what serves /healthz beside the terminal chat; the health check below asks it.
ENV BOT_HTTP_HOST=0.0.0.0 \
    BOT_HTTP_PORT=8080
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen('http://127.0.0.1:' + os.environ['BOT_HTTP_PORT'] + '/healthz', timeout=4)"]

CMD ["python", "-m", "bot"]
