"""Ray's own classes that read Serve's config. Importing them warns of what pydantic 3 will no longer take."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from ray.llm._internal.serve.core.configs.accelerators import TPUAccelerator, TPUConfig
    from ray.llm._internal.serve.core.configs.llm_config import LLMConfig
    from ray.serve._private.application_state import override_deployment_info
    from ray.serve._private.config import DeploymentConfig, ReplicaConfig
    from ray.serve._private.deployment_info import DeploymentInfo
    from ray.serve.schema import ServeApplicationSchema, ServeDeploySchema

__all__ = [
    "DeploymentConfig",
    "DeploymentInfo",
    "LLMConfig",
    "ReplicaConfig",
    "ServeApplicationSchema",
    "ServeDeploySchema",
    "TPUAccelerator",
    "TPUConfig",
    "override_deployment_info",
]
