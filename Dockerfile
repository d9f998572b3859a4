# apsvm and what it needs, nothing else: docker build -t apsvm . && docker run --rm -v "$PWD:/data" apsvm train data.svm
FROM python:3.12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
COPY . /source
RUN python -m venv /opt/apsvm && /opt/apsvm/bin/pip install --no-cache-dir "/source[plot]"

FROM python:3.12-slim
COPY --from=build /opt/apsvm /opt/apsvm
WORKDIR /data
ENTRYPOINT ["/opt/apsvm/bin/apsvm"]
