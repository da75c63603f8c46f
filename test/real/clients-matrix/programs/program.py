"""Operations of the Python client, as programs.ts describes them: program.py KUBECONFIG NAMESPACE crud|watch|exec|logs"""
import sys
import threading

from kubernetes import client, config, stream, watch

kubeconfig, namespace, act = sys.argv[1:4]
config.load_kube_config(kubeconfig)
api = client.CoreV1Api()


def say(text):
    print(text, flush=True)


def config_map(value):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name="a"), data={"key": value})


def crud():
    say("created " + api.create_namespaced_config_map(namespace, config_map("one")).data["key"])
    say("read " + api.read_namespaced_config_map("a", namespace).data["key"])
    say("replaced " + api.replace_namespaced_config_map("a", namespace, config_map("two")).data["key"])
    say("patched " + api.patch_namespaced_config_map("a", namespace, {"data": {"key": "three"}}).data["key"])
    say("listed " + " ".join(item.metadata.name for item in api.list_namespaced_config_map(namespace).items))
    api.delete_namespaced_config_map("a", namespace)
    say("deleted")
    try:
        api.read_namespaced_config_map("a", namespace)
    except client.ApiException as error:
        say("not found" if error.status == 404 else str(error))


def follow():
    version = api.list_namespaced_config_map(namespace).metadata.resource_version
    say("listed")
    # With a timeout, the client does not open the watch again.
    events = watch.Watch().stream(
        api.list_namespaced_config_map, namespace, resource_version=version, timeout_seconds=120
    )
    for event in events:
        name = event["object"].metadata.name
        say(f"{event['type']} {name}")
        if name == "last":
            return
    say("watch ended")
    sys.exit(1)


def execute():
    shell = stream.stream(
        api.connect_get_namespaced_pod_exec,
        "shell",
        namespace,
        command=["sh"],
        stdin=True,
        stdout=True,
        stderr=True,
        tty=False,
        _preload_content=False,
    )

    def feed():
        for line in sys.stdin:
            shell.write_stdin(line)

    threading.Thread(target=feed, daemon=True).start()
    while shell.is_open():
        shell.update(timeout=1)
        if shell.peek_stdout():
            sys.stdout.write(shell.read_stdout())
            sys.stdout.flush()
        if shell.peek_stderr():
            sys.stderr.write(shell.read_stderr())
    sys.exit(shell.returncode)


def logs():
    lines = api.read_namespaced_pod_log("shell", namespace, follow=True, _preload_content=False)
    for chunk in lines.stream():
        sys.stdout.write(chunk.decode())
        sys.stdout.flush()
    say("log ended")
    sys.exit(1)


{"crud": crud, "watch": follow, "exec": execute, "logs": logs}[act]()
