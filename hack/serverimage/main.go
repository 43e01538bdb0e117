// Command serverimage builds the server's image from this source, without a registry or a container builder:
//
//	go run ./hack/serverimage [-reference sandbox.omnia/sandbox-apiserver:dev] [-out bin/sandbox-apiserver.tar]
//
// It prints the image's digest. The same source and Go version give the same digest, in whatever folder and on whatever
// day. The tarball is what `docker load`, `podman load`, `ctr images import` and `crane push` read.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/altairalabs/omnia-sandboxes/hack/image"
)

func main() {
	reference := flag.String("reference", "sandbox.omnia/sandbox-apiserver:dev", "name and tag of the image")
	out := flag.String("out", "bin/sandbox-apiserver.tar", "file to write")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	digest, err := image.WritePackage(ctx, ".", "./cmd/sandbox-apiserver", *out, image.Spec{Reference: *reference})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "serverimage:", err)
		os.Exit(1)
	}
	fmt.Printf("%s %s in %s\n", *reference, digest, *out)
}
