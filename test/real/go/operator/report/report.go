// Package report prints what an operator's client observes, as JSON lines in the form that test/real/operators/lines.ts
// reads.
package report

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Task is the resource that each operator reconciles.
const (
	Group   = "rig.watchkeeper.dev"
	Version = "v1"
	Kind    = "Task"
	Plural  = "tasks"
)

// PodsNamespace is the namespace of the pods that each operator watches.
const PodsNamespace = "work"

// Operator has the settings that the rig passes to an operator.
type Operator struct {
	// Name is the namespace of the operator's tasks, and the name of its Lease.
	Name string
	// Identity differs between the replicas of an operator.
	Identity string
	Config   *rest.Config
}

// FromFlags reads -kubeconfig, -name and -replica. The returned client configuration prints each failed request.
func FromFlags() Operator {
	if flag.Lookup("kubeconfig") == nil { // controller-runtime defines it
		flag.String("kubeconfig", "", "path of the kubeconfig")
	}
	name := flag.String("name", "", "the operator's name, which is the namespace of its tasks")
	replica := flag.Int("replica", 0, "which replica of the operator this is")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", flag.Lookup("kubeconfig").Value.String())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return transport{next} })
	return Operator{Name: *name, Identity: fmt.Sprintf("%s-%d", *name, *replica), Config: config}
}

var saying sync.Mutex

type line struct {
	Event string `json:"event"`
	At    int64  `json:"at"`
	Text  string `json:"text"`
}

// Say prints one line. kind is "leading", "lost" (the Lease), "error" (a request failed) or "closed" (a watch ended).
func Say(kind, text string) {
	said, err := json.Marshal(line{kind, time.Now().UnixMilli(), text})
	if err != nil {
		panic(err)
	}
	saying.Lock()
	defer saying.Unlock()
	fmt.Println(string(said))
}

type transport struct{ next http.RoundTripper }

func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	what := request.Method + " " + request.URL.Path
	switch {
	case request.Context().Err() != nil:
	case err != nil:
		Say("error", fmt.Sprintf("%s: %v", what, err))
	case response.StatusCode >= 400 && !isUsual(request, response):
		start := make([]byte, 1_000)
		count, _ := io.ReadFull(response.Body, start)
		Say("error", fmt.Sprintf("%s: %d %s", what, response.StatusCode, start[:count]))
		response.Body = body{io.MultiReader(strings.NewReader(string(start[:count])), response.Body), response.Body, nil}
	case request.URL.Query().Get("watch") != "":
		response.Body = body{response.Body, response.Body, func(err error) {
			if request.Context().Err() == nil {
				Say("closed", fmt.Sprintf("%s: %v", request.URL.Path, err))
			}
		}}
	}
	return response, err
}

// isUsual is true for a failed request that is normal in leader election: the first replica finds no Lease yet, or
// another replica created or took the Lease first.
func isUsual(request *http.Request, response *http.Response) bool {
	isLease := strings.Contains(request.URL.Path, "/leases")
	return isLease && (response.StatusCode == http.StatusNotFound || response.StatusCode == http.StatusConflict)
}

// body calls ended with the error that ends the response body.
type body struct {
	io.Reader
	io.Closer
	ended func(error)
}

func (b body) Read(into []byte) (int, error) {
	count, err := b.Reader.Read(into)
	if err != nil && b.ended != nil && !errors.Is(err, http.ErrBodyReadAfterClose) {
		b.ended(err)
	}
	return count, err
}
