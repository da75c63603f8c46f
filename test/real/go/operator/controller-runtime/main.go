// An operator that uses controller-runtime. go.mod and *.mod pin three versions of it; go build -modfile selects one.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"watchkeeper.dev/test/real/operator/report"
)

func task() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: report.Group, Version: report.Version, Kind: report.Kind})
	return object
}

type reconciler struct{ client.Client }

func (r reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := task()
	if err := r.Get(ctx, request.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	turn, _, _ := unstructured.NestedInt64(object.Object, "spec", "turn")
	done, _, _ := unstructured.NestedInt64(object.Object, "status", "turn")
	if done == turn {
		return ctrl.Result{}, nil
	}
	pods := &corev1.PodList{}
	if err := r.List(ctx, pods, client.InNamespace(report.PodsNamespace)); err != nil {
		return ctrl.Result{}, err
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"turn": turn, "pods": len(pods.Items)}})
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.Status().Patch(ctx, object, client.RawPatch("application/merge-patch+json", patch))
}

func run() error {
	operator := report.FromFlags()
	ctrl.SetLogger(klog.Background())
	manager, err := ctrl.NewManager(operator.Config, ctrl.Options{
		Metrics:                       server.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              operator.Name,
		LeaderElectionNamespace:       operator.Name,
		LeaderElectionReleaseOnCancel: false,
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			task():        {Namespaces: map[string]cache.Config{operator.Name: {}}},
			&corev1.Pod{}: {Namespaces: map[string]cache.Config{report.PodsNamespace: {}}},
		}},
	})
	if err != nil {
		return err
	}
	if _, err := manager.GetCache().GetInformer(context.Background(), &corev1.Pod{}); err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(manager).Named(operator.Name).For(task()).Complete(reconciler{manager.GetClient()}); err != nil {
		return err
	}
	go func() {
		<-manager.Elected()
		report.Say("leading", operator.Identity)
	}()
	return manager.Start(ctrl.SetupSignalHandler())
}

func main() {
	if err := run(); err != nil {
		report.Say("lost", err.Error())
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
