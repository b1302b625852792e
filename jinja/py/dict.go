package py

import (
	"maps"
	"slices"
)

// Dict is a mutable mapping in the order of insertion.
type Dict struct {
	entries []dictEntry
	// index finds entries by hash, if there are too many to search.
	index map[any]int
	// data has the source of the entries, which are made when they are first needed all together: many contexts are never
	// read.
	// looked has the values that have been looked up before that.
	data   any
	looked map[string]Value
}

type dictEntry struct {
	key, value Value
	hash       any
}

// scanned is up to how many entries are searched one after another.
const scanned = 8

// TypeName implements Value.
func (*Dict) TypeName() string { return "dict" }

// NewDict returns an empty dictionary.
func NewDict() *Dict { return &Dict{} }

func (d *Dict) load() {
	if d.data == nil {
		return
	}
	data := d.data
	d.data = nil
	switch data := data.(type) {
	case map[string]any:
		d.entries = make([]dictEntry, 0, len(data))
		for _, key := range slices.Sorted(maps.Keys(data)) {
			d.SetStr(key, d.converted(key, data[key]))
		}
	case Object:
		d.entries = make([]dictEntry, 0, len(data))
		for _, member := range data {
			d.SetStr(member.Key, d.converted(member.Key, member.Value))
		}
	}
}

// converted returns the value that has been looked up before for key or, without one, that of data.
func (d *Dict) converted(key string, data any) Value {
	if value, ok := d.looked[key]; ok {
		return value
	}
	return fromData(data)
}

// lookUp returns the value of a key before the entries are made.
func (d *Dict) lookUp(data map[string]any, key string) (Value, bool) {
	item, ok := data[key]
	if !ok {
		return nil, false
	}
	value := d.converted(key, item)
	if d.looked == nil {
		d.looked = map[string]Value{}
	}
	d.looked[key] = value
	return value, true
}

// Len returns the number of entries.
func (d *Dict) Len() int {
	d.load()
	return len(d.entries)
}

// Entry returns the entry at i, of Len, in order of insertion.
func (d *Dict) Entry(i int) (key, value Value) {
	d.load()
	return d.entries[i].key, d.entries[i].value
}

// Get returns the value of a key. The error is that of a value that cannot be a key.
func (d *Dict) Get(key Value) (value Value, ok bool, err error) {
	hash, err := hashOf(key)
	if err != nil {
		return nil, false, err
	}
	value, ok = d.get(hash)
	return value, ok, nil
}

// GetStr is Get for text.
func (d *Dict) GetStr(key string) (value Value, ok bool) { return d.get(key) }

func (d *Dict) get(hash any) (Value, bool) {
	if data, ok := d.data.(map[string]any); ok {
		if key, ok := hash.(string); ok {
			return d.lookUp(data, key)
		}
	}
	d.load()
	if i := d.find(hash); i >= 0 {
		return d.entries[i].value, true
	}
	return nil, false
}

func (d *Dict) find(hash any) int {
	if d.index != nil {
		if i, ok := d.index[hash]; ok {
			return i
		}
		return -1
	}
	for i := range d.entries {
		if d.entries[i].hash == hash {
			return i
		}
	}
	return -1
}

// Set sets the value of a key. A key that exists keeps its position.
func (d *Dict) Set(key, value Value) error {
	hash, err := hashOf(key)
	if err != nil {
		return err
	}
	if err := storable(key); err != nil {
		return err
	}
	d.load()
	d.set(hash, key, value)
	return nil
}

// SetStr is Set for text.
func (d *Dict) SetStr(key string, value Value) {
	d.load()
	d.set(key, Str(key), value)
}

func (d *Dict) set(hash any, key, value Value) {
	if i := d.find(hash); i >= 0 {
		d.entries[i].value = value
		return
	}
	d.entries = append(d.entries, dictEntry{key, value, hash})
	switch {
	case d.index != nil:
		d.index[hash] = len(d.entries) - 1
	case len(d.entries) > scanned:
		d.index = make(map[any]int, 2*len(d.entries))
		for i := range d.entries {
			d.index[d.entries[i].hash] = i
		}
	}
}

// Copy returns a dictionary with the same entries.
func (d *Dict) Copy() *Dict {
	d.load()
	return &Dict{entries: slices.Clone(d.entries), index: maps.Clone(d.index)}
}
