//! Operations of kube-rs, as programs.ts describes them: `program KUBECONFIG NAMESPACE crud|watch|exec|logs`

use std::{collections::BTreeMap, error::Error};

use futures::{AsyncBufReadExt, StreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{AttachParams, DeleteParams, ListParams, LogParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;

type Outcome = Result<i32, Box<dyn Error>>;

fn config_map(value: &str) -> ConfigMap {
    let mut object = ConfigMap { data: Some(BTreeMap::from([("key".into(), value.into())])), ..Default::default() };
    object.metadata.name = Some("a".into());
    object
}

fn value(object: &ConfigMap) -> &str {
    object.data.as_ref().and_then(|data| data.get("key")).map_or("", String::as_str)
}

async fn crud(api: Api<ConfigMap>) -> Outcome {
    let post = PostParams::default();
    println!("created {}", value(&api.create(&post, &config_map("one")).await?));
    println!("read {}", value(&api.get("a").await?));
    let mut object = config_map("two");
    object.metadata.resource_version = api.get("a").await?.resource_version();
    println!("replaced {}", value(&api.replace("a", &post, &object).await?));
    let patch = Patch::Merge(json!({ "data": { "key": "three" } }));
    println!("patched {}", value(&api.patch("a", &PatchParams::default(), &patch).await?));
    let names: Vec<String> = api.list(&ListParams::default()).await?.iter().map(ResourceExt::name_any).collect();
    println!("listed {}", names.join(" "));
    api.delete("a", &DeleteParams::default()).await?;
    println!("deleted");
    match api.get_opt("a").await? {
        None => println!("not found"),
        Some(_) => println!("found"),
    }
    Ok(0)
}

async fn watch(api: Api<ConfigMap>) -> Outcome {
    let version = api.list(&ListParams::default()).await?.metadata.resource_version.unwrap_or_default();
    println!("listed");
    let params = WatchParams::default().timeout(120);
    let mut events = Box::pin(api.watch(&params, &version).await?);
    while let Some(event) = events.next().await {
        let (kind, object) = match event? {
            WatchEvent::Added(object) => ("ADDED", object),
            WatchEvent::Modified(object) => ("MODIFIED", object),
            WatchEvent::Deleted(object) => ("DELETED", object),
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(error) => return Err(Box::from(format!("watch ended: {error:?}"))),
        };
        println!("{kind} {}", object.name_any());
        if object.name_any() == "last" {
            return Ok(0);
        }
    }
    println!("watch ended");
    Ok(1)
}

async fn exec(api: Api<Pod>) -> Outcome {
    let params = AttachParams::default().stdin(true).stdout(true).stderr(true);
    let mut shell = api.exec("shell", ["sh"], &params).await?;
    let mut input = shell.stdin().ok_or("no input")?;
    let mut output = shell.stdout().ok_or("no output")?;
    let mut errors = shell.stderr().ok_or("no errors")?;
    let status = shell.take_status().ok_or("no status")?;
    tokio::spawn(async move { tokio::io::copy(&mut tokio::io::stdin(), &mut input).await });
    let copies = tokio::spawn(async move {
        let (mut out, mut err) = (tokio::io::stdout(), tokio::io::stderr());
        tokio::join!(tokio::io::copy(&mut output, &mut out), tokio::io::copy(&mut errors, &mut err))
    });
    // Before the copies: kube-rs does not end the output if the websocket ends without a close frame.
    let status = status.await.ok_or("the exec ended without a status")?;
    let copied = copies.await?;
    (copied.0?, copied.1?);
    let cause = status.details.and_then(|details| details.causes).and_then(|causes| causes.into_iter().next());
    Ok(cause.and_then(|cause| cause.message).and_then(|code| code.parse().ok()).unwrap_or(0))
}

async fn logs(api: Api<Pod>) -> Outcome {
    let params = LogParams { follow: true, ..Default::default() };
    let mut lines = Box::pin(api.log_stream("shell", &params).await?.lines());
    while let Some(line) = lines.next().await {
        println!("{}", line?);
    }
    println!("log ended");
    Ok(1)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kubeconfig, namespace, act] = arguments.as_slice() else {
        return Err(Box::from("program KUBECONFIG NAMESPACE crud|watch|exec|logs"));
    };
    let config = Config::from_custom_kubeconfig(Kubeconfig::read_from(kubeconfig)?, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    let outcome = match act.as_str() {
        "crud" => crud(Api::namespaced(client, namespace)).await,
        "watch" => watch(Api::namespaced(client, namespace)).await,
        "exec" => exec(Api::namespaced(client, namespace)).await,
        "logs" => logs(Api::namespaced(client, namespace)).await,
        _ => return Err(Box::from("unknown operation")),
    };
    // Without the runtime's own end, which would wait for a read of the standard input.
    std::process::exit(outcome.unwrap_or_else(|error| {
        eprintln!("{error}");
        1
    }))
}
