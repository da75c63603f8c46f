"""The Python client's part of clients.test.ts and sidecar.test.ts: list, watch, create, delete; what it saw, as one line of JSON.

story.py KUBECONFIG|in-cluster NAMESPACE COUNT
"""
import json
import sys
import threading

from kubernetes import client, config, watch

kubeconfig, namespace, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
if kubeconfig == "in-cluster":
    config.load_incluster_config()
else:
    config.load_kube_config(kubeconfig)
api = client.CoreV1Api()
events = []
saw_all = threading.Event()


def follow(version):
    stream = watch.Watch()
    for event in stream.stream(
        api.list_namespaced_config_map, namespace, resource_version=version, timeout_seconds=60
    ):
        metadata = event["object"].metadata
        events.append([event["type"], metadata.name, metadata.resource_version])
        if sum(1 for kind, _, _ in events if kind == "DELETED") == count:
            stream.stop()
            saw_all.set()


before = api.list_namespaced_config_map(namespace)
watcher = threading.Thread(target=follow, args=[before.metadata.resource_version], daemon=True)
watcher.start()
for number in range(count):
    metadata = client.V1ObjectMeta(name=f"python-{number}")
    api.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata=metadata, data={"number": str(number)}))
listed = api.list_namespaced_config_map(namespace, limit=7)
pages, names = 1, [item.metadata.name for item in listed.items]
while listed.metadata._continue:
    listed = api.list_namespaced_config_map(namespace, limit=7, _continue=listed.metadata._continue)
    pages += 1
    names += [item.metadata.name for item in listed.items]
for number in range(count):
    api.delete_namespaced_config_map(f"python-{number}", namespace)
saw_all.wait(30)
print(json.dumps({"before": len(before.items), "names": names, "pages": pages, "events": events}))
