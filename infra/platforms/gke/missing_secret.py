"""What to do where pods wait for a Kubernetes secret that is not there. Pure."""

import re

# k8s.io/kubernetes/pkg/kubelet/kubelet_pods.go (makeEnvironmentVariables), and the API server's NotFound.
_NO_SECRET = re.compile(r'secrets? "(?P<secret>[-.a-z0-9]+)" not found')
_NO_KEY = re.compile(r"couldn't find key (?P<key>\S+) in Secret [-a-z0-9]+/(?P<secret>[-.a-z0-9]+)")


def next_step(failure: str, namespace: str, otherwise: str) -> str:
    """The command that makes the secret which `failure` says is missing; `otherwise` where it says no such thing."""
    if lacking := _NO_KEY.search(failure):
        return f"put key {lacking['key']} into secret {lacking['secret']} of namespace {namespace}, then `up` again"
    if lacking := _NO_SECRET.search(failure):
        make = f"kubectl create secret generic {lacking['secret']} -n {namespace} --from-literal=<key>=<value>"
        return f"make it with its keys, `{make}`, then `up` again"
    return otherwise
