// informer runs client-go informers on one namespace and prints what they received as JSON lines. With -watches it
// opens that number of raw watches instead, in every form, over several namespaces (watches.go). With -all it runs
// informers on every built-in resource (all.go). With -lease it takes part in leader election (lease.go).
//
// It exits by itself after -for, so that a killed test leaves no process behind. Its last line is a summary: every
// object in the store, the number of events, the number of lists and the number of watches. A watch that breaks in a
// way from which client-go cannot resume shows as a second list.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

var contentTypes = map[string]string{
	"json":     "application/json",
	"protobuf": "application/vnd.kubernetes.protobuf,application/json",
}

// calls counts requests by their purpose for client-go's reflector: lists, streaming lists and watches.
type calls struct {
	next                            http.RoundTripper
	lists, streamed, watches, fails atomic.Int64
	contentType                     atomic.Value
}

func (c *calls) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	isWatch := query.Get("watch") != ""
	isStreamed := isWatch && query.Get("sendInitialEvents") == "true"
	switch {
	case isStreamed:
		c.streamed.Add(1) // a streaming list, which client-go sends instead of a list since 1.35
	case isWatch:
		c.watches.Add(1)
	default:
		c.lists.Add(1)
	}
	response, err := c.next.RoundTrip(request)
	if err != nil || response.StatusCode >= 400 {
		c.fails.Add(1)
		if err == nil && isStreamed && response.StatusCode == http.StatusUnprocessableEntity {
			c.streamed.Add(-1) // the server does not support WatchList: client-go sends a list instead, which is counted as a list
		}
	} else if isWatch {
		c.contentType.Store(response.Header.Get("Content-Type"))
	}
	return response, err
}

type summary struct {
	Kind        string            `json:"kind"`
	Added       int64             `json:"added"`
	Updated     int64             `json:"updated"`
	Deleted     int64             `json:"deleted"`
	Lists       int64             `json:"lists"`
	Streamed    int64             `json:"streamed"`
	Watches     int64             `json:"watches"`
	Fails       int64             `json:"fails"`
	Backwards   int64             `json:"backwards"`
	ContentType string            `json:"contentType"`
	Objects     map[string]string `json:"objects"`
}

func say(value any) {
	line, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path of the kubeconfig")
	namespace := flag.String("namespace", "default", "namespace to watch")
	content := flag.String("content", "json", "json or protobuf")
	count := flag.Int("watches", 0, "hold so many watches instead; -namespace may then be a list with commas")
	every := flag.Bool("all", false, "informers on every built-in resource instead")
	named := flag.String("lease", "", "lead by a Lease of this name instead (lease.go)")
	length := flag.Duration("for", time.Minute, "how long to run at most; SIGTERM ends it sooner")
	flag.Parse()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	accept, known := contentTypes[*content]
	if !known {
		fmt.Fprintf(os.Stderr, "Cannot use -content %q: it is json or protobuf\n", *content)
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, *length)
	defer cancel()
	if *count > 0 {
		config.QPS = -1
		watches(ctx, config, strings.Split(*namespace, ","), *count)
		return
	}
	if *named != "" {
		lease(ctx, config, *namespace, *named)
		return
	}
	if *every {
		all(ctx, config)
		return
	}
	config.AcceptContentTypes = accept
	config.ContentType = strings.Split(accept, ",")[0]
	counted := &calls{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		counted.next = next
		return counted
	})

	run(ctx, kubernetes.NewForConfigOrDie(config), *namespace, counted)
}

func run(ctx context.Context, client kubernetes.Interface, namespace string, counted *calls) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().ConfigMaps().Informer()
	var added, updated, deleted, backwards atomic.Int64
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			added.Add(1)
			say(map[string]string{"kind": "added", "name": object.(*corev1.ConfigMap).Name})
		},
		UpdateFunc: func(before, after any) {
			old, now := before.(*corev1.ConfigMap), after.(*corev1.ConfigMap)
			if len(now.ResourceVersion) < len(old.ResourceVersion) ||
				(len(now.ResourceVersion) == len(old.ResourceVersion) && now.ResourceVersion < old.ResourceVersion) {
				backwards.Add(1)
			}
			updated.Add(1)
		},
		DeleteFunc: func(object any) {
			deleted.Add(1)
			if gone, ok := object.(metav1.Object); ok {
				say(map[string]string{"kind": "deleted", "name": gone.GetName()})
			}
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	factory.Start(ctx.Done())
	if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		say(map[string]string{"kind": "synced"})
	}
	<-ctx.Done()

	objects := map[string]string{}
	for _, object := range informer.GetStore().List() {
		configMap := object.(*corev1.ConfigMap)
		objects[configMap.Name] = configMap.ResourceVersion
	}
	contentType, _ := counted.contentType.Load().(string)
	say(summary{
		Kind: "summary", Added: added.Load(), Updated: updated.Load(), Deleted: deleted.Load(),
		Lists: counted.lists.Load(), Streamed: counted.streamed.Load(), Watches: counted.watches.Load(),
		Fails: counted.fails.Load(), Backwards: backwards.Load(), ContentType: contentType, Objects: objects,
	})
}
