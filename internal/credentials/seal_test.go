package credentials

import (
	"bytes"
	"encoding/base64"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var purpose = Purpose{Access: "access", Pod: "pod"}

func newKey(t *testing.T) Key {
	t.Helper()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func seal(t *testing.T, key Key, c Credentials) []byte {
	t.Helper()
	sealed, err := Seal(key.Public, purpose, c)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

// What is sealed can be opened, and shows nothing of the credentials.
func TestOpen_WhatWasSealed(t *testing.T) {
	key := newKey(t)
	public, err := PublicOf(key.Private)
	if err != nil || public != key.Public {
		t.Fatalf("the public half is %.20q, %v; want %.20q", public, err, key.Public)
	}
	for name, c := range map[string]Credentials{
		"none":         {},
		"two":          {AccessKeyID: []byte("canary-key-id"), AccessSecretKey: []byte("canary-secret")},
		"binary":       {AccessToken: []byte("\x00canary\xff")},
		"at the limit": {AccessKeyID: bytes.Repeat([]byte("canary--"), MaxValue/8), AccessSecretKey: bytes.Repeat([]byte("c"), MaxValue), AccessToken: bytes.Repeat([]byte("c"), MaxValue)},
	} {
		sealed := seal(t, key, c)
		if bytes.Contains(sealed, []byte("canary")) || bytes.Contains(sealed, []byte(base64.StdEncoding.EncodeToString([]byte("canary-key-id")))) {
			t.Errorf("%s: what is sealed has a credential", name)
		}
		got, err := Open(key.Private, purpose, sealed)
		if err != nil || !maps.EqualFunc(got, c, bytes.Equal) {
			t.Errorf("%s: opened (-want +got):\n%s%v", name, cmp.Diff(c, got), err)
		}
		// An annotation may have 256 KiB together with all others.
		if encoded := base64.StdEncoding.EncodedLen(len(sealed)); encoded > 100<<10 {
			t.Errorf("%s: %d bytes in an annotation", name, encoded)
		}
	}
}

// Sealed credentials are of one attempt of one access, and nobody else can use or change them.
func TestOpen_AnythingElse_Fails(t *testing.T) {
	key := newKey(t)
	sealed := seal(t, key, Credentials{AccessKeyID: []byte("canary")})
	changed := bytes.Clone(sealed)
	changed[len(changed)-1] ^= 1
	for name, test := range map[string]struct {
		private []byte
		purpose Purpose
		sealed  []byte
	}{
		"another key":    {newKey(t).Private, purpose, sealed},
		"no key":         {nil, purpose, sealed},
		"another access": {key.Private, Purpose{Access: "other", Pod: "pod"}, sealed},
		"another pod":    {key.Private, Purpose{Access: "access", Pod: "other"}, sealed},
		"parts shifted":  {key.Private, Purpose{Access: "access|pod"}, sealed},
		"changed":        {key.Private, purpose, changed},
		"cut":            {key.Private, purpose, sealed[:len(sealed)-1]},
		"nothing":        {key.Private, purpose, nil},
	} {
		got, err := Open(test.private, test.purpose, test.sealed)
		if err == nil || got != nil {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the error has a credential: %v", name, err)
		}
	}
}

// A node that was taken over can seal what it likes. It is checked as if a pod had left it.
func TestOpen_WhatExceedsALimit_Fails(t *testing.T) {
	key := newKey(t)
	if _, err := Seal(key.Public, purpose, Credentials{"other": nil}); err == nil {
		t.Error("a wrong name was sealed")
	}
	for name, plain := range map[string]string{
		"a wrong name": `{"canary":""}`, "no mapping": `["canary"]`, "no JSON": `canary`, "no base64": `{"accessKeyId":"?canary"}`,
	} {
		sealed, err := sealRaw(key.Public, purpose, []byte(plain))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Open(key.Private, purpose, sealed); err == nil || got != nil {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	for name, public := range map[string]string{"no base64": "?", "no key": "AAAA", "none": ""} {
		if _, err := Seal(public, purpose, Credentials{}); err == nil {
			t.Errorf("%s: sealed", name)
		}
	}
}
