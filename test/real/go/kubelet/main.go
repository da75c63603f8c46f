// kubelet implements the streaming endpoints of a kubelet that an apiserver calls: exec, attach, port-forward and logs.
//
// KWOK simulates the node and its pods, but its exec is unsuitable: it never closes a command's standard input, so that
// `kubectl cp` hangs, and it turns every exit code into 1. Here, the stream code is the kubelet's own (cri-streaming).
// The container is a folder on this machine, and its log is a plain file.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// The idle timeout is so long that it never ends a stream here. If an idle stream ends, the proxy under test ended it.
const idle = 24 * time.Hour

type container struct {
	folder, logFile, forwardTo string
}

func (c *container) ExecInContainer(ctx context.Context, _, _, _ string, command []string, in io.Reader,
	out, errOut io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	run := exec.CommandContext(ctx, command[0], command[1:]...)
	run.Dir = c.folder
	if out != nil {
		run.Stdout = out
	}
	if errOut != nil {
		run.Stderr = errOut
	}
	if in != nil {
		// run.Stdin is not used, because run.Wait would then also wait for the client to close its input.
		pipe, err := run.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			_, _ = io.Copy(pipe, in)
			_ = pipe.Close()
		}()
	}
	err := run.Run()
	if exit, ok := err.(*exec.ExitError); ok {
		return utilexec.ExitErrorWrapper{ExitError: exit}
	}
	return err
}

// AttachContainer sends each new line of the log, and answers each line of input.
func (c *container) AttachContainer(ctx context.Context, _, _, _ string, in io.Reader, out, _ io.WriteCloser,
	_ bool, _ <-chan remotecommand.TerminalSize) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if in != nil {
		go func() {
			lines := bufio.NewScanner(in)
			for lines.Scan() {
				_, _ = fmt.Fprintf(out, "heard %s\n", lines.Text())
			}
			cancel()
		}()
	}
	return c.follow(ctx, out, 0)
}

func (c *container) PortForward(_ context.Context, _, _ string, _ int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	socket, err := net.Dial("tcp", c.forwardTo)
	if err != nil {
		return err
	}
	defer socket.Close()
	sent := make(chan struct{})
	go func() {
		_, _ = io.Copy(socket, stream)
		_ = socket.(*net.TCPConn).CloseWrite()
		close(sent)
	}()
	_, err = io.Copy(stream, socket)
	_ = stream.Close()
	<-sent
	return err
}

// follow writes the last `tail` lines of the log (all lines if negative), and then each new line until ctx ends.
func (c *container) follow(ctx context.Context, out io.Writer, tail int) error {
	file, err := os.Open(c.logFile)
	if err != nil {
		return err
	}
	defer file.Close()
	all, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	lines := strings.SplitAfter(string(all), "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	}
	if tail >= 0 && tail < len(lines) {
		lines = lines[len(lines)-tail:]
	}
	if _, err := io.WriteString(out, strings.Join(lines, "")); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if _, err := io.Copy(out, file); err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

type flushed struct{ http.ResponseWriter }

func (f flushed) Write(bytes []byte) (int, error) {
	written, err := f.ResponseWriter.Write(bytes)
	f.ResponseWriter.(http.Flusher).Flush()
	return written, err
}

func (c *container) logs(reply http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	tail := -1
	if text := query.Get("tailLines"); text != "" {
		tail, _ = strconv.Atoi(text)
	}
	reply.Header().Set("Content-Type", "text/plain; charset=utf-8")
	reply.WriteHeader(http.StatusOK)
	reply.(http.Flusher).Flush()
	ctx, cancel := context.WithCancel(request.Context())
	defer cancel()
	if query.Get("follow") != "true" {
		cancel()
	}
	_ = c.follow(ctx, flushed{reply}, tail)
}

func (c *container) command(reply http.ResponseWriter, request *http.Request) {
	options, err := remotecommand.NewOptions(request)
	if err != nil {
		http.Error(reply, err.Error(), http.StatusBadRequest)
		return
	}
	pod := request.PathValue("pod")
	protocols := remotecommand.SupportedStreamingProtocols
	if strings.HasPrefix(request.URL.Path, "/attach/") {
		remotecommand.ServeAttach(reply, request, c, pod, "", "", options, idle, idle, protocols)
		return
	}
	remotecommand.ServeExec(reply, request, c, pod, "", "", request.URL.Query()["command"], options, idle, idle, protocols)
}

func (c *container) forward(reply http.ResponseWriter, request *http.Request) {
	options, err := portforward.NewV4Options(request)
	if err != nil {
		http.Error(reply, err.Error(), http.StatusBadRequest)
		return
	}
	pod := request.PathValue("pod")
	portforward.ServePortForward(reply, request, c, pod, "", options, idle, idle, portforward.SupportedProtocols)
}

func main() {
	listen := flag.String("listen", "", "address to serve, host:port")
	certFile := flag.String("cert", "", "serving certificate")
	keyFile := flag.String("key", "", "its key")
	c := &container{}
	flag.StringVar(&c.folder, "folder", ".", "where commands run")
	flag.StringVar(&c.logFile, "log", "", "the container's log")
	flag.StringVar(&c.forwardTo, "forward", "", "where every forwarded port leads, host:port")
	flag.Parse()
	routes := http.NewServeMux()
	routes.HandleFunc("/exec/{namespace}/{pod}/{container}", c.command)
	routes.HandleFunc("/attach/{namespace}/{pod}/{container}", c.command)
	routes.HandleFunc("/portForward/{namespace}/{pod}", c.forward)
	routes.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", c.logs)
	log.Fatal(http.ListenAndServeTLS(*listen, *certFile, *keyFile, routes))
}
