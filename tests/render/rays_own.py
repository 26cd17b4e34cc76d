"""Ray's own classes that read Serve's config. Importing them warns of what pydantic 3 will no longer take."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from ray.llm._internal.serve.core.configs.accelerators import TPUAccelerator, TPUConfig
    from ray.llm._internal.serve.core.configs.llm_config import LLMConfig
    from ray.serve.schema import ServeDeploySchema

__all__ = ["LLMConfig", "ServeDeploySchema", "TPUAccelerator", "TPUConfig"]
