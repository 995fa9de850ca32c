# A trainer in Python and the client, for Kubernetes. "make wheels" builds the client's packages; then
#
#   docker build --file deploy/docker/trainer.Dockerfile --build-context wheels=.bin/wheels \
#     --tag dpareto-trainer clients/python/examples
#
# Pin the base image by its digest with --build-arg PYTHON=python@sha256:...

ARG PYTHON=python:3.13-slim
FROM ${PYTHON}
RUN --mount=from=wheels,target=/wheels \
    pip install --no-cache-dir --only-binary=:all: numpy /wheels/dpfront-*manylinux*_"$(uname -m)".*.whl
COPY logistic_regression.py worker.py /trainer/
USER 65532:65532
ENTRYPOINT ["python", "/trainer/worker.py"]
