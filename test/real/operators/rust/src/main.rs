//! An operator on kube-rs: a Controller of tasks and a reflector of pods. kube-rs has no leader election.
//! Prints JSON lines in the form that lines.ts reads.

use std::{error::Error, sync::Arc, time::Duration};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, Config, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::{
        WatchStreamExt,
        controller::{Action, Controller},
        reflector::{self, Store},
        watcher,
    },
};
use serde_json::json;

fn say(event: &str, text: &str) {
    let at = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64);
    // The reader looks for "event" at the start of a line, and serde_json sorts keys.
    let (text, event) = (json!(text), json!(event));
    println!("{{\"event\":{event},\"at\":{at},\"text\":{text}}}");
}

struct Context {
    client: Client,
    resource: ApiResource,
    pods: Store<Pod>,
}

async fn reconcile(task: Arc<DynamicObject>, context: Arc<Context>) -> Result<Action, kube::Error> {
    let turn = &task.data["spec"]["turn"];
    if turn != &task.data["status"]["turn"] {
        let namespace = task.namespace().unwrap_or_default();
        let tasks: Api<DynamicObject> =
            Api::namespaced_with(context.client.clone(), &namespace, &context.resource);
        let patch = json!({ "status": { "turn": turn, "pods": context.pods.state().len() } });
        tasks
            .patch_status(&task.name_any(), &PatchParams::default(), &Patch::Merge(&patch))
            .await?;
    }
    Ok(Action::await_change())
}

fn on_error(_task: Arc<DynamicObject>, error: &kube::Error, _context: Arc<Context>) -> Action {
    say("error", &format!("PATCH: {error}"));
    Action::requeue(Duration::from_secs(1))
}

/// The value of `-name=value`.
fn flag(name: &str) -> String {
    let prefix = format!("-{name}=");
    std::env::args()
        .find_map(|argument| argument.strip_prefix(&prefix).map(String::from))
        .unwrap_or_default()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let kubeconfig = Kubeconfig::read_from(flag("kubeconfig"))?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("rig.watchkeeper.dev", "v1", "Task"));

    let (pods, writer) = reflector::store();
    let in_work: Api<Pod> = Api::namespaced(client.clone(), "work");
    let mut followed =
        Box::pin(watcher(in_work, watcher::Config::default()).reflect(writer).default_backoff());
    tokio::spawn(async move {
        while let Some(event) = followed.next().await {
            if let Err(error) = event {
                say("closed", &format!("pods: {error}"));
            }
        }
    });

    let tasks: Api<DynamicObject> = Api::namespaced_with(client.clone(), &flag("name"), &resource);
    let context = Arc::new(Context { client, resource: resource.clone(), pods });
    Controller::new_with(tasks, watcher::Config::default(), resource)
        .shutdown_on_signal()
        .run(reconcile, on_error, context)
        .for_each(|outcome| async move {
            if let Err(kube::runtime::controller::Error::QueueError(error)) = outcome {
                say("closed", &format!("tasks: {error}"));
            }
        })
        .await;
    Ok(())
}
