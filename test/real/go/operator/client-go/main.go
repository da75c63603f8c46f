// An operator that uses client-go alone: informers, and leader election with a Lease. The environment variable
// DISABLE_HTTP2 makes it use HTTP/1.1.
package main

import (
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/workqueue"
	"watchkeeper.dev/test/real/operator/report"
)

var tasks = schema.GroupVersionResource{Group: report.Group, Version: report.Version, Resource: report.Plural}

type worker struct {
	client dynamic.Interface
	store  cache.Store
	pods   listers.PodLister
	queue  workqueue.TypedRateLimitingInterface[string]
}

func (w worker) reconcile(ctx context.Context, key string) error {
	stored, exists, err := w.store.GetByKey(key)
	if err != nil || !exists {
		return err
	}
	object := stored.(*unstructured.Unstructured)
	turn, _, _ := unstructured.NestedInt64(object.Object, "spec", "turn")
	done, _, _ := unstructured.NestedInt64(object.Object, "status", "turn")
	if done == turn {
		return nil
	}
	pods, err := w.pods.List(labels.Everything())
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"turn": turn, "pods": len(pods)}})
	if err != nil {
		return err
	}
	resource := w.client.Resource(tasks).Namespace(object.GetNamespace())
	_, err = resource.Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

func (w worker) run(ctx context.Context) {
	go func() {
		<-ctx.Done()
		w.queue.ShutDown()
	}()
	for {
		key, isOver := w.queue.Get()
		if isOver {
			return
		}
		if err := w.reconcile(ctx, key); err != nil {
			w.queue.AddRateLimited(key)
		} else {
			w.queue.Forget(key)
		}
		w.queue.Done(key)
	}
}

func newWorker(ctx context.Context, operator report.Operator) worker {
	client := dynamic.NewForConfigOrDie(operator.Config)
	typed := rest.CopyConfig(operator.Config)
	typed.ContentType = "application/vnd.kubernetes.protobuf"
	typed.AcceptContentTypes = typed.ContentType + ",application/json"
	ofPods := informers.NewSharedInformerFactoryWithOptions(
		kubernetes.NewForConfigOrDie(typed), 0, informers.WithNamespace(report.PodsNamespace),
	)
	ofTasks := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, operator.Name, nil)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	informer := ofTasks.ForResource(tasks).Informer()
	add := func(object any) {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
			queue.Add(key)
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    add,
		UpdateFunc: func(_, now any) { add(now) },
	}); err != nil {
		panic(err)
	}
	pods := ofPods.Core().V1().Pods().Lister()
	ofPods.Start(ctx.Done())
	ofTasks.Start(ctx.Done())
	ofPods.WaitForCacheSync(ctx.Done())
	ofTasks.WaitForCacheSync(ctx.Done())
	return worker{client, informer.GetStore(), pods, queue}
}

func main() {
	operator := report.FromFlags()
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	worker := newWorker(ctx, operator)
	lock, err := resourcelock.NewFromKubeconfig(
		resourcelock.LeasesResourceLock, operator.Name, operator.Name,
		resourcelock.ResourceLockConfig{Identity: operator.Identity}, operator.Config, 10*time.Second,
	)
	if err != nil {
		panic(err)
	}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				report.Say("leading", operator.Identity)
				worker.run(ctx)
			},
			OnStoppedLeading: func() {
				if ctx.Err() == nil {
					report.Say("lost", operator.Identity)
					os.Exit(1)
				}
			},
		},
	})
}
