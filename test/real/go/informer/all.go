package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// all runs an informer on every built-in resource that can be listed and watched, as kube-controller-manager does. Most
// of these resources rarely change. Each list after the first one of its resource is printed as soon as it is sent.
func all(ctx context.Context, config *rest.Config) {
	var synced atomic.Bool
	var relists, watches atomic.Int64
	config.QPS = -1
	config.AcceptContentTypes = contentTypes["protobuf"]
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrips(func(request *http.Request) (*http.Response, error) {
			query := request.URL.Query()
			if query.Get("watch") != "" && query.Get("sendInitialEvents") != "true" {
				watches.Add(1)
			} else if synced.Load() {
				relists.Add(1)
				say(map[string]any{"kind": "relist", "path": request.URL.Path, "at": time.Now().UnixMilli()})
			}
			return next.RoundTrip(request)
		})
	})
	client := kubernetes.NewForConfigOrDie(config)
	factory := informers.NewSharedInformerFactory(client, 0)
	resources := 0
	lists, err := client.Discovery().ServerPreferredResources()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range list.APIResources {
			if resource.Name == "events" || strings.Contains(resource.Name, "/") || !isFollowed(resource) {
				continue
			}
			informer, err := factory.ForResource(group.WithResource(resource.Name))
			if err != nil {
				continue // no typed client has it
			}
			informer.Informer()
			resources++
		}
	}
	factory.Start(ctx.Done())
	for _, isSynced := range factory.WaitForCacheSync(ctx.Done()) {
		if !isSynced {
			os.Exit(1)
		}
	}
	synced.Store(true)
	say(map[string]any{"kind": "synced", "resources": resources})
	<-ctx.Done()
	say(map[string]any{"kind": "summary", "relists": relists.Load(), "watches": watches.Load()})
}

func isFollowed(resource metav1.APIResource) bool {
	return slices.Contains(resource.Verbs, "list") && slices.Contains(resource.Verbs, "watch")
}

type roundTrips func(*http.Request) (*http.Response, error)

func (run roundTrips) RoundTrip(request *http.Request) (*http.Response, error) { return run(request) }
