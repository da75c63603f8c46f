"""A Python controller's watch: every event it is told, a line each, until it is killed.

follow.py KUBECONFIG NAMESPACE
"""
import sys

from kubernetes import client, config, watch

kubeconfig, namespace = sys.argv[1], sys.argv[2]
config.load_kube_config(kubeconfig)
api = client.CoreV1Api()
version = api.list_namespaced_config_map(namespace).metadata.resource_version
print("from", version, flush=True)
while True:
    # It goes on by itself from the last version when a stream ends; a 410 ends the loop.
    for event in watch.Watch().stream(api.list_namespaced_config_map, namespace, resource_version=version):
        metadata = event["object"].metadata
        version = metadata.resource_version
        print(event["type"], metadata.name, version, flush=True)
    print("again", version, flush=True)
