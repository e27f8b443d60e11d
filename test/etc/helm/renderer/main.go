// Renders a chart as Helm does, with the same template engine and functions, where Helm itself is not to be had:
//
//	renderer CHART RELEASE NAMESPACE KUBE_VERSION VALUES_FILE|- [LOOKUP_FILE]
//
// LOOKUP_FILE holds the objects of the cluster that `lookup` finds, as a YAML list. NUMBERS=text reads numbers of values as newer versions
// of Helm do.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type object = map[string]interface{}

type files map[string]string

func (f files) Get(name string) string { return f[name] }

func main() {
	if err := render(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "Error: "+err.Error())
		os.Exit(1)
	}
}

func render(args []string) error {
	if len(args) < 5 {
		return errors.New("expected CHART RELEASE NAMESPACE KUBE_VERSION VALUES_FILE [LOOKUP_FILE]")
	}
	chart := args[0]
	about, err := read(filepath.Join(chart, "Chart.yaml"))
	if err != nil {
		return err
	}
	values, err := read(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return err
	}
	if args[4] != "-" {
		own, err := read(args[4])
		if err != nil {
			return err
		}
		merge(values, own)
	}
	var known []object
	if len(args) > 5 {
		text, err := os.ReadFile(args[5])
		if err != nil {
			return err
		}
		if err := yaml.Unmarshal(text, &known); err != nil {
			return err
		}
	}
	root := template.New("chart").Option("missingkey=zero")
	root.Funcs(functions(root, known))
	handed := files{}
	var names []string
	err = filepath.Walk(chart, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		name, _ := filepath.Rel(chart, path)
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !strings.HasPrefix(name, "templates/") {
			handed[name] = string(text)
			return nil
		}
		names = append(names, name)
		_, err = root.New(name).Parse(string(text))
		return err
	})
	if err != nil {
		return err
	}
	sort.Strings(names)
	top := object{
		"Values":  values,
		"Files":   handed,
		"Chart":   capitalized(about),
		"Release": object{"Name": args[1], "Namespace": args[2], "Service": "Helm", "IsInstall": true, "IsUpgrade": false, "Revision": 1},
		"Capabilities": object{
			"KubeVersion": object{"Version": args[3], "Major": "1", "Minor": strings.Split(args[3], ".")[1]},
		},
	}
	for _, name := range names {
		if strings.HasPrefix(filepath.Base(name), "_") {
			continue
		}
		var out strings.Builder
		top["Template"] = object{"Name": name, "BasePath": "templates"}
		if err := root.ExecuteTemplate(&out, name, top); err != nil {
			return err
		}
		text := strings.ReplaceAll(out.String(), "<no value>", "")
		// Helm prints this one apart.
		if strings.TrimSpace(text) != "" && filepath.Base(name) != "NOTES.txt" {
			fmt.Printf("---\n# Source: %s/%s\n%s\n", about["name"], name, strings.Trim(text, "\n"))
		}
	}
	return nil
}

// Fields of the chart begin with a capital letter.
func capitalized(about object) object {
	fields := object{}
	for key, value := range about {
		fields[strings.ToUpper(key[:1])+key[1:]] = value
	}
	return fields
}

func read(path string) (object, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	values := object{}
	asText := func(decoder *json.Decoder) *json.Decoder {
		decoder.UseNumber()
		return decoder
	}
	if os.Getenv("NUMBERS") == "text" {
		err = yaml.Unmarshal(text, &values, asText)
	} else {
		err = yaml.Unmarshal(text, &values)
	}
	return values, err
}

// Mappings are merged, null removes, everything else is replaced.
func merge(below, above object) {
	for key, value := range above {
		one, isMap := value.(object)
		other, wasMap := below[key].(object)
		switch {
		case value == nil:
			delete(below, key)
		case isMap && wasMap:
			merge(other, one)
		default:
			below[key] = value
		}
	}
}

func functions(root *template.Template, known []object) template.FuncMap {
	functions := sprig.TxtFuncMap()
	delete(functions, "env")
	delete(functions, "expandenv")
	run := func(text string, name string, data interface{}) (string, error) {
		var out strings.Builder
		one := root
		if text != "" {
			copied, err := root.Clone()
			if err != nil {
				return "", err
			}
			if one, err = copied.New(name).Parse(text); err != nil {
				return "", err
			}
		}
		err := one.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	functions["include"] = func(name string, data interface{}) (string, error) { return run("", name, data) }
	functions["tpl"] = func(text string, data interface{}) (string, error) { return run(text, "tpl", data) }
	functions["toYaml"] = func(value interface{}) string {
		text, err := yaml.Marshal(value)
		if err != nil {
			return ""
		}
		return strings.TrimSuffix(string(text), "\n")
	}
	functions["fromYaml"] = func(text string) object {
		values := object{}
		if err := yaml.Unmarshal([]byte(text), &values); err != nil {
			values["Error"] = err.Error()
		}
		return values
	}
	functions["toJson"] = func(value interface{}) string {
		text, err := json.Marshal(value)
		if err != nil {
			return ""
		}
		return string(text)
	}
	functions["required"] = func(message string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return value, errors.New(message)
		}
		return value, nil
	}
	functions["lookup"] = func(version, kind, namespace, name string) object {
		for _, one := range known {
			metadata, _ := one["metadata"].(object)
			where, _ := metadata["namespace"].(string)
			if one["apiVersion"] == version && one["kind"] == kind && metadata["name"] == name && where == namespace {
				return one
			}
		}
		return object{}
	}
	return functions
}
