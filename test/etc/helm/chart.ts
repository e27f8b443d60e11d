/** The chart of etc/helm, and what it renders to. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { projectFile } from '../../support/files.ts';
import { jsonLines } from '../../support/json-lines.ts';
import { type Manifest, parse } from '../kubernetes/manifests.ts';

export const CHART = projectFile('etc/helm');

/** A release whose manifests are kept in `rendered`. */
export interface Release {
  /** Of the files with its values and its manifests. */
  readonly set: string;
  readonly name: string;
  readonly namespace: string;
  readonly kubeVersion: string;
}

export const RELEASES: readonly Release[] = [
  { set: 'defaults', name: 'blazar-enforcement', namespace: 'blazar-enforcement', kubeVersion: 'v1.31.0' },
  { set: 'cert-manager', name: 'guard', namespace: 'policies', kubeVersion: 'v1.21.3-gke.100' },
  { set: 'few-rights', name: 'blazar-enforcement', namespace: 'policies', kubeVersion: 'v1.29.0' },
];

export function valuesFile({ set }: Release): string {
  return projectFile(`test/etc/helm/values/${set}.yaml`);
}

export function renderedFile({ set }: Release): string {
  return projectFile(`test/etc/helm/rendered/${set}.jsonl`);
}

/** The manifests that are kept, one JSON object on each line. */
export function rendered(release: Release): Manifest[] {
  return jsonLines(readFileSync(renderedFile(release), 'utf8'));
}

/** The files with the configuration. */
export function configurationOf(objects: readonly Manifest[]): Readonly<Record<string, string>> {
  return objects.find(({ metadata }) => metadata.name.endsWith('-configuration')).stringData;
}

export function objectsOf(text: string): Manifest[] {
  return parse(text).filter((object) => object !== null);
}

/** The names that a release gives its objects. */
export function namesOf({ name, namespace }: Release): { readonly own: string; readonly cluster: string } {
  const own = name.includes('blazar-enforcement') ? name : `${name}-blazar-enforcement`;
  return { own, cluster: `${own}.${namespace}` };
}

export interface Rendering {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Renders a release with a file of values, in a cluster with these objects. */
export type Renderer = (release: Omit<Release, 'set'>, values: string, objects?: string) => Rendering;

/** Helm from HELM or PATH. It knows no objects without a cluster. */
export function helm(): Renderer | undefined {
  const program = process.env.HELM ?? 'helm';
  if (spawnSync(program, ['version']).status !== 0) {
    return undefined;
  }
  return ({ name, namespace, kubeVersion }, values) =>
    spawnSync(
      program,
      ['template', name, CHART, '--namespace', namespace, '--kube-version', kubeVersion, '--values', values],
      { encoding: 'utf8' },
    );
}

/** Where Debian has its packages of Go: golang-go, golang-github-masterminds-sprig-dev, golang-k8s-sigs-yaml-dev. */
const GO = { GO111MODULE: 'off', GOPATH: '/usr/share/gocode', GOFLAGS: '' };

/** The renderer beside this file, compiled into a folder. `undefined` = there is no Go here, or not these packages. */
export function ownRenderer(folder: string): Renderer | undefined {
  const program = `${folder}/renderer`;
  const built = spawnSync('go', ['build', '-o', program, '.'], {
    cwd: projectFile('test/etc/helm/renderer'),
    env: { ...process.env, ...GO },
  });
  if (built.status !== 0) {
    return undefined;
  }
  return ({ name, namespace, kubeVersion }, values, objects) =>
    spawnSync(program, [CHART, name, namespace, kubeVersion, values, ...(objects ? [objects] : [])], {
      encoding: 'utf8',
      env: { ...process.env, ...GO },
    });
}
