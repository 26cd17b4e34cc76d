"""What `infra` and `workloads` both know: slices, services, jobs, and the one JSON value a process gets.

Pure pydantic: importing this package brings in neither pulumi, ray nor jax.
"""

from workloads.spec.engines import AppSpec, VllmSpec
from workloads.spec.job import BUNDLED_TEXTS, DataSpec, JobSpec, MeshSpec, ModelSpec
from workloads.spec.launch import DeclaredSlices, JobLaunch, ServiceLaunch
from workloads.spec.replicas import ReplicaCount
from workloads.spec.run import DeclaredRun
from workloads.spec.secret import SecretKey
from workloads.spec.service import EngineSpec, ServiceSpec
from workloads.spec.slices import Slice, SliceError, catalogue, resolve_slice, slice_mistakes

__all__ = [
    "BUNDLED_TEXTS",
    "AppSpec",
    "DataSpec",
    "DeclaredRun",
    "DeclaredSlices",
    "EngineSpec",
    "JobLaunch",
    "JobSpec",
    "MeshSpec",
    "ModelSpec",
    "ReplicaCount",
    "SecretKey",
    "ServiceLaunch",
    "ServiceSpec",
    "Slice",
    "SliceError",
    "VllmSpec",
    "catalogue",
    "resolve_slice",
    "slice_mistakes",
]
