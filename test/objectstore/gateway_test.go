package objectstore

import "testing"

// Tests of what the functions depend on: another version of the gateway may be different.

func TestGateway_APolicyAloneDecides(t *testing.T) {
	t.Parallel()
	g := Start(t, Options{})
	owner := g.addUser(t, "owner")
	g.addUser(t, "another")
	g.do(t, "create_bucket bucket uid; request PATCH '/change-bucket-owner?bucket=bucket&owner=owner'; want change 200")
	for _, step := range []struct{ script, want string }{
		{"", "200"},
		{`set_policy bucket '[{"accountId": "another", "mode": "ReadOnly"}]'`, "403 AccessDenied"},
		{"set_policy bucket '[]'", "200"},
	} {
		g.do(t, step.script)
		if got := g.answer(t, owner, "GET", "/bucket?list-type=2"); got != step.want {
			t.Errorf("after %q, the owner gets %s, want %s", step.script, got, step.want)
		}
	}
}

func TestGateway_RefusesAPolicyOfUnknownAccounts(t *testing.T) {
	t.Parallel()
	g := Start(t, Options{})
	g.addUser(t, "user")
	g.do(t, "create_bucket bucket uid")
	const grants = `[{"accountId": "user", "mode": "ReadOnly"}, {"accountId": "unknown", "mode": "ReadOnly"}]`
	if got, want := g.do(t, `request PUT '/bucket?policy=' "$(policy bucket "$1")"; echo "$code"`, grants), "MalformedPolicy"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	// An account that is deleted later stays in the policy.
	g.do(t, `set_policy bucket '[{"accountId": "user", "mode": "ReadOnly"}]'; delete_user user`)
	if got := g.answer(t, g.addUser(t, "user"), "GET", "/bucket?list-type=2"); got != "200" {
		t.Errorf("an account with the name of a deleted one gets %s", got)
	}
}

// Of two gateways with the same accounts, one deletes an account that the other has seen.
func TestGateway_CacheKeepsDeletedAccounts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		cache bool
		want  string
	}{"with the cache": {true, "200"}, "without": {false, "403 InvalidAccessKeyId"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := Start(t, Options{Cache: test.cache})
			other := Start(t, Options{Cache: test.cache, Directory: one.Directory})
			user := one.addUser(t, "user")
			one.do(t, `create_bucket bucket uid; set_policy bucket '[{"accountId": "user", "mode": "ReadOnly"}]'`)
			list := []string{"GET", "/bucket?list-type=2"}
			if got := other.answer(t, user, list...); got != "200" {
				t.Errorf("before the account is deleted: %s", got)
			}
			one.do(t, "delete_user user")
			if got := one.answer(t, user, list...); got != "403 InvalidAccessKeyId" {
				t.Errorf("at the gateway that deleted the account: %s", got)
			}
			if got := other.answer(t, user, list...); got != test.want {
				t.Errorf("at the other gateway: %s, want %s", got, test.want)
			}
		})
	}
}
