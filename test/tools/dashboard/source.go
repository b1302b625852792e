package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// source is a Prometheus, and the time of it that is drawn.
type source struct {
	server         string
	end            time.Time
	length, window time.Duration
}

// answer is one series, as Prometheus tells it.
type answer struct {
	labels map[string]string
	points []point
}

// ask evaluates a panel's query, with all provisioners.
func (s source) ask(ctx context.Context, query string) ([]answer, error) {
	query = strings.NewReplacer("$__rate_interval", s.window.String(), "$provisioner", ".*").Replace(query)
	parameters := url.Values{
		"query": {query}, "step": {strconv.FormatFloat(s.length.Seconds()/200, 'f', 1, 64)},
		"start": {strconv.FormatInt(s.end.Add(-s.length).Unix(), 10)}, "end": {strconv.FormatInt(s.end.Unix(), 10)},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.server+"/api/v1/query_range?"+parameters.Encode(), nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var said struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&said); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if said.Status != "success" {
		return nil, errors.New(said.Error)
	}
	var all []answer
	for _, series := range said.Data.Result {
		a := answer{labels: series.Metric}
		for _, pair := range series.Values {
			seconds, _ := pair[0].(float64)
			text, _ := pair[1].(string)
			value, err := strconv.ParseFloat(text, 64)
			if err == nil && !math.IsNaN(value) && !math.IsInf(value, 0) {
				a.points = append(a.points, point{seconds, value})
			}
		}
		if len(a.points) > 0 {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b answer) int { return strings.Compare(fmt.Sprint(a.labels), fmt.Sprint(b.labels)) })
	return all, nil
}
