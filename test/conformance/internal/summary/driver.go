package summary

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Driver is the content of a driver definition.
type Driver struct {
	Name string
	// Capabilities are the capabilities that are true, sorted.
	Capabilities []string
	// Others are all other declarations, one per line ("TopologyKeys: kubernetes.io/hostname"), sorted.
	Others []string
}

// ReadDriver reads the driver definition that is passed to the suite. It does not check for keys that the suite
// ignores.
func ReadDriver(data []byte) (Driver, error) {
	var definition struct {
		DriverInfo struct {
			Name         string
			Capabilities map[string]bool
		}
	}
	if err := yaml.Unmarshal(data, &definition); err != nil {
		return Driver{}, fmt.Errorf("reading the driver definition: %w", err)
	}
	if definition.DriverInfo.Name == "" {
		return Driver{}, errors.New("the driver definition has no DriverInfo.Name")
	}
	var all map[string]any
	if err := yaml.Unmarshal(data, &all, useNumber); err != nil {
		return Driver{}, fmt.Errorf("reading the driver definition: %w", err)
	}

	driver := Driver{Name: definition.DriverInfo.Name}
	for capability, declared := range definition.DriverInfo.Capabilities {
		if declared {
			driver.Capabilities = append(driver.Capabilities, capability)
		}
	}
	info, _ := all["DriverInfo"].(map[string]any)
	delete(all, "DriverInfo")
	delete(info, "Name")
	delete(info, "Capabilities")
	maps.Copy(all, info)
	for key, value := range all {
		driver.Others = append(driver.Others, key+": "+plain(value))
	}
	slices.Sort(driver.Capabilities)
	slices.Sort(driver.Others)
	return driver, nil
}

// useNumber makes the decoder keep the text of numbers, so that large numbers are not written with an exponent.
func useNumber(decoder *json.Decoder) *json.Decoder {
	decoder.UseNumber()
	return decoder
}

// plain returns a value as one line of text. A set, which is a map with empty values, becomes the list of its members.
func plain(value any) string {
	switch value := value.(type) {
	case map[string]any:
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(value)) {
			part := key
			if part == "" {
				part = "(default)"
			}
			if of := plain(value[key]); of != "" {
				part += " " + of
			}
			parts = append(parts, part)
		}
		return strings.Join(parts, ", ")
	case []any:
		var parts []string
		for _, element := range value {
			parts = append(parts, plain(element))
		}
		return strings.Join(parts, ", ")
	case nil:
		return ""
	default:
		return fmt.Sprint(value)
	}
}
