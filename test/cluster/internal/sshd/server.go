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

// Subcommand is the hidden command of this program that the server is.
const Subcommand = "sshd"

// Program is this program's file as a node sees it even if the directory that it lies in is hidden
// there: that of the node's first process.
const Program = "/proc/1/exe"

// user is the only one that is let in.
const user = "root"

// Server runs the commands of anyone who has the key.
type Server struct {
	key         ssh.PublicKey
	environment []string
}

// New returns a server that lets the key in that a file has, as a line of authorized_keys. The
// environment is that of all commands.
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

// Serve serves until the listener is closed, with a host key that is new each time. A connection that
// is open then stays.
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
