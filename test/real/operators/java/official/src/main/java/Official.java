import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.kubernetes.client.custom.V1Patch;
import io.kubernetes.client.extended.leaderelection.LeaderElectionConfig;
import io.kubernetes.client.extended.leaderelection.LeaderElector;
import io.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import io.kubernetes.client.informer.ResourceEventHandler;
import io.kubernetes.client.informer.SharedIndexInformer;
import io.kubernetes.client.informer.SharedInformerFactory;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.ApiException;
import io.kubernetes.client.openapi.apis.CustomObjectsApi;
import io.kubernetes.client.openapi.models.V1Pod;
import io.kubernetes.client.openapi.models.V1PodList;
import io.kubernetes.client.util.ClientBuilder;
import io.kubernetes.client.util.KubeConfig;
import io.kubernetes.client.util.PatchUtils;
import io.kubernetes.client.util.generic.GenericKubernetesApi;
import io.kubernetes.client.util.generic.dynamic.DynamicKubernetesApi;
import io.kubernetes.client.util.generic.dynamic.DynamicKubernetesObject;
import java.io.FileReader;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * An operator on the official Java client: informers, and leader election by a Lease. Prints JSON lines in the form that
 * lines.ts reads.
 */
public final class Official {
  private static final String GROUP = "rig.watchkeeper.dev";
  private static final AtomicBoolean LEADS = new AtomicBoolean();
  private static final ScheduledExecutorService WORKER = Executors.newSingleThreadScheduledExecutor();

  private static synchronized void say(String event, String text) {
    String escaped = text.replace("\\", "\\\\").replace("\"", "\\\"").replaceAll("\\s+", " ");
    String line = "{\"event\":\"%s\",\"at\":%d,\"text\":\"%s\"}\n";
    System.out.print(String.format(line, event, System.currentTimeMillis(), escaped));
  }

  private static String flag(String[] args, String name) {
    for (String arg : args) {
      if (arg.startsWith("-" + name + "=")) return arg.substring(name.length() + 2);
    }
    return "";
  }

  private static JsonElement turnOf(DynamicKubernetesObject task, String part) {
    JsonObject inside = task.getRaw().getAsJsonObject(part);
    return inside == null ? null : inside.get("turn");
  }

  private static void reconcile(CustomObjectsApi api, SharedIndexInformer<V1Pod> pods, DynamicKubernetesObject task) {
    JsonElement turn = turnOf(task, "spec");
    if (!LEADS.get() || turn == null || turn.equals(turnOf(task, "status"))) return;
    String name = task.getMetadata().getName();
    String namespace = task.getMetadata().getNamespace();
    V1Patch patch = new V1Patch("{\"status\":{\"turn\":" + turn + ",\"pods\":" + pods.getIndexer().list().size() + "}}");
    try {
      PatchUtils.patch(
          Object.class,
          () -> api.patchNamespacedCustomObjectStatus(GROUP, "v1", namespace, "tasks", name, patch).buildCall(null),
          V1Patch.PATCH_FORMAT_JSON_MERGE_PATCH,
          api.getApiClient());
    } catch (ApiException error) {
      say("error", "PATCH " + name + ": " + error + " " + error.getResponseBody());
      WORKER.schedule(() -> reconcile(api, pods, task), 1, TimeUnit.SECONDS);
    }
  }

  public static void main(String[] args) throws IOException {
    String name = flag(args, "name");
    String identity = name + "-" + flag(args, "replica");
    KubeConfig kubeconfig = KubeConfig.loadKubeConfig(new FileReader(flag(args, "kubeconfig")));
    ApiClient client = ClientBuilder.kubeconfig(kubeconfig).build();
    // As the client's own informer example does: a watch may be silent.
    client.setHttpClient(client.getHttpClient().newBuilder().readTimeout(Duration.ZERO).build());
    CustomObjectsApi api = new CustomObjectsApi(client);
    SharedInformerFactory factory = new SharedInformerFactory(client);
    SharedIndexInformer<V1Pod> pods =
        factory.sharedIndexInformerFor(
            new GenericKubernetesApi<>(V1Pod.class, V1PodList.class, "", "v1", "pods", client),
            V1Pod.class,
            0,
            "work",
            (type, error) -> say("closed", "pods: " + error));
    SharedIndexInformer<DynamicKubernetesObject> tasks =
        factory.sharedIndexInformerFor(
            new DynamicKubernetesApi(GROUP, "v1", "tasks", client),
            DynamicKubernetesObject.class,
            0,
            name,
            (type, error) -> say("closed", "tasks: " + error));
    tasks.addEventHandler(
        new ResourceEventHandler<>() {
          @Override
          public void onAdd(DynamicKubernetesObject task) {
            WORKER.execute(() -> reconcile(api, pods, task));
          }

          @Override
          public void onUpdate(DynamicKubernetesObject before, DynamicKubernetesObject task) {
            onAdd(task);
          }

          @Override
          public void onDelete(DynamicKubernetesObject task, boolean isUnknown) {}
        });
    factory.startAllRegisteredInformers();
    LeaseLock lock = new LeaseLock(name, name, identity, client);
    LeaderElectionConfig election =
        new LeaderElectionConfig(lock, Duration.ofSeconds(15), Duration.ofSeconds(10), Duration.ofSeconds(2));
    new LeaderElector(election, error -> say("error", "PUT lease: " + error))
        .run(
            () -> {
              say("leading", identity);
              LEADS.set(true);
              tasks.getIndexer().list().forEach(task -> WORKER.execute(() -> reconcile(api, pods, task)));
            },
            () -> {
              say("lost", identity);
              System.exit(1);
            });
  }
}
