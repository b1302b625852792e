package observability

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// LogOptions says what is logged.
type LogOptions struct {
	// Verbosity is 0 for administrators, 1 for developers, and 2 for each decision about a volume, too.
	Verbosity int
}

// AddFlags adds the options to a flag set.
func (o *LogOptions) AddFlags(flags *pflag.FlagSet) {
	flags.IntVarP(&o.Verbosity, "verbosity", "v", o.Verbosity, "how much to log: 0, 1 for debugging, or 2 for each decision about a volume, too")
}

// Validate returns the errors in the options.
func (o *LogOptions) Validate() error {
	if o.Verbosity < 0 || o.Verbosity > 2 {
		return fmt.Errorf("--verbosity: must be 0, 1 or 2, not %d", o.Verbosity)
	}
	return nil
}

// NewLogger returns a logger that writes one JSON object per line.
func NewLogger(w io.Writer, o LogOptions) logr.Logger {
	// logr's verbosity v is slog's level -v.
	level := slog.Level(-o.Verbosity)
	return logr.FromSlogHandler(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}

// InstallLogger makes libraries with their own logging use the logger. Their lines, except errors, have verbosity 1.
// Only main may call it.
func InstallLogger(log logr.Logger) {
	ctrl.SetLogger(log.V(1))
	klog.SetLogger(log.V(1))
}
