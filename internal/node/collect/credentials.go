package collect

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/credentials"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/workflow"
)

// secrets are the credentials that a grant pod left, until they are sealed.
type secrets struct {
	files []pavdir.File

	// all has whatever could be read, and known what is sealed.
	all, known credentials.Credentials

	// incomplete says that there is more, which could not be read.
	incomplete bool
}

// clear overwrites them in memory.
func (s *secrets) clear() {
	if s == nil {
		return
	}
	for _, file := range s.files {
		clear(file.Content)
	}
}

// readCredentials reads the credentials that a grant pod left, and notes which of its files are none.
func (r *reader) readCredentials(ctx context.Context) error {
	most := limits{bytes: credentials.MaxValue, files: credentials.MaxFiles}
	s := &secrets{all: credentials.Credentials{}, known: credentials.Credentials{}}
	r.secrets = s
	files, err := r.dirs.ReadPodFiles(ctx, r.volumeID, workflow.CredentialsDirectory, most.files, most.bytes)
	if err != nil {
		s.incomplete = true
		return r.tolerate(workflow.CredentialsDirectory, err, most)
	}
	s.files = files
	size := 0
	for _, file := range files {
		if file.Err == nil {
			s.all[file.Name] = file.Content
			size += len(file.Content)
		}
	}
	if size > credentials.MaxAll {
		s.incomplete = true
		r.unreadable(workflow.CredentialsDirectory, fmt.Sprintf("its files have more than %d bytes together", credentials.MaxAll))
		return nil
	}
	for _, file := range files {
		path, wrong := pathOf(workflow.CredentialsDirectory, file.Name), credentials.CheckName(file.Name)
		if wrong != nil {
			// A command may have made a credential the name of a file.
			path = pathOf(workflow.CredentialsDirectory, s.all.Redact(file.Name))
		}
		switch {
		case file.Err != nil:
			if err := r.tolerate(path, file.Err, most); err != nil {
				return err
			}
			s.incomplete = true
		case wrong != nil:
			r.unreadable(path, "it is none of the credentials that PaV knows, and not below "+credentials.Extra)
		default:
			s.known[file.Name] = file.Content
		}
	}
	return nil
}

// withheld is noted of a text that may have a credential.
const withheld = "it is not told, as it may have a credential that could not be read"

// hideSecrets removes the credentials from what the result has of other files.
func (r *reader) hideSecrets() {
	s, result := r.secrets, &r.result
	hide := func(name string, text *string) {
		switch {
		case *text == "":
		case s.incomplete:
			*text = ""
			r.unreadable(name, withheld)
		default:
			*text = s.all.Redact(*text)
		}
	}
	hide(workflow.ErrorFile, &result.Error)
	if result.Infeasible != nil {
		hide(workflow.InfeasibleFile, result.Infeasible)
	}
	for name, text := range map[string]*string{workflow.AccountIDFile: &result.AccountID, workflow.ExpiresFile: &result.Expires} {
		if s.all.Exposed(*text) {
			*text = ""
			r.unreadable(name, "it has a credential")
		}
	}
}

// seal seals the credentials for the controller agent that created the pod.
func (r *reader) seal(pod *corev1.Pod) {
	if len(r.secrets.known) == 0 || r.result.Unreadable[workflow.CredentialsDirectory] != "" {
		return
	}
	sealed, err := sealFor(pod, r.secrets.known)
	if err != nil {
		r.unreadable(workflow.CredentialsDirectory, "its files cannot be sealed: "+err.Error())
		return
	}
	r.result.Sealed = sealed
}

// sealFor seals credentials with the key in an annotation of the pod. Errors have no credential.
func sealFor(pod *corev1.Pod, known credentials.Credentials) ([]byte, error) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "PavBucketAccess" {
		return nil, errors.New("the pod is not controlled by a PavBucketAccess")
	}
	key, found := pod.Annotations[pavv1.SealAnnotation]
	if !found {
		return nil, fmt.Errorf("the pod has no annotation %s", pavv1.SealAnnotation)
	}
	return credentials.Seal(key, credentials.Purpose{Access: owner.UID, Pod: pod.UID}, known)
}
