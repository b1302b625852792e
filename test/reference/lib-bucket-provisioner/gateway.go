package main

import (
	"fmt"
	"os"
	"os/exec"
)

// gateway is an S3 server with accounts. Its buckets and accounts are made by the functions of test/objectstore/s3.sh, which the pods of
// PaV's example call as well.
type gateway struct {
	// functions is the path of s3.sh. The environment has the credentials of an administrator for it.
	functions string
}

// give makes the bucket of a claim, and an account that may write to it.
func (g *gateway) give(endpoint, bucket, claim, account, secret string) error {
	return g.run(endpoint, secret, `create_bucket "$1" "$2"
reset_user "$3" <(printf %s "$SECRET")
set_policy "$1" "[{\"accountId\": \"$3\", \"mode\": \"ReadWrite\"}]"`, bucket, claim, account)
}

// take deletes the bucket of a claim, and its account.
func (g *gateway) take(endpoint, bucket, claim, account string) error {
	return g.run(endpoint, "", `delete_bucket "$1" "$2"
delete_user "$3"`, bucket, claim, account)
}

func (g *gateway) run(endpoint, secret, script string, arguments ...string) error {
	command := exec.Command("bash", append([]string{"-euc", ". \"$FUNCTIONS\"\n" + script, "bash"}, arguments...)...) //nolint:noctx // The library passes no context on.
	command.Env = append(os.Environ(), "FUNCTIONS="+g.functions, "S3_ENDPOINT="+endpoint, "SECRET="+secret)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("at %s: %w: %s", endpoint, err, output)
	}
	return nil
}
