package sshd

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"net"
	"os"

	"github.com/gliderlabs/ssh"
	gossh "golang.org/x/crypto/ssh"
)

// Subcommand is the hidden subcommand of this program for the SSH server.
const Subcommand = "sshd"

// Program is the path of this program's executable on a node. It is the executable of the node's first process, and
// works even if the directory of the executable is hidden on the node.
const Program = "/proc/1/exe"

// user is the only user that the server accepts.
const user = "root"

// Server runs the commands of clients that have the key.
type Server struct {
	key         ssh.PublicKey
	environment []string
}

// New returns a server that accepts the key in a file, which has the format of authorized_keys. All commands have the
// given environment.
func New(keyFile string, environment []string) (*Server, error) {
	content, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the key: %w", err)
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(content)
	if err != nil {
		return nil, fmt.Errorf("parsing the key in %q: %w", keyFile, err)
	}
	return &Server{key: key, environment: environment}, nil
}

// Serve accepts connections until the listener is closed. Each call has a new host key. Connections that are open at
// the end stay open.
func (s *Server) Serve(listener net.Listener) error {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("making a host key: %w", err)
	}
	signer, err := gossh.NewSignerFromKey(key)
	if err != nil {
		return fmt.Errorf("making a host key: %w", err)
	}
	server := &ssh.Server{
		HostSigners: []ssh.Signer{signer},
		Handler:     s.run,
		PublicKeyHandler: func(ctx ssh.Context, key ssh.PublicKey) bool {
			return ctx.User() == user && ssh.KeysEqual(key, s.key)
		},
		PtyCallback: func(ssh.Context, ssh.Pty) bool { return false },
	}
	if err := server.Serve(listener); err != nil {
		return fmt.Errorf("serving SSH: %w", err)
	}
	return nil
}
