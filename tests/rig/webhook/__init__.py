"""A stand-in for the Ray TPU webhook that GKE's Ray add-on runs in its control plane, and that cannot be had here.

It does to pods and RayClusters what the public webhook was seen to do on a real API server with KubeRay 1.5.1 and
1.6.0; GKE's managed copy may be of another release. What is documented of it:
    https://docs.cloud.google.com/kubernetes-engine/docs/add-on/ray-on-gke/how-to/enable-ray-on-gke
    https://docs.cloud.google.com/kubernetes-engine/docs/add-on/ray-on-gke/how-to/view-tpu-metrics
    https://github.com/ai-on-gke/kuberay-tpu-webhook/blob/main/README.md
    https://github.com/ai-on-gke/kuberay-tpu-webhook/blob/main/e2e/README.md
    https://github.com/GoogleCloudPlatform/ai-on-gke/blob/main/ray-on-gke/guides/tpu
"""
