package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// noted prints each failed request, because client-go's leader election only retries it.
type noted struct{ next http.RoundTripper }

func (n noted) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := n.next.RoundTrip(request)
	if err != nil && request.Context().Err() == nil {
		say(map[string]string{"kind": "failed", "text": fmt.Sprintf("%s: %v", request.Method, err)})
	}
	if err == nil && response.StatusCode >= 500 {
		say(map[string]string{"kind": "failed", "text": fmt.Sprintf("%s: %d", request.Method, response.StatusCode)})
	}
	return response, err
}

// lease takes part in leader election with the durations of kube-controller-manager. It prints when it becomes leader
// and when it loses the Lease.
func lease(ctx context.Context, config *rest.Config, namespace, name string) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return noted{next} })
	lock, err := resourcelock.NewFromKubeconfig(
		resourcelock.LeasesResourceLock, namespace, name,
		resourcelock.ResourceLockConfig{Identity: name}, config, 10*time.Second,
	)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { say(map[string]string{"kind": "leading"}) },
			OnStoppedLeading: func() {
				if ctx.Err() == nil {
					say(map[string]string{"kind": "lost"})
				}
			},
		},
	})
}
