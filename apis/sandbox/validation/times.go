package validation

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
)

// validateTime refuses a time that is written in a way that is not read again. With a time zone, one at either end of what
// RFC 3339 can say decodes well and leaves those years in UTC; stored, it would fail every list that meets it.
func validateTime(t time.Time, at *field.Path) field.ErrorList {
	if year := t.UTC().Year(); year >= 0 && year <= 9999 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, t.String(), "must lie between the years 0 and 9999 in UTC")}
}

// validateFieldOwners checks the times that a writer may set in the metadata; the server sets the others.
func validateFieldOwners(owners []metav1.ManagedFieldsEntry, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, owner := range owners {
		if owner.Time != nil {
			errs = append(errs, validateTime(owner.Time.Time, at.Index(i).Child("time"))...)
		}
	}
	return errs
}

func validateStatusTimes(status *sandbox.SandboxClaimStatus, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, set := range []struct {
		name string
		time *metav1.MicroTime
	}{
		{"queuedAt", status.QueuedAt}, {"boundAt", status.BoundAt}, {"lastUsedAt", status.LastUsedAt},
		{"releaseAt", status.ReleaseAt}, {"expiresAt", status.ExpiresAt}, {"lastSyncedAt", status.LastSyncedAt},
	} {
		if set.time != nil {
			errs = append(errs, validateTime(set.time.Time, at.Child(set.name))...)
		}
	}
	if status.Wait != nil {
		errs = append(errs, validateTime(status.Wait.RenewTime.Time, at.Child("wait", "renewTime"))...)
	}
	for i, c := range status.Conditions {
		errs = append(errs, validateTime(c.LastTransitionTime.Time, at.Child("conditions").Index(i).Child("lastTransitionTime"))...)
	}
	return errs
}
