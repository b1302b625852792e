module github.com/albertofaria/pav/test/tools/govulncheck

go 1.26.6

tool golang.org/x/vuln/cmd/govulncheck

require (
	golang.org/x/mod v0.35.0 // indirect
	golang.org/x/sync v0.20.0 // indirect
	golang.org/x/sys v0.43.0 // indirect
	golang.org/x/telemetry v0.0.0-20260409153401-be6f6cb8b1fa // indirect
	golang.org/x/tools v0.44.0 // indirect
	golang.org/x/vuln v1.1.4 // indirect
)
