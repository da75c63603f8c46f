"""An operator on kubernetes-client/python, which speaks HTTP/1.1: an informer of pods, a watch of tasks, and leader election by a Lease.

Prints JSON lines in the form that lines.ts reads.
"""
import argparse
import json
import logging
import os
import threading
import time

from kubernetes import client, config, watch
from kubernetes.informer import SharedInformer
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

GROUP, VERSION, PLURAL, PODS_NAMESPACE = "rig.watchkeeper.dev", "v1", "tasks", "work"


def say(event, text):
    print(json.dumps({"event": event, "at": int(time.time() * 1000), "text": str(text)}, separators=(",", ":")), flush=True)


class Elections(logging.Handler):
    """The election logs requests that failed, and continues."""

    def emit(self, record):
        text = record.getMessage()
        # Two replicas create or take the Lease at once: the slower one gets a 409.
        if text.startswith(("Error retrieving", "Failed to")) and "(409)" not in text:
            say("error", "PUT lease: " + text)


def reconcile(tasks, task, pods):
    name, turn = task["metadata"]["name"], task["spec"]["turn"]
    if task.get("status", {}).get("turn") == turn:
        return
    body = {"status": {"turn": turn, "pods": len(pods.list())}}
    namespace = task["metadata"]["namespace"]
    for _ in range(10):
        try:
            tasks.patch_namespaced_custom_object_status(
                GROUP, VERSION, namespace, PLURAL, name, body, _content_type="application/merge-patch+json"
            )
            return
        except Exception as error:  # the client passes on errors of several libraries
            say("error", f"PATCH {name}: {error}")
            time.sleep(1)


def follow(namespace, pods):
    tasks = client.CustomObjectsApi()
    version = None
    while True:
        try:
            if version is None:
                listed = tasks.list_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL)
                version = listed["metadata"]["resourceVersion"]
                for task in listed["items"]:
                    reconcile(tasks, task, pods)
            stream = watch.Watch().stream(
                tasks.list_namespaced_custom_object, GROUP, VERSION, namespace, PLURAL, resource_version=version
            )
            for event in stream:
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] in ("ADDED", "MODIFIED"):
                    reconcile(tasks, event["object"], pods)
        except client.ApiException as error:
            say("closed", f"tasks: {error.status} {error.reason}")
            if error.status == 410:
                version = None
        except Exception as error:  # the client passes on errors of several libraries
            say("closed", f"tasks: {error}")
            time.sleep(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-kubeconfig", required=True)
    parser.add_argument("-name", required=True)
    parser.add_argument("-replica", required=True)
    options = parser.parse_args()
    config.load_kube_config(options.kubeconfig)
    identity = f"{options.name}-{options.replica}"
    logger = logging.getLogger("leaderelection")
    logger.setLevel(logging.INFO)
    logger.addHandler(Elections())

    informer = SharedInformer(client.CoreV1Api().list_namespaced_pod, namespace=PODS_NAMESPACE)
    informer.add_event_handler("ERROR", lambda error: say("closed", f"pods: {error}"))
    informer.start()

    def started():
        say("leading", identity)
        threading.Thread(target=follow, args=(options.name, informer.cache), daemon=True).start()

    def stopped():
        say("lost", identity)
        os._exit(1)

    lock = LeaseLock(options.name, options.name, identity)
    leaderelection.LeaderElection(electionconfig.Config(lock, 15, 10, 2, started, stopped)).run()


main()
