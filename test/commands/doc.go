// Package commands checks that every command that PaV prints runs as printed: those in Markdown pages, in the messages
// of the agents and of the plugin, in the files that "kubectl pav new" prints, in alerts, and in the help of make. A wrong
// one is worse than none, as its reader has a problem already.
//
// No command is run here. Each is parsed by the program that would run it, so that a command, a flag, a number of
// arguments, a kind of object, a selector, a path, a patch or a file that does not exist fails:
//
//   - "kubectl pav" by the plugin's own commands; one that names an object runs until it would connect to a cluster;
//   - other "kubectl" by kubectl's commands, with the kinds that Kubernetes and PaV have, the objects of deployment.yaml,
//     and PaV's labels and annotations;
//   - "helm" by Helm, which is asked for its help about the command;
//   - "make" by make, which says what it would do, with the variables that the Makefile knows.
//
// Words in capitals, verbs of fmt and operands that a message is made of stand for any name. A command without arguments
// is a name in a sentence, and only has to exist.
//
// These run for real in other tests, on clusters:
//
//   - all commands in the READMEs of the examples 1, 2, 4, 5 and 6, as they are: TestExample_… of test/e2e, which fails if
//     one of them was not run;
//   - the installation of the README, and its first volume: "make demo";
//   - the commands of docs/transcripts.md: "make transcripts", which writes that page;
//   - the installation, upgrade, rollback and uninstallation with Helm of docs/operating.md, with further flags:
//     TestUninstall_WithHelm_AfterUpgradeAndRollback of test/e2e;
//   - each command of the plugin: TestKubectl… of test/e2e;
//   - what "kubectl pav new" prints: TestKubectlNew_EachSkeletonPassesItsTest of test/e2e.
package commands
