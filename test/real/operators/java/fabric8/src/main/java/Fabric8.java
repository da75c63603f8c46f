import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderCallbacks;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElectionConfigBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import java.io.File;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * An operator on fabric8's client: informers, and leader election by a Lease. fabric8 watches over WebSockets, unless it has
 * -http=true. Prints JSON lines in the form that lines.ts reads.
 */
public final class Fabric8 {
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

  private static Object turnOf(GenericKubernetesResource task, String part) {
    return task.getAdditionalProperties().get(part) instanceof Map<?, ?> map ? map.get("turn") : null;
  }

  private static void reconcile(KubernetesClient client, SharedIndexInformer<Pod> pods, GenericKubernetesResource task) {
    Object turn = turnOf(task, "spec");
    if (!LEADS.get() || turn == null || turn.equals(turnOf(task, "status"))) return;
    String name = task.getMetadata().getName();
    String patch = "{\"status\":{\"turn\":" + turn + ",\"pods\":" + pods.getStore().list().size() + "}}";
    try {
      client
          .genericKubernetesResources("rig.watchkeeper.dev/v1", "Task")
          .inNamespace(task.getMetadata().getNamespace())
          .withName(name)
          .subresource("status")
          .patch(PatchContext.of(PatchType.JSON_MERGE), patch);
    } catch (RuntimeException error) {
      say("error", "PATCH " + name + ": " + error);
      WORKER.schedule(() -> reconcile(client, pods, task), 1, TimeUnit.SECONDS);
    }
  }

  public static void main(String[] args) {
    String name = flag(args, "name");
    String identity = name + "-" + flag(args, "replica");
    Config config = Config.fromKubeconfig(new File(flag(args, "kubeconfig")));
    config.setOnlyHttpWatches(flag(args, "http").equals("true"));
    KubernetesClient client = new KubernetesClientBuilder().withConfig(config).build();
    SharedIndexInformer<Pod> pods = client.pods().inNamespace("work").inform();
    SharedIndexInformer<GenericKubernetesResource> tasks =
        client.genericKubernetesResources("rig.watchkeeper.dev/v1", "Task").inNamespace(name).inform();
    tasks.addEventHandler(
        new ResourceEventHandler<>() {
          @Override
          public void onAdd(GenericKubernetesResource task) {
            WORKER.execute(() -> reconcile(client, pods, task));
          }

          @Override
          public void onUpdate(GenericKubernetesResource before, GenericKubernetesResource task) {
            onAdd(task);
          }

          @Override
          public void onDelete(GenericKubernetesResource task, boolean isUnknown) {}
        });
    Runnable started =
        () -> {
          say("leading", identity);
          LEADS.set(true);
          tasks.getStore().list().forEach(task -> WORKER.execute(() -> reconcile(client, pods, task)));
        };
    Runnable stopped =
        () -> {
          say("lost", identity);
          System.exit(1);
        };
    var election =
        new LeaderElectionConfigBuilder()
            .withName(name)
            .withLock(new LeaseLock(name, name, identity))
            .withLeaseDuration(Duration.ofSeconds(15))
            .withRenewDeadline(Duration.ofSeconds(10))
            .withRetryPeriod(Duration.ofSeconds(2))
            .withLeaderCallbacks(new LeaderCallbacks(started, stopped, leader -> {}))
            .build();
    client.leaderElector().withConfig(election).build().run();
  }
}
